// A cache-line hash table (David, Guerraoui and Trigonakis, ASPLOS 2015): a bucket is one line, of
// three pairs, a lock for writers and the next bucket of its chain. Readers take no lock.
//
// Buckets are chosen by the hash's highest bits. A table with too many or too few pairs gets a
// successor, and each write moves some pairs there. So for a while there are two tables. A table
// that has lost its last pair goes, unless it is as small as the first one: that needs no memory,
// which a successor might not get in a full pool.
//
//   C1. The lock of a chain's first bucket guards the chain.
//   C2. A pair of a bucket never changes its slot. The version in a bucket's state changes before
//       an emptied slot is used again, so a reader that finds the same state before and after has
//       read pairs that were there.
//   C3. A table with a successor gets no new pairs, and a pair is in the successor before it leaves
//       its table. So a reader that looks into the successor last misses no pair.
//   C4. Locks are taken in the order of the tables.
//   C5. A thread that locks a bucket and then finds no successor has locked it before the successor
//       existed. So the code that moves pairs passes an empty, unlocked bucket without its lock.
//       (All of these accesses are sequentially consistent.)
//   C6. A table that is its own successor is closed: it gets no pairs, and writers of new ones wait
//       until it is open again or has gone. It goes if all its buckets are empty when it is closed.
//       A reader ends there and misses no pair: as long as the table is there, no other has one,
//       and when it went there was none.
//
// `Memory` is where it lies: Volatile or Durable (perdix/tips_plugin.h). Volatile frees memory
// immediately, so its readers must exclude writers.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "plugins/clht/chain_changes.h"
#include "plugins/clht/table.h"

namespace perdix::tips::plugins {

template <class Memory, class Keys>
class Clht {
  using Bucket = clht::Bucket;
  using Table = clht::Table;
  using Pairs = clht::Pairs;
  using Chains = clht::ChainChanges<Memory, Keys>;
  using Locked = typename Chains::Locked;
  using Place = typename Chains::Place;

 public:
  bool put(Word key, Word value, Word& old) {
    const std::uint64_t hash = Keys::hash(key);
    std::optional<bool> there = put_into(first_table(), hash, key, value, old);
    for (Backoff backoff; !there; there = put_into(first_table(), hash, key, value, old))
      backoff.pause();
    if (!*there) {
      const std::uint64_t pairs = Chains::change(size_).fetch_add(1) + 1;
      const Table& table = *first();  // it has the pair, so it stays
      if (pairs > kDense * table.size()) try_resize(pairs, table.bits + 1);
    }
    move_some();
    return *there;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    Table* const table = first();
    if (table == nullptr || !erase_from(*table, Keys::hash(key), key, old_key, old_value))
      return false;
    const std::uint64_t pairs = Chains::change(size_).fetch_sub(1) - 1;
    pairs == 0 ? clear() : shrink(pairs);
    move_some();
    return true;
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    const std::uint64_t hash = Keys::hash(key);
    for (const Table* table = first(); table != nullptr; table = table->successor()) {
      if (!is_readable(trust, table)) return trust.damaged();
      bool is_head = true;  // it is read with its table
      for (const Bucket* bucket = &table->head(hash); bucket != nullptr;
           bucket = bucket->following()) {
        if (!std::exchange(is_head, false) && !trust.readable(bucket, sizeof(Bucket)))
          return trust.damaged();
        const Pairs pairs = pairs_of(*bucket);
        for (unsigned slot = 0; slot < clht::kSlots; ++slot) {
          if (!pairs.has(slot)) continue;
          if (!trust.key(pairs.keys[slot])) return trust.damaged();
          if (Keys::equal(pairs.keys[slot], key)) return value = pairs.values[slot], true;
        }
      }
    }
    return false;
  }

  std::uint64_t size() const { return size_.load(); }

