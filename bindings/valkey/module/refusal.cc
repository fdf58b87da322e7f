#include "refusal.h"

#include <algorithm>

namespace perdix::valkey {
namespace {

constexpr std::string_view kReserve = "perdix:reserve";
constexpr std::size_t kReserveValues = 64;
constexpr std::size_t kReserveValue = std::size_t{64} << 10;
constexpr std::string_view kRefused = "PX.REFUSED";
constexpr unsigned kMaxPatience = 512;  // nearly a minute, at ten calls a second

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return result;
}

std::string_view text_of(RedisModuleCallReply* reply) {
  std::size_t size = 0;
  const char* bytes = reply != nullptr ? RedisModule_CallReplyStringPtr(reply, &size) : nullptr;
  return bytes != nullptr ? std::string_view(bytes, size) : std::string_view();
}

bool has_flag(RedisModuleCallReply* flags, std::string_view wanted) {
  const std::size_t count = RedisModule_CallReplyLength(flags);
  for (std::size_t i = 0; i < count; ++i)
    if (text_of(RedisModule_CallReplyArrayElement(flags, i)) == wanted) return true;
  return false;
}

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
  RedisModuleCallReply* commands = RedisModule_Call(context, "COMMAND", "");
  const std::size_t count = commands != nullptr ? RedisModule_CallReplyLength(commands) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    RedisModuleCallReply* command = RedisModule_CallReplyArrayElement(commands, i);
    RedisModuleCallReply* flags = RedisModule_CallReplyArrayElement(command, 2);
    const std::string name = lower(text_of(RedisModule_CallReplyArrayElement(command, 0)));
    if (has_flag(flags, "denyoom")) adding_.insert(name);
    if (has_flag(flags, "write")) writing_.insert(name);
  }
  if (commands != nullptr) RedisModule_FreeCallReply(commands);
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
  log(context, "warning", "nothing is durable any more, restart when the device works: " + why);
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
    filter_ = RedisModule_RegisterCommandFilter(context, filter_command, 0);
  } else if (!wanted && filter_ != nullptr) {
    RedisModule_UnregisterCommandFilter(context, filter_);
    filter_ = nullptr;
  }
}

int Refusal::reply(Context* context) const {
  const std::string prefix = device_failed_ ? "PXIO " : "PXFULL ";
  std::string message =
      refuses_ ? prefix + why_ : "PXSIZE the value is larger than perdix.max-value";
  std::replace(message.begin(), message.end(), '\n', ' ');
  return RedisModule_ReplyWithError(context, message.c_str());
}

bool Refusal::concerns(std::string_view command) const {
  return (device_failed_ ? writing_ : adding_).count(lower(command)) != 0;
}

bool Refusal::is_oversize(RedisModuleCommandFilterCtx* command) const {
  std::size_t bytes = 0;
  const int count = RedisModule_CommandFilterArgsCount(command);
  for (int i = 2; i < count; ++i) bytes += view(RedisModule_CommandFilterArgGet(command, i)).size();
  return bytes > static_cast<std::size_t>(settings_.max_value);
}

void Refusal::filter(RedisModuleCommandFilterCtx* command) const {
  const auto* name = RedisModule_CommandFilterArgGet(command, 0);
  if (!concerns(view(name))) return;
  const bool refused = refuses_ || (settings_.refuses_oversize() && is_oversize(command));
  // A replica follows its primary, whatever it can keep.
  if (!refused || is_replica()) return;
  RedisModule_CommandFilterArgReplace(
      command, 0, RedisModule_CreateString(nullptr, kRefused.data(), kRefused.size()));
}

}  // namespace perdix::valkey
