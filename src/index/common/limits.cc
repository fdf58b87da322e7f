#include "index/common/limits.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index {
namespace {

void check_size(std::string_view what, std::string_view bytes, std::uint64_t limit) {
  if (bytes.size() <= limit) return;
  throw Error(Errc::too_large,
              fmt::format("a {} of {} bytes; the limit is {} bytes", what, bytes.size(), limit));
}

}  // namespace

void check_key(std::string_view key) { check_size("key", key, kMaxKeySize); }
void check_value(std::string_view value) { check_size("value", value, kMaxValueSize); }

}  // namespace perdix::detail::index
