// The DRAM-cache: a chained hash table of the newest writes (paper, 4.1.1 to 4.1.4).
//
// Readers walk a chain in an epoch::Guard and take no lock. A writer holds the lock of the bucket,
// also while it makes its write durable, so that the order of records and of entries is the same.
// A chain has at most one entry of a key. Puts that were replayed stay, since reading them is
// cheaper than the index, until their chain is too long, or all that stay take more than a budget.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "epoch/reclaimer.h"
#include "index/tips/entry.h"
#include "util/arena.h"
#include "util/huge_vector.h"
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
    std::atomic<std::uint32_t> unlinks{0};  // how often an entry was taken out; with the lock
    std::atomic<Entry*> head{nullptr};
  };

  struct Size {
    unsigned bits;         ///< 2^bits buckets, bits > 0
    unsigned chain;        ///< entries of a chain that stay after they were replayed, at most
    std::uint64_t budget;  ///< bytes of all these entries, at most
  };

  Cache(epoch::Reclaimer& reclaimer, Size size);
  ~Cache();  ///< no thread uses it, and this thread has no Guard
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// An entry that no other thread has yet. Throws bad_alloc.
  NewEntry make_entry(Operation operation, std::uint64_t hash, std::string_view key,
                      std::string_view value);

  Bucket& bucket(std::uint64_t hash) { return buckets_[hash >> shift_]; }
  const Bucket& bucket(std::uint64_t hash) const { return buckets_[hash >> shift_]; }

  /// In a Guard: the entry of the key; null if there was a moment of the call when it had none. A
  /// walk that an unlinking meets may see neither a key's new entry, ahead of it, nor the old one.
  static const Entry* look_up(const Bucket& bucket, std::uint64_t hash, std::string_view key) {
    for (;;) {
      const std::uint32_t unlinks = bucket.unlinks.load(std::memory_order_acquire);
      if (const Entry* entry = find(bucket, hash, key)) return entry;
      if (bucket.unlinks.load(std::memory_order_acquire) == unlinks) return nullptr;
    }
  }

  /// With the bucket's lock: the entry of the key; null if it has none.
  static Entry* find(const Bucket& bucket, std::uint64_t hash, std::string_view key) {
    for (Entry* entry = bucket.head.load(std::memory_order_acquire); entry != nullptr;
         entry = entry->next().load(std::memory_order_acquire))
      if (entry->hash() == hash && entry->key() == key) return entry;
    return nullptr;
  }

  /// Frees an entry that no thread has.
  void destroy(Entry& entry) noexcept;

  unsigned bits() const { return 64 - shift_; }
  std::uint64_t entry_bytes() const { return static_cast<std::uint64_t>(bytes_.sum()); }

  /// With the bucket's lock: puts a new entry at the head; takes out `old`, that of the same key or
  /// null, and what was replayed of a chain that is too long.
  void add(Bucket& bucket, Entry& entry, Entry* old) noexcept;

  /// With the bucket's lock.
  void remove(Bucket& bucket, Entry& entry) noexcept { unlink(bucket, entry); }

  /// Takes an entry out of its queue: it was replayed.
  void dequeue(Entry& entry) noexcept {
    const auto bytes = static_cast<std::int64_t>(entry.dram_bytes());  // a writer may take it out
    if (entry.clear(Entry::kQueued))
      staying_.add(bytes);
    else
      retire(entry);
  }

  /// Keeps the budget. The caller has no bucket's lock. Goes around the buckets, at most once in a
  /// call, so it takes as much time as entries were added since.
  void trim() noexcept;

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

  // Entries lie together, in huge pages, and one of two integers in one line.
  util::Arena arena_;
  EntryDisposer disposer_{*this};
  epoch::Reclaimer& reclaimer_;
  const unsigned shift_;
  const unsigned chain_;
  const std::uint64_t budget_;
  util::HugeVector<Bucket> buckets_;
  util::StripedCounter bytes_;          // of all entries
  util::StripedCounter staying_;        // of those that are in no queue
  std::atomic<std::uint64_t> hand_{0};  // where trim() goes on
};

}  // namespace perdix::detail::index::tips