  /// Shows the pairs of a bucket, from a hash on. Returns the first hash of the next bucket.
  std::uint64_t walk(std::uint64_t hash, void* context, ShowPair show) const {
    const Table* table = first();
    if (table == nullptr) return 0;
    const std::uint64_t last = hash | ~std::uint64_t{0} >> table->bits;
    std::vector<std::pair<Word, Word>> pairs;
    for (; table != nullptr; table = table->successor())
      for (std::uint64_t i = table->index(hash); i <= table->index(last); ++i)
        collect(table->bucket(i), hash, last, pairs);
    // One that was moved, or erased and put again, while others were read may be there twice.
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& a, const auto& b) { return Keys::less(a.first, b.first); });
    const auto end = std::unique(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
      return Keys::equal(a.first, b.first);
    });
    std::for_each(pairs.begin(), end,
                  [&](const auto& pair) { show(context, pair.first, pair.second); });
    return last + 1;
  }

  bool inspect(Inspector& inspector) const {
    const Table* const table = first();
    if (table == nullptr) return size_ == 0;
    std::uint64_t pairs = 0;
    if (!inspect_table(inspector, table, pairs)) return false;
    if (const Table* const next = table->successor()) {
      if (!inspect_table(inspector, next, pairs) || next->successor() != nullptr) return false;
      if (next->bits != table->bits + 1 && next->bits + 1 != table->bits) return false;
    }
    return pairs == size_;
  }

  /// The locks of buckets have undo records from before they were taken, so a crash leaves none.
  void renew_locks() { new (&resizing_) SpinLock; }

  /// A bucket, those for what it moves into a new table, and the first table. Larger ones are done
  /// without.
  static constexpr PutTakes put_takes() {
    return {{{sizeof(Bucket), 1 + kMovedIntoNew}, {Table::bytes(clht::kFirstBits), 1}}};
  }

 private:
  static constexpr std::uint64_t kDense = 2;    // pairs for a bucket
  static constexpr std::uint64_t kSparse = 4;   // buckets for a pair
  static constexpr unsigned kAtOnce = 16;       // pairs or runs of empty buckets a write moves
  static constexpr unsigned kRun = 64;          // buckets of such a run
  static constexpr unsigned kMovedIntoNew = 2;  // new buckets that it makes for that

  Table* first() const { return table_.load(std::memory_order_acquire); }

  static Table* new_table(std::uint64_t bits) {
    auto* const table = new (Memory::allocate(Table::bytes(bits))) Table{bits};
    for (std::uint64_t i = 0; i < table->size(); ++i) new (&table->bucket(i)) Bucket;
    return table;
  }

  Table& first_table() {
    if (Table* const table = first()) return *table;
    const std::lock_guard guard(Chains::change(resizing_));
    if (first() == nullptr)
      Chains::change(table_).store(new_table(clht::kFirstBits), std::memory_order_release);
    return *first();
  }

  /// Whether the key was there. None: the table was closed, and nothing has happened.
  static std::optional<bool> put_into(Table& table, std::uint64_t hash, Word key, Word value,
                                      Word& old) {
    Bucket& head = table.head(hash);
    const Locked lock(head);
    if (const Place place = Chains::find_in(head, key); place.bucket != nullptr) {
      old = Chains::change(*place.bucket)
                .values[place.slot]
                .exchange(value, std::memory_order_acq_rel);
      return true;
    }
    // Read with the lock: what is moved from this chain is so later.
    if (table.is_closed()) return std::nullopt;
    if (Table* const next = table.successor()) return put_into(*next, hash, key, value, old);
    Chains::add(head, key, value);
    return false;
  }

  static bool erase_from(Table& table, std::uint64_t hash, Word key, Word& old_key,
                         Word& old_value) {
    Bucket& head = table.head(hash);
    const Locked lock(head);
    if (const Place place = Chains::find_in(head, key); place.bucket != nullptr) {
      old_key = place.bucket->keys[place.slot], old_value = place.bucket->values[place.slot];
      Chains::remove(head, place);
      return true;
    }
    Table* const next = table.successor();
    return next != nullptr && erase_from(*next, hash, key, old_key, old_value);
  }

  void shrink(std::uint64_t pairs) {
    const Table* const table = first();  // null: another thread has erased the last pair
    if (table == nullptr || table->bits == clht::kFirstBits || pairs > table->size() / kSparse)
      return;
    try_resize(pairs, table->bits - 1);
  }

  /// Now and then: there may be no memory, and pairs move with writes only.
  void try_resize(std::uint64_t pairs, std::uint64_t bits) {
    const std::unique_lock guard(Chains::change(resizing_), std::try_to_lock);
    if (!guard.owns_lock() || first() == nullptr) return;
    Table& table = *first();
    if (table.next.load() != nullptr || bits > clht::kMaxBits) return;
    if (bits != table.bits + 1 && bits + 1 != table.bits) return;  // another thread was faster
    if (pairs % (table.size() >> clht::kFirstBits) > 1) return;
    try {
      Table* const next = new_table(bits);
      Chains::change(table.next).store(next);
    } catch (const std::exception&) {  // it stays as large as it is
    }
  }

  /// The last pair has gone, and no later write may come that would shrink the table.
  void clear() {
    const std::lock_guard guard(Chains::change(resizing_));
    if (first() == nullptr || size_ > 0) return;
    move(~0U, ~0U);  // pairs that were put and not counted yet, and empty buckets
    Table& table = *first();
    if (table.successor() != nullptr || table.bits == clht::kFirstBits) return;
    Chains::change(table.next).store(&table);
    if (!is_empty(table)) return table.next.store(nullptr);
    Chains::change(table_).store(nullptr, std::memory_order_release);
    Memory::free(&table);
  }

  /// Of a closed table: what has a bucket's lock may still put a pair there.
  static bool is_empty(Table& table) {
    for (std::uint64_t i = 0; i < table.size(); ++i) {
      Bucket& head = table.bucket(i);
      if (is_free(head)) continue;
      const Locked lock(head);
      if (head.used() != 0 || head.following() != nullptr) return false;
    }
    return true;
  }

  void move_some() {
    const Table* const table = first();
    if (table == nullptr || table->successor() == nullptr) return;
    const std::unique_lock guard(Chains::change(resizing_), std::try_to_lock);
    if (guard.owns_lock() && first() != nullptr) move(kAtOnce, kRun);
  }

  /// With resizing_. Pairs for which there is no room and no memory stay where they are.
  void move(unsigned steps, unsigned run) {
    unsigned buckets = kMovedIntoNew;
    try {
      for (; steps > 0 && first()->successor() != nullptr; --steps)
        if (!move_one(*first(), *first()->successor(), run, buckets)) return;
    } catch (const std::exception&) {  // a later write goes on
    }
  }

  /// With resizing_: the end of a run of empty buckets, which begins where pairs are moved.
  static std::uint64_t end_of_run(const Table& from, unsigned most) {
    const std::uint64_t end = from.moved + std::min<std::uint64_t>(most, from.size() - from.moved);
    std::uint64_t i = from.moved;
    while (i < end && is_free(from.bucket(i))) ++i;
    return i;
  }

  /// With resizing_. False if it would need more new buckets than it may make.
  bool move_one(Table& from, Table& to, unsigned run, unsigned& buckets) {
    if (from.moved == from.size()) {
      Chains::change(table_).store(&to, std::memory_order_release);
      Memory::free(&from);
      return true;
    }
    if (const std::uint64_t end = end_of_run(from, run); end != from.moved) {
      Chains::change(from.moved) = end;
      return true;
    }
    Bucket& head = from.bucket(from.moved);
    const Locked lock(head);
    Bucket& bucket = head.following() == nullptr ? head : *head.following();
    if (bucket.used() == 0) {
      ++Chains::change(from.moved);
      return true;
    }
    const auto slot = static_cast<unsigned>(std::countr_zero(bucket.used()));
    const Word key = bucket.keys[slot];
    Bucket& new_head = to.head(Keys::hash(key));
    const Locked new_lock(new_head);
    if (Chains::bucket_with_room(new_head) == nullptr && buckets-- == 0) return false;
    Chains::add(new_head, key, bucket.values[slot]);
    Chains::remove(head, {&bucket, slot});
    return true;
  }

  static void collect(const Bucket& head, std::uint64_t from, std::uint64_t to,
                      std::vector<std::pair<Word, Word>>& all) {
    for (const Bucket* bucket = &head; bucket != nullptr; bucket = bucket->following()) {
      const Pairs pairs = pairs_of(*bucket);
      for (unsigned slot = 0; slot < clht::kSlots; ++slot) {
        if (!pairs.has(slot)) continue;
        const std::uint64_t hash = Keys::hash(pairs.keys[slot]);
        if (hash >= from && hash <= to) all.emplace_back(pairs.keys[slot], pairs.values[slot]);
      }
    }
  }

  template <class Trust>
  static bool is_readable(const Trust& trust, const Table* table) {
    if constexpr (!Trust::kDoubts) return true;
    return trust.holds(table, sizeof(Table)) && is_sound(*table) &&
           trust.readable(table, Table::bytes(table->bits));
  }

  static bool is_sound(const Table& table) {
    return table.bits >= clht::kFirstBits && table.bits <= clht::kMaxBits &&
           table.moved <= table.size() && !table.is_closed();
  }

  static bool inspect_table(Inspector& inspector, const Table* table, std::uint64_t& pairs) {
    if (!inspector.readable(table, sizeof(Table)) || !is_sound(*table)) return false;
    if (!inspector.node(table, Table::bytes(table->bits))) return false;
    for (std::uint64_t i = 0; i < table->size(); ++i)
      if (!inspect_chain(inspector, *table, i, pairs)) return false;
    return table->successor() != nullptr || table->moved == 0;
  }

  static bool inspect_chain(Inspector& inspector, const Table& table, std::uint64_t i,
                            std::uint64_t& pairs) {
    const Bucket& head = table.bucket(i);
    if (i < table.moved && (head.used() != 0 || head.following() != nullptr)) return false;
    bool is_head = true;  // it was shown with its table
    for (const Bucket* bucket = &head; bucket != nullptr; bucket = bucket->following()) {
      if (!std::exchange(is_head, false) &&
          (!inspector.node(bucket, sizeof(Bucket)) || bucket->used() == 0))
        return false;
      if ((bucket->state & clht::kLocked) != 0) return false;
      for (unsigned slot = 0; slot < clht::kSlots; ++slot) {
        if ((bucket->used() >> slot & 1) == 0) continue;
        ++pairs;
        if (!inspector.pair(bucket->keys[slot], bucket->values[slot])) return false;
        if (table.index(Keys::hash(bucket->keys[slot])) != i) return false;
      }
    }
    return true;
  }

  std::atomic<Table*> table_{nullptr};  // the oldest; null: there is no pair
  std::atomic<std::uint64_t> size_{0};
  SpinLock resizing_;  // guards table_, and `next` and `moved` of tables
};

}  // namespace perdix::tips::plugins
