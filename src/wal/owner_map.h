// A hash table from owners to positions, for the hundreds of thousands of records that opening a
// log may read: open addressing in one array, since a node for each entry would take most of the
// time. Not thread-safe while it changes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "util/hash.h"
#include "util/huge_vector.h"
#include "wal/layout.h"

namespace perdix::detail::wal {

class OwnerMap {
 public:
  /// Makes room for this many owners, so that the table need not grow until then.
  void reserve(std::size_t owners) {
    const std::size_t capacity = std::bit_ceil(std::max(2 * owners, kMinCapacity));
    if (capacity > entries_.size()) grow_to(capacity);
  }

  /// The owner's position, for changing it; 0 if there was no such owner. Valid until the next
  /// call.
  Position& at(Owner owner) {
    if (2 * (size_ + 1) > entries_.size()) reserve(2 * (size_ + 1));
    TableEntry& entry = entries_[place_of(owner)];
    if (entry.owner == 0) {
      ++size_;
      entry = {owner, 0};
    }
    return entry.head;
  }

  /// Asks for the memory where at() or find() will look for the owner.
  void prefetch(Owner owner) const noexcept {
    if (!entries_.empty()) __builtin_prefetch(&entries_[first_place_of(owner)], 1);
  }

  /// nullptr if there is no such owner.
  const Position* find(Owner owner) const noexcept {
    if (entries_.empty()) return nullptr;
    const TableEntry& entry = entries_[place_of(owner)];
    return entry.owner == owner ? &entry.head : nullptr;
  }

  /// Calls visit(owner, position) for each.
  template <class F>
  void for_each(F visit) const {
    for (const TableEntry& entry : entries_) {
      if (entry.owner != 0) visit(entry.owner, entry.head);
    }
  }

 private:
  static constexpr std::size_t kMinCapacity = 64;

  std::size_t first_place_of(Owner owner) const noexcept {
    return util::hash(owner) & (entries_.size() - 1);
  }

  /// The owner's entry, or the free one that would be.
  std::size_t place_of(Owner owner) const noexcept {
    const std::size_t mask = entries_.size() - 1;
    std::size_t i = first_place_of(owner);
    while (entries_[i].owner != 0 && entries_[i].owner != owner) i = (i + 1) & mask;
    return i;
  }

  void grow_to(std::size_t capacity) {
    util::HugeVector<TableEntry> before(capacity, TableEntry{});  // {}: all free, not unset
    before.swap(entries_);
    for (const TableEntry& entry : before) {
      if (entry.owner != 0) entries_[place_of(entry.owner)] = entry;
    }
  }

  util::HugeVector<TableEntry> entries_;  // a power of two of them, or none; owner 0: free
  std::size_t size_ = 0;
};

}  // namespace perdix::detail::wal
