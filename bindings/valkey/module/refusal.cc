#include "refusal.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace perdix::valkey {
namespace {

constexpr std::string_view kReserve = "perdix:reserve";
constexpr std::size_t kReserveValues = 64;
constexpr std::size_t kReserveValue = std::size_t{64} << 10;
constexpr std::string_view kRefused = "PX.REFUSED";
constexpr unsigned kMaxPatience = 512;  // nearly a minute, at ten calls a second

Refusal*& installed() {
  static Refusal* refusal = nullptr;
  return refusal;
}

/// A command that could not be judged goes on: what it changes is refused where it is stored.
void filter_command(RedisModuleCommandFilterCtx* command) {
  try {
    installed()->filter(command);
  } catch (const std::exception& error) {
    installed()->on_failed_look(error);
  }
}

int reply_refused(Context* context, RedisModuleString**, int) {
  return installed()->reply(context);
}

void rename(RedisModuleCommandFilterCtx* command, std::string_view name) {
  RedisModule_CommandFilterArgReplace(command, 0,
                                      RedisModule_CreateString(nullptr, name.data(), name.size()));
}

bool concerns_connection(const CommandTraits& traits) {
  constexpr std::array kNames{"auth", "hello", "quit", "reset"};
  return std::find(kNames.begin(), kNames.end(), traits.name) != kNames.end();
}

std::vector<RedisModuleString*> arguments_of(RedisModuleCommandFilterCtx* command) {
  std::vector<RedisModuleString*> arguments;
  const int count = RedisModule_CommandFilterArgsCount(command);
  for (int i = 0; i < count; ++i)
    arguments.push_back(
        const_cast<RedisModuleString*>(RedisModule_CommandFilterArgGet(command, i)));
  return arguments;
}

/// The keys among the arguments of a command. None if the server would reject it.
std::vector<std::string_view> keys_in(Context* context,
                                      std::vector<RedisModuleString*>& arguments) {
  int count = 0;
  int* places = RedisModule_GetCommandKeys(context, arguments.data(),
                                           static_cast<int>(arguments.size()), &count);
  std::vector<std::string_view> keys;
  for (int i = 0; places != nullptr && i < count; ++i)
    keys.push_back(view(arguments[static_cast<std::size_t>(places[i])]));
  RedisModule_Free(places);
  return keys;
}

/// None if the server does not say which client sends a command.
std::optional<int> database_of(RedisModuleCommandFilterCtx* command) {
  if (RedisModule_CommandFilterGetClientId == nullptr) return std::nullopt;
  RedisModuleClientInfoV1 info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
  const auto client = RedisModule_CommandFilterGetClientId(command);
  if (RedisModule_GetClientInfoById(&info, client) != REDISMODULE_OK) return std::nullopt;
  return info.db;
}

}  // namespace

Refusal::Refusal(const Pool& pool, const Settings& settings, const Catalogue& catalogue)
    : pool_(pool), settings_(settings), catalogue_(catalogue) {}

void Refusal::prepare(Context* context) {
  installed() = this;
  context_ = RedisModule_GetDetachedThreadSafeContext(context);
  commands_.ask_with(context_);
  constexpr const char* kAlways = "readonly fast allow-stale allow-loading allow-busy";
  if (RedisModule_CreateCommand(context, kRefused.data(), reply_refused, kAlways, 0, 0, 0) !=
      REDISMODULE_OK)
    throw Error(Errc::already_exists, "the server has a command PX.REFUSED of another module");
  // Whoever may read gets the error, and not one of access control.
  if (RedisModule_SetCommandACLCategories != nullptr)
    RedisModule_SetCommandACLCategories(RedisModule_GetCommand(context, kRefused.data()),
                                        "read fast");
  prepared_ = true;
  if (!make_reserve())
    log(context, "warning", "the pool has no space for a reserve: it is as good as full");
  follow_settings(context);
}

