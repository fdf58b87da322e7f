// The levels of the directory of a lock-free hash table.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include <perdix/tips_plugin.h>

#include "plugins/lfhash/list.h"

namespace perdix::tips::plugins::lfhash {

inline constexpr unsigned kMaxBits = 32;  // levels

/// An entry of the directory; null: its place is not made.
using Entry = std::atomic<ListPlace*>;

constexpr std::uint64_t entries_of(unsigned level) { return std::uint64_t{1} << (level - 1); }
constexpr std::size_t bytes_of_level(unsigned level) { return entries_of(level) * sizeof(Entry); }

/// The level of a place.
inline unsigned level_of(Order order) {
  return 64 - static_cast<unsigned>(std::countr_zero(order));
}
/// The place that begins the range of an order, when there are this many levels. 0: the head
/// does.
inline Order beginning(std::uint64_t bits, Order order) {
  return bits == 0 ? 0 : order >> (64 - bits) << (64 - bits);
}

/// As it lies in memory.
class Levels {
 public:
  Entry* level(unsigned n) const { return entries_[n - 1].load(std::memory_order_acquire); }

  /// The entry of level n for the place that is nearest to an order; null: it is one of a level
  /// before, or there is no such level.
  Entry* entry_of(unsigned n, Order order) const {
    const std::uint64_t prefix = order >> (64 - n);
    Entry* const entries = level(n);
    return prefix % 2 == 0 || entries == nullptr ? nullptr : &entries[prefix / 2];
  }

  /// Level n, or null: it is not there any more.
  std::atomic<Entry*>& operator[](unsigned n) { return entries_[n - 1]; }

  /// Whether a table that uses `bits` levels has the right ones. Counts their places.
  bool inspect(Inspector& inspector, std::uint64_t bits, std::uint64_t& listed) const {
    for (unsigned n = 1; n <= kMaxBits; ++n) {
      const Entry* const entries = level(n);
      if (entries == nullptr && n > bits) continue;
      if (n > bits + 1 || !inspector.node(entries, bytes_of_level(n))) return false;
      for (std::uint64_t i = 0; i < entries_of(n); ++i) listed += entries[i] != nullptr ? 1 : 0;
    }
    return true;
  }

  /// Whether a place of the list is the one in the directory.
  bool is_listed(const ListPlace& place) const {
    const unsigned n = level_of(place.order);
    const Entry* const entry = n == 0 || n > kMaxBits ? nullptr : entry_of(n, place.order);
    return entry != nullptr && *entry == &place;
  }

 private:
  std::array<std::atomic<Entry*>, kMaxBits> entries_{};
};

}  // namespace perdix::tips::plugins::lfhash
