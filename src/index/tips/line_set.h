// A set of offsets that takes no memory while it is filled: room is made beforehand.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pm/offset.h"
#include "util/hash.h"

namespace perdix::detail::index::tips {

/// Offsets are multiples of 16. Those of a kilobyte share a slot, since lines of one node come
/// together. Not thread-safe. What is below 1024 can't be in it.
class LineSet {
 public:
  /// The next `count` calls of insert() find room.
  void make_room(std::size_t count) {
    if (2 * (size_ + count) <= slots_.size()) return;
    std::size_t capacity = kMinCapacity;
    while (capacity < 4 * (size_ + count)) capacity *= 2;
    std::vector<Slot> old(capacity);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.region != 0) slots_[place_of(slot.region)] = slot;
  }

  /// Whether insert() finds room once more.
  bool has_room() const { return 2 * (size_ + 1) <= slots_.size(); }

  /// False if it is there already.
  bool insert(pm::Offset offset) noexcept {
    assert(has_room() && offset % kUnit == 0 && offset >= kRegion);
    Slot& slot = slots_[place_of(offset / kRegion)];
    if (slot.region == 0) ++size_;
    slot.region = offset / kRegion;
    const std::uint64_t before = slot.units;
    slot.units |= unit_of(offset);
    return slot.units != before;
  }

  bool contains(pm::Offset offset) const noexcept {
    return !slots_.empty() && (slots_[place_of(offset / kRegion)].units & unit_of(offset)) != 0;
  }

  std::size_t dram_bytes() const { return slots_.capacity() * sizeof(Slot); }

  void clear() noexcept {
    slots_.assign(slots_.size(), Slot{});  // which takes no memory
    size_ = 0;
  }

 private:
  static constexpr std::size_t kMinCapacity = 64;
  static constexpr std::uint64_t kUnit = 16, kRegion = 64 * kUnit;

  struct Slot {
    std::uint64_t region = 0;  // 0: none
    std::uint64_t units = 0;   // of it, a bit for each
  };

  static std::uint64_t unit_of(pm::Offset offset) noexcept {
    return std::uint64_t{1} << (offset % kRegion / kUnit);
  }

  /// Where a region is, or would be.
  std::size_t place_of(std::uint64_t region) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = util::hash(region) & mask;
    while (slots_[i].region != 0 && slots_[i].region != region) i = (i + 1) & mask;
    return i;
  }

  std::vector<Slot> slots_;  // a power of two, at least half of them empty
  std::size_t size_ = 0;     // regions
};

}  // namespace perdix::detail::index::tips
