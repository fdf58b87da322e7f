// What the sample hash index keeps in PM: one array of slots, and a blob for each pair.
//
//   T1  A slot is kNever, kErased, or the word of an allocated blob (index/common/codec.h), tagged
//       with the key's hash16: four bytes with the size of the key, the key, the value.
//   T2  A key has at most one slot. No slot from the one of its hash on up to it is kNever.
//   T3  At least one slot is kNever, so that every search ends.
#pragma once

#include <cstdint>

namespace perdix::samples::hash {

inline constexpr std::uint64_t kNever = 0;   // no pair since the array was made
inline constexpr std::uint64_t kErased = 1;  // no pair any more

/// What the index's root leads to. Never changes its size: the root gets another one instead.
struct Array {
  std::uint64_t size;  // slots: a power of two, and that many words follow
};
static_assert(sizeof(Array) == 8);

}  // namespace perdix::samples::hash
