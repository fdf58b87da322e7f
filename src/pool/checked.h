// Objects at offsets that were read from PM. A pool's file is not trusted: an offset is checked
// where it is followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pm/access.h"
#include "pm/offset.h"
#include "pool/pool_core.h"

namespace perdix::detail::pool {

/// Remedies for damage, as the last part of a message.
inline constexpr std::string_view kRestore = "restore the pool from a copy";
inline constexpr std::string_view kCheck = "run `perdix check` on the pool";

/// Throws Errc::corrupt with the message "<the pool's file>: <finding>; <remedy>". `finding` is a
/// clause: "the leaf at offset 0x40 has no successor".
[[noreturn]] void throw_damaged(const PoolCore& pool, std::string_view finding,
                                std::string_view remedy = kRestore);

/// Throws the most frequent finding, as throw_damaged() does: an index has `what` ("a leaf") at an
/// offset where none can be.
[[noreturn]] void throw_corrupt(const PoolCore& pool, std::string_view what, pm::Offset offset);

/// The object at an offset. Throws Errc::corrupt unless all of it lies in the pool, at a multiple
/// of `alignment`, and valid(object) holds.
template <class T, class Valid>
T& checked(const PoolCore& pool, pm::Offset offset, std::string_view what, Valid valid,
           std::size_t alignment = alignof(T)) {
  if (offset % alignment == 0 && pool.contains(offset, sizeof(T))) {
    T& object = *pool.at<T>(offset);
    if (valid(object)) return object;
  }
  throw_corrupt(pool, what, offset);
}

/// Like checked(), for an object that a magic number marks.
template <class T>
T& checked_by_magic(const PoolCore& pool, pm::Offset offset, std::string_view what,
                    std::uint64_t magic, std::size_t alignment = alignof(T)) {
  const auto marked = [&](const T& object) { return pm::load(object.magic) == magic; };
  return checked<T>(pool, offset, what, marked, alignment);
}

}  // namespace perdix::detail::pool
