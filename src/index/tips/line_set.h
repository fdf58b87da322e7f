// A set of offsets that takes no memory while it is filled: room is made beforehand.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

#include "pm/offset.h"
#include "util/hash.h"

namespace perdix::detail::index::tips {

/// Not thread-safe. pm::kNull can't be in it.
class LineSet {
 public:
  /// The next `count` calls of insert() find room.
  void make_room(std::size_t count) {
    if (2 * (size_ + count) <= slots_.size()) return;
    std::size_t capacity = kMinCapacity;
    while (capacity < 4 * (size_ + count)) capacity *= 2;
    std::vector<pm::Offset> old(capacity);
    old.swap(slots_);
    for (const pm::Offset offset : old)
      if (offset != pm::kNull) slot_of(offset) = offset;
  }

  /// Whether insert() finds room once more.
  bool has_room() const { return 2 * (size_ + 1) <= slots_.size(); }

  /// False if it is there already.
  bool insert(pm::Offset offset) noexcept {
    assert(has_room());
    pm::Offset& slot = slot_of(offset);
    if (slot == offset) return false;
    slot = offset;
    ++size_;
    return true;
  }

  bool contains(pm::Offset offset) const noexcept {
    return !slots_.empty() && slots_[place_of(offset)] == offset;
  }

  std::size_t dram_bytes() const { return slots_.capacity() * sizeof(pm::Offset); }

  void clear() noexcept {
    slots_.assign(slots_.size(), pm::kNull);  // which takes no memory
    size_ = 0;
  }

 private:
  static constexpr std::size_t kMinCapacity = 64;

  /// Where an offset is, or would be.
  std::size_t place_of(pm::Offset offset) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = util::hash(offset) & mask;
    while (slots_[i] != pm::kNull && slots_[i] != offset) i = (i + 1) & mask;
    return i;
  }
  pm::Offset& slot_of(pm::Offset offset) noexcept { return slots_[place_of(offset)]; }

  std::vector<pm::Offset> slots_;  // a power of two, at least half of them empty
  std::size_t size_ = 0;
};

}  // namespace perdix::detail::index::tips
