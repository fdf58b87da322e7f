// The buckets and tables of a cache-line hash table, as they lie in memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <perdix/tips_plugin.h>

namespace perdix::tips::plugins::clht {

inline constexpr unsigned kFirstBits = 3, kMaxBits = 40;
inline constexpr unsigned kSlots = 3;

// The state of a bucket. Only a first bucket is ever locked.
inline constexpr std::uint64_t kUsed = (1U << kSlots) - 1;  // a bit for each slot
inline constexpr std::uint64_t kLocked = kUsed + 1;
inline constexpr std::uint64_t kVersion = 2 * kLocked;

struct Bucket {
  std::atomic<std::uint64_t> state{0};
  std::atomic<Bucket*> next{nullptr};
  std::array<std::atomic<Word>, kSlots> keys{};
  std::array<std::atomic<Word>, kSlots> values{};

  Bucket* following() const { return next.load(std::memory_order_acquire); }
  std::uint64_t used() const { return state.load(std::memory_order_relaxed) & kUsed; }
};
static_assert(sizeof(Bucket) == 64);

struct Table {
  const std::uint64_t bits;
  std::atomic<Table*> next{nullptr};  // its successor; the table itself: it is closed
  std::uint64_t moved = 0;            // buckets of which all pairs are there
  std::uint64_t padding[5]{};         // buckets begin with a line

  static constexpr std::uint64_t size_for(std::uint64_t bits) { return std::uint64_t{1} << bits; }
  static constexpr std::size_t bytes(std::uint64_t bits) {
    return sizeof(Table) + size_for(bits) * sizeof(Bucket);
  }
  std::uint64_t size() const { return size_for(bits); }
  std::uint64_t index(std::uint64_t hash) const { return hash >> (64 - bits); }
  const Bucket& bucket(std::uint64_t i) const {
    return reinterpret_cast<const Bucket*>(this + 1)[i];
  }
  Bucket& bucket(std::uint64_t i) { return reinterpret_cast<Bucket*>(this + 1)[i]; }
  const Bucket& head(std::uint64_t hash) const { return bucket(index(hash)); }
  Bucket& head(std::uint64_t hash) { return bucket(index(hash)); }
  Table* successor() const {
    Table* const table = next.load();
    return table == this ? nullptr : table;
  }
  bool is_closed() const { return next.load() == this; }
};
static_assert(sizeof(Table) == 64);

/// What a bucket had at one moment.
struct Pairs {
  std::uint64_t used;
  std::array<Word, kSlots> keys, values;
  bool has(unsigned slot) const { return (used >> slot & 1) != 0; }
};

inline Pairs pairs_of(const Bucket& bucket) {
  for (;;) {
    const std::uint64_t state = bucket.state.load(std::memory_order_acquire);
    Pairs pairs{state & kUsed, {}, {}};
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      pairs.keys[slot] = bucket.keys[slot].load(std::memory_order_acquire);
      pairs.values[slot] = bucket.values[slot].load(std::memory_order_acquire);
    }
    const std::uint64_t after = bucket.state.load(std::memory_order_relaxed);
    if (((state ^ after) & ~kLocked) == 0) return pairs;
  }
}

/// An unlocked bucket without pairs.
inline bool is_free(const Bucket& head) {
  return (head.state.load() & (kUsed | kLocked)) == 0 && head.following() == nullptr;
}

}  // namespace perdix::tips::plugins::clht
