// The chunks of spans of one node, by the length of their longest run of free spans. A map in a
// bucket changes its free spans here only. Guarded by the heap's lock.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "alloc/span_map.h"

namespace perdix::detail::alloc {

class RunBuckets {
 public:
  /// A map with a free run of at least this many spans; null if there is none.
  SpanMap* find(unsigned spans) const noexcept {
    // Any map of a higher bucket will do; of the lowest that may, a few are tried, to keep longer
    // runs whole.
    constexpr unsigned kTries = 8;
    const unsigned lowest = std::bit_width(spans);
    unsigned tries = 0;
    for (SpanMap* map = first_[lowest]; map != nullptr && tries < kTries;
         map = map->next, ++tries) {
      if (map->free.longest_run() >= spans) return map;
    }
    for (unsigned bucket = lowest + 1; bucket < first_.size(); ++bucket) {
      if (first_[bucket] != nullptr) return first_[bucket];
    }
    return nullptr;
  }

  /// The first of the maps with the longest runs, which are linked by SpanMap::next.
  SpanMap* longest() const noexcept { return first_.back(); }

  /// Free spans of all maps.
  std::uint64_t free() const noexcept { return free_; }

  /// Takes the first run of this many spans from a map that has one. Returns where it begins.
  unsigned take(SpanMap& map, unsigned spans) noexcept {
    const unsigned begin = map.free.find_run(spans);
    remove(map);
    map.free.remove(begin, spans);
    add(map);
    return begin;
  }

  /// Makes neighbouring spans of a map free.
  void give_back(SpanMap& map, unsigned begin, unsigned count) noexcept {
    remove(map);
    map.free.add(begin, count);
    add(map);
  }

  void add(SpanMap& map) noexcept {
    map.bucket = std::bit_width(map.free.longest_run());
    if (map.bucket == 0) return;  // nothing to find there
    free_ += map.free.size();
    SpanMap*& first = first_[map.bucket];
    map.previous = nullptr;
    map.next = first;
    if (first != nullptr) first->previous = &map;
    first = &map;
  }

  void remove(SpanMap& map) noexcept {
    if (map.bucket == 0) return;
    free_ -= map.free.size();
    (map.previous != nullptr ? map.previous->next : first_[map.bucket]) = map.next;
    if (map.next != nullptr) map.next->previous = map.previous;
    map.bucket = 0;
  }

 private:
  std::uint64_t free_ = 0;
  std::array<SpanMap*, 9> first_{};  // [b]: those with a free run of at least 2^(b-1) spans
};

}  // namespace perdix::detail::alloc
