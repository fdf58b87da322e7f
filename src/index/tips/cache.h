// The DRAM-cache: a chained hash table of the newest writes (paper, 4.1.1 to 4.1.4).
//
// Readers walk a chain in an epoch::Guard and take no lock. A writer holds the lock of the bucket,
// also while it makes its write durable, so that records and entries of a key are in the same
// order.
//
// Invariants, while no thread holds the bucket's lock:
//   1. A chain has at most one entry of a key.
//   2. An entry of a write that is not replayed is in its chain, unless a later write of the key
//      is.
//
// Puts stay after their replay, since a lookup is cheaper here than in the index. They go when
// their chain is too long, or when all that stay take more than a budget of bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "epoch/reclaimer.h"
#include "index/common/hash_seed.h"
#include "index/tips/entry.h"
#include "util/arena.h"
#include "util/huge_vector.h"
#include "util/seeded_hash.h"
#include "util/spin_lock.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::tips {

class Cache;

struct DestroyEntry {
  Cache* cache;
  void operator()(Entry* entry) const noexcept;
};
using NewEntry = std::unique_ptr<Entry, DestroyEntry>;

class Cache {
 public:
  struct Bucket {
    util::SpinLock lock;
    std::atomic<std::uint32_t> unlinks{0};  // entries unlinked so far; changed with the lock
    std::atomic<Entry*> head{nullptr};
  };

  struct Size {
    unsigned bits;         ///< 2^bits buckets, bits > 0
    unsigned chain;        ///< entries of a chain that stay after they were replayed, at most
    std::uint64_t budget;  ///< bytes of all entries that stay so, at most
  };

  Cache(epoch::Reclaimer& reclaimer, Size size);
  ~Cache();  ///< no thread uses the cache, and this thread is in no epoch::Guard
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Makes an entry, which the caller owns until it releases it to add(). Throws bad_alloc.
  NewEntry make_entry(Operation operation, std::uint64_t hash, std::string_view key,
                      std::string_view value);

  /// The hash of a key: of its entry, and of its place here. No caller can choose it.
  std::uint64_t hash_of(std::string_view key) const { return hash_(key); }

  Bucket& bucket(std::uint64_t hash) { return buckets_[hash >> shift_]; }
  const Bucket& bucket(std::uint64_t hash) const { return buckets_[hash >> shift_]; }

  /// Returns the entry of the key; null if the key had none at some moment of the call. Walks again
  /// if an entry was unlinked during the walk: such a walk may miss both the key's new entry, which
  /// was added at the head behind its back, and the old one. The caller is in an epoch::Guard.
  static const Entry* look_up(const Bucket& bucket, std::uint64_t hash, std::string_view key) {
    for (;;) {
      const std::uint32_t unlinks = bucket.unlinks.load(std::memory_order_acquire);
      if (const Entry* entry = find(bucket, hash, key)) return entry;
      if (bucket.unlinks.load(std::memory_order_acquire) == unlinks) return nullptr;
    }
  }

  /// Walks the chain once. Returns the entry of the key; null if it has met none, which is exact
  /// only with the bucket's lock (look_up() validates instead).
  static Entry* find(const Bucket& bucket, std::uint64_t hash, std::string_view key) {
    for (Entry* entry = bucket.head.load(std::memory_order_acquire); entry != nullptr;
         entry = entry->next().load(std::memory_order_acquire))
      if (entry->hash() == hash && entry->key() == key) return entry;
    return nullptr;
  }

  /// Frees an entry that no thread can reach.
  void destroy(Entry& entry) noexcept;

  unsigned bits() const { return 64 - shift_; }
  std::uint64_t entry_bytes() const { return static_cast<std::uint64_t>(bytes_.sum()); }

  /// Puts a new entry at the head of its chain. Unlinks `old`, the entry of the same key or null,
  /// and if the chain is too long, replayed entries at its end. The caller holds the bucket's lock.
  void add(Bucket& bucket, Entry& entry, Entry* old) noexcept;

  /// Unlinks an entry. The caller holds the bucket's lock.
  void remove(Bucket& bucket, Entry& entry) noexcept { unlink(bucket, entry); }

  /// The entry was replayed, and is in no queue from now on. It stays in its chain; if it is in
  /// none any more, it is retired.
  void dequeue(Entry& entry) noexcept {
    // Read first: once kQueued is cleared, a writer may unlink and retire the entry.
    const auto bytes = static_cast<std::int64_t>(entry.dram_bytes());
    if (entry.clear(Entry::kQueued))
      staying_.add(bytes);
    else
      retire(entry);
  }

  /// Unlinks replayed entries, bucket by bucket, until those that stay keep to the budget. Begins
  /// where the last call ended, and goes around the buckets at most once. The caller holds no
  /// bucket's lock.
  void trim() noexcept;

  /// Bytes of DRAM that buckets and entries take.
  std::uint64_t dram_bytes() const;

 private:
  struct EntryDisposer final : epoch::Disposer {
    explicit EntryDisposer(Cache& to) : cache(to) {}
    void dispose(epoch::Retirable& retired) noexcept override { cache.destroy(Entry::of(retired)); }
    Cache& cache;
  };

  void unlink(Bucket& bucket, Entry& entry) noexcept;
  void retire(Entry& entry) noexcept;
  void unlink_replayed(Bucket& bucket) noexcept;
  bool is_over_budget() const { return staying_.sum() > static_cast<std::int64_t>(budget_); }

  // Entries lie together, in huge pages; the entry of two integers takes one line.
  util::Arena arena_;
  EntryDisposer disposer_{*this};
  epoch::Reclaimer& reclaimer_;
  const unsigned shift_;
  const unsigned chain_;
  const std::uint64_t budget_;
  const util::SeededHash hash_{draw_hash_seed()};
  util::HugeVector<Bucket> buckets_;
  util::StripedCounter bytes_;          // of all entries
  util::StripedCounter staying_;        // of those that are in no queue
  std::atomic<std::uint64_t> hand_{0};  // the bucket at which trim() goes on
};

}  // namespace perdix::detail::index::tips
