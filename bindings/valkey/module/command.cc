#include "command.h"

#include <algorithm>
#include <charconv>

namespace perdix::valkey {
namespace {

std::string_view prefix_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return "ERR ";
  switch (known->code()) {
    case Errc::out_of_space: return "PXFULL ";
    case Errc::io_error: return "PXIO ";
    case Errc::too_large: return "PXSIZE ";
    default: return "ERR ";
  }
}

}  // namespace

int reply_error(Context* context, const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known != nullptr && known->code() == Errc::io_error)
    module().refusal().on_device_failure(context, error.what());
  std::string message = std::string(prefix_of(error)) + error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return RedisModule_ReplyWithError(context, message.c_str());
}

int reply_wrong_type(Context* context) {
  return RedisModule_ReplyWithError(context, REDISMODULE_ERRORMSG_WRONGTYPE);
}

bool is_word(const RedisModuleString* argument, std::string_view word) {
  const std::string_view text = view(argument);
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char c, char upper) {
    return (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c) == upper;
  });
}

std::uint64_t count_in(const RedisModuleString* argument) {
  const std::string_view text = view(argument);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Errc::invalid_argument, "value is not an integer or out of range");
  return number;
}

}  // namespace perdix::valkey
