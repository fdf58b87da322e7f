// Bounds of a leaf's key range as the middle nodes keep them in DRAM, where comparing costs no PM
// line.
//
// `Low` is the least key that belongs to the leaf, `High` the end of the range: the paper's lkey
// and hkey. The first leaf's low bound is the least key of all, the last leaf's high bound is open.
// `successor` is the low bound of the leaf whose range begins where this one's ends.
// Immutable once built; pure functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include <perdix/types.h>

#include "util/arena.h"

namespace perdix::detail::index::sptree {

template <Storable K>
struct Bounds;

/// Integers: `High` is the last key inside, so that 2^64-1 needs no special case.
template <>
struct Bounds<std::uint64_t> {
  using Low = std::uint64_t;
  using High = std::uint64_t;

  static constexpr Low least() { return 0; }
  static constexpr High open() { return ~std::uint64_t{0}; }
  static std::uint64_t view(Low low) { return low; }
  static High end_at(Low successor) { return successor - 1; }
  static bool covers(High high, std::uint64_t key) { return key <= high; }
  static bool is_open(High high) { return high == open(); }
  static std::uint64_t after(High high) { return high + 1; }
  static Low successor(High high) { return high + 1; }

  static Low make(util::Arena&, std::uint64_t key) { return key; }
  static void release(util::Arena&, Low) {}
};

/// A string in an arena.
struct DramString {
  std::uint32_t size;
  char bytes[];

  std::string_view view() const { return {bytes, size}; }
};

/// Strings: `High` is the successor's low bound itself, which is not inside; nullptr is open.
template <>
struct Bounds<std::string> {
  using Low = const DramString*;
  using High = const DramString*;

  static constexpr Low least() { return nullptr; }
  static constexpr High open() { return nullptr; }
  static std::string_view view(Low low) {
    return low == nullptr ? std::string_view{} : low->view();
  }
  static High end_at(Low successor) { return successor; }
  static bool covers(High high, std::string_view key) {
    return high == nullptr || key < high->view();
  }
  static bool is_open(High high) { return high == nullptr; }
  static std::string_view after(High high) { return high->view(); }
  static Low successor(High high) { return high; }

  static Low make(util::Arena& arena, std::string_view key) {
    if (key.empty()) return least();
    auto* string = static_cast<DramString*>(arena.allocate(sizeof(DramString) + key.size()));
    string->size = static_cast<std::uint32_t>(key.size());
    std::memcpy(string->bytes, key.data(), key.size());
    return string;
  }
  static void release(util::Arena& arena, Low low) {
    if (low == nullptr) return;
    arena.release(const_cast<DramString*>(low), sizeof(DramString) + low->size);
  }
};

}  // namespace perdix::detail::index::sptree