bool Refusal::make_reserve() {
  try {
    const auto reserve = Index::open_or_create(pool_, {.name = std::string(kReserve),
                                                       .engine = "sptree",
                                                       .key_kind = Kind::u64,
                                                       .value_kind = Kind::bytes});
    const std::string value(kReserveValue, '\0');
    for (std::size_t i = 0; i < kReserveValues; ++i) {
      const auto key = encode_u64(i);
      reserve->insert({key.data(), key.size()}, value);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Refusal::drop_reserve(const Pool& pool) {
  try {
    Pool(pool).drop(kReserve);
  } catch (const Error&) {
    // There was none, or it could not be freed: the caller's next try says so.
  }
}

bool Refusal::on_full(Context* context, const std::string& why) {
  why_ = why;
  if (refuses_ || !prepared_) return false;
  refuses_ = true;
  pause_ = patience_;
  patience_ = std::min(2 * patience_, kMaxPatience);
  calm_ = 0;
  log(context, "warning", "commands that add data are refused from now on: " + why);
  drop_reserve(pool_);
  follow_settings(context);
  return true;
}

void Refusal::on_device_failure(Context* context, const std::string& why) {
  if (device_failed_) return;
  device_failed_ = true;
  refuses_ = true;
  why_ = why;
  log(context, "warning", "nothing is durable any more: " + why);
  follow_settings(context);
}

void Refusal::try_again(Context* context) {
  if (device_failed_) return;
  if (!refuses_) {
    if (patience_ > 1 && ++calm_ > kMaxPatience) patience_ = 1;
    return;
  }
  if (pause_ > 0) {
    --pause_;
    return;
  }
  if (!make_reserve()) return drop_reserve(pool_);
  refuses_ = false;
  log(context, "notice", "the pool has space again: commands are no longer refused");
  follow_settings(context);
}

void Refusal::follow_settings(Context* context) {
  if (!prepared_) return;
  const bool wanted = refuses_ || loading_ || settings_.refuses_oversize();
  if (wanted && filter_ == nullptr) {
    transactions_.on_multi();
    filter_ =
        RedisModule_RegisterCommandFilter(context, filter_command, REDISMODULE_CMDFILTER_NOSELF);
  } else if (!wanted && filter_ != nullptr) {
    RedisModule_UnregisterCommandFilter(context, filter_);
    filter_ = nullptr;
  }
}

void Refusal::set_loading(bool loading) {
  loading_ = loading;
  follow_settings(context_);
}

std::string Refusal::message() const {
  if (loading_) return "LOADING the keys of the pool are coming back";
  const std::string prefix = device_failed_ ? "PXIO " : "PXFULL ";
  std::string message =
      refuses_ ? prefix + why_ : "PXSIZE the value would be larger than perdix.max-value";
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

int Refusal::reply(Context* context) const {
  return RedisModule_ReplyWithError(context, message().c_str());
}

bool Refusal::concerns(const CommandTraits& traits) const {
  return traits.runs_script || (device_failed_ ? traits.writes : traits.adds);
}

bool Refusal::is_oversize(const CommandTraits& traits, RedisModuleCommandFilterCtx* command) const {
  const auto limit = static_cast<std::size_t>(settings_.max_value);
  std::size_t bytes = 0;
  const int count = RedisModule_CommandFilterArgsCount(command);
  for (int i = 2; i < count; ++i) bytes += view(RedisModule_CommandFilterArgGet(command, i)).size();
  if (bytes > limit) return true;
  return traits.grows_keys && bytes + grown_size(command) > limit;
}

/// The size of the largest value of a command's keys. Where the server does not say which client
/// sends a command, as Redis 7.0, the database may be any.
std::size_t Refusal::grown_size(RedisModuleCommandFilterCtx* command) const {
  std::vector<RedisModuleString*> arguments = arguments_of(command);
  const std::optional<int> database = database_of(command);
  const int first = database.value_or(0);
  const int end = database ? first + 1 : catalogue_.databases();
  std::size_t size = 0;
  for (const std::string_view name : keys_in(context_, arguments))
    for (int i = first; i < end; ++i) size = std::max(size, catalogue_.record_size(i, name));
  return size;
}

void Refusal::on_failed_look(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr && known->code() == Errc::io_error)
    on_device_failure(context_, error.what());
  else
    log(context_, "warning", std::string("a command was not looked at: ") + error.what());
}

void Refusal::filter(RedisModuleCommandFilterCtx* command) {
  if (is_in_unit()) return;  // it is refused whole or not at all
  const CommandTraits* traits = commands_.find(command);
  if (traits == nullptr) return;
  if (loading_) {
    if (!concerns_connection(*traits)) rename(command, kRefused);
    return;
  }
  if (traits->name == "multi") transactions_.on_multi();
  // A replica follows its primary, whatever it can keep.
  if (!concerns(*traits) || is_replica()) return;
  if (refuses_ || (settings_.refuses_oversize() && is_oversize(*traits, command))) replace(command);
}

/// The rejection of a name that is no command shows the name, and so the error.
void Refusal::replace(RedisModuleCommandFilterCtx* command) {
  rename(command, transactions_.may_hold(context_, command) ? message() : std::string(kRefused));
}

}  // namespace perdix::valkey
