// PX.INCRBY and PX.CAS: changes that depend on the value. Replicas and the append-only file get the
// new value, so that a change is never applied twice.
#include <charconv>

#include "command.h"

namespace perdix::valkey {
namespace {

long long signed_number(std::string_view text, const char* what) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Errc::invalid_argument, std::string(what) + " is not an integer or out of range");
  return number;
}

[[noreturn]] void overflow() {
  throw Error(Errc::invalid_argument, "increment or decrement would overflow");
}

/// The sum, as the table writes it: full range of u64, or of a signed number in bytes.
std::string sum(Kind kind, std::string_view before, long long delta) {
  if (kind == Kind::u64) {
    const std::uint64_t value = before.empty() ? 0 : decode_u64(before);
    std::uint64_t result = 0;
    const bool wraps =
        delta >= 0 ? __builtin_add_overflow(value, static_cast<std::uint64_t>(delta), &result)
                   : __builtin_sub_overflow(value, -static_cast<std::uint64_t>(delta), &result);
    if (wraps) overflow();
    return std::to_string(result);
  }
  const long long value = before.empty() ? 0 : signed_number(before, "the value");
  long long result = 0;
  if (__builtin_add_overflow(value, delta, &result)) overflow();
  return std::to_string(result);
}

void replicate_value(Context* context, Arguments arguments, std::string_view value,
                     const char* event) {
  RedisModule_Replicate(context, "PX.PUT", "ssb", arguments[1], arguments[2], value.data(),
                        value.size());
  notify(context, event, arguments[1]);
}

}  // namespace

int increment(Context* context, Arguments arguments) {
  const long long delta = signed_number(view(arguments[3]), "value");
  TableKey key(context, arguments[1], REDISMODULE_READ | REDISMODULE_WRITE);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) create_default(context, key, arguments[1]);
  Index& index = key.table().index();
  const Encoded field(key.info().key_kind, view(arguments[2]));
  const Kind kind = key.info().value_kind;
  const std::string after = sum(kind, index.get(field.bytes()).value_or(""), delta);
  index.put(field.bytes(), Encoded(kind, after).bytes());
  replicate_value(context, arguments, after, "px.incrby");
  // A u64 may be larger than the protocol's integers.
  if (after.size() > 18 && kind == Kind::u64) return reply_bytes(context, after);
  return RedisModule_ReplyWithLongLong(context, signed_number(after, "the sum"));
}

int compare_and_set(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ | REDISMODULE_WRITE);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) return reply_number(context, 0);
  const Encoded field(key.info().key_kind, view(arguments[2]));
  const Encoded expected(key.info().value_kind, view(arguments[3]));
  const Encoded desired(key.info().value_kind, view(arguments[4]));
  const bool changed =
      key.table().index().compare_exchange(field.bytes(), expected.bytes(), desired.bytes());
  if (changed) replicate_value(context, arguments, view(arguments[4]), "px.cas");
  return reply_number(context, changed ? 1 : 0);
}

}  // namespace perdix::valkey
