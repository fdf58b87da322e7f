#include "refusal.h"

#include <algorithm>

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

void filter_command(RedisModuleCommandFilterCtx* command) { installed()->filter(command); }

int reply_refused(Context* context, RedisModuleString**, int) {
  return installed()->reply(context);
}

}  // namespace

Refusal::Refusal(const Pool& pool, const Settings& settings) : pool_(pool), settings_(settings) {}

void Refusal::prepare(Context* context) {
  installed() = this;
  context_ = RedisModule_GetDetachedThreadSafeContext(context);
  commands_.ask_with(context_);
  if (RedisModule_CreateCommand(context, kRefused.data(), reply_refused, "readonly fast", 0, 0,
                                0) != REDISMODULE_OK)
    throw Error(Errc::already_exists, "the server has a command PX.REFUSED of another module");
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
  const bool wanted = refuses_ || settings_.refuses_oversize();
  if (wanted && filter_ == nullptr) {
    transactions_.on_multi();
    filter_ =
        RedisModule_RegisterCommandFilter(context, filter_command, REDISMODULE_CMDFILTER_NOSELF);
  } else if (!wanted && filter_ != nullptr) {
    RedisModule_UnregisterCommandFilter(context, filter_);
    filter_ = nullptr;
  }
}

std::string Refusal::message() const {
  const std::string prefix = device_failed_ ? "PXIO " : "PXFULL ";
  std::string message =
      refuses_ ? prefix + why_ : "PXSIZE the value is larger than perdix.max-value";
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

int Refusal::reply(Context* context) const {
  return RedisModule_ReplyWithError(context, message().c_str());
}

bool Refusal::concerns(const CommandTraits& traits) const {
  return traits.runs_script || (device_failed_ ? traits.writes : traits.adds);
}

bool Refusal::is_oversize(RedisModuleCommandFilterCtx* command) const {
  std::size_t bytes = 0;
  const int count = RedisModule_CommandFilterArgsCount(command);
  for (int i = 2; i < count; ++i) bytes += view(RedisModule_CommandFilterArgGet(command, i)).size();
  return bytes > static_cast<std::size_t>(settings_.max_value);
}

void Refusal::filter(RedisModuleCommandFilterCtx* command) {
  if (is_in_unit()) return;  // it is refused whole or not at all
  const CommandTraits* traits = commands_.find(command);
  if (traits == nullptr) return;
  if (traits->name == "multi") transactions_.on_multi();
  // A replica follows its primary, whatever it can keep.
  if (!concerns(*traits) || is_replica()) return;
  if (refuses_ || (settings_.refuses_oversize() && is_oversize(command))) replace(command);
}

/// The rejection of a name that is no command shows the name, and so the error.
void Refusal::replace(RedisModuleCommandFilterCtx* command) {
  const std::string name =
      transactions_.may_hold(context_, command) ? message() : std::string(kRefused);
  RedisModule_CommandFilterArgReplace(command, 0,
                                      RedisModule_CreateString(nullptr, name.data(), name.size()));
}

}  // namespace perdix::valkey
