// The limits of keys and values, as every writing call checks them. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include <perdix/types.h>

namespace perdix::detail::index {

inline void check_key(std::uint64_t) {}
inline void check_value(std::uint64_t) {}

/// Throw too_large above kMaxKeySize or kMaxValueSize.
void check_key(std::string_view key);
void check_value(std::string_view value);

}  // namespace perdix::detail::index
