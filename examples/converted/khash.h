// The hash table of klib, khash 0.2.8 (Attractive Chaos, 2008 to 2011), as a plug-in of Tips: 64 of
// them, each behind a readers-writer lock, chosen by the highest bits of a key's hash. One table
// takes a lock as a whole, and its rehash takes time in proportion to its pairs. The header is
// that of the package libhts-dev with khash.patch, which says before each store what it changes,
// and rehashes copies.
//
// A table that gets no memory to grow fills up the slots that it has.
//
// `Memory` is where it lies: perdix::tips::Volatile or Durable.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>

#include <perdix/error.h>
#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

// The header's own hooks, and those that the patch adds: members of the class below.
#define kmalloc(bytes) allocate(bytes)
#define kfree(block) release((void*)(block))
#define kcopy(block, bytes, new_bytes) copy(block, bytes, new_bytes)
#define kannounce(place, bytes) announce(place, bytes)
#include <announced/khash.h>

namespace perdix::examples {

template <class Memory, class Keys>
class Khash {
 public:
  using Word = tips::Word;

  bool put(Word key, Word value, Word& old) {
    Part& part = part_of(key);
    const std::unique_lock guard(part.lock);
    int state = 0;  // 0: the key was there
    khint_t at = kh_put(words, &part.table, key, &state);
    if (state < 0) at = put_without_memory(part.table, key, state);
    Word& place = kh_value(&part.table, at);
    if (state == 0) old = place;
    Memory::add(&place, sizeof place);
    place = value;
    return state == 0;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    Part& part = part_of(key);
    const std::unique_lock guard(part.lock);
    const khint_t at = kh_get(words, &part.table, key);
    if (at == kh_end(&part.table)) return false;
    old_key = kh_key(&part.table, at), old_value = kh_value(&part.table, at);
    kh_del(words, &part.table, at);
    return true;
  }

  bool find(Word key, Word& value) const {
    const Part& part = part_of(key);
    const std::shared_lock guard(part.lock);
    const khint_t at = kh_get(words, &part.table, key);
    if (at == kh_end(&part.table)) return false;
    value = kh_value(&part.table, at);
    return true;
  }

  std::uint64_t size() const {
    std::uint64_t pairs = 0;
    for (const Part& part : parts_) {
      const std::shared_lock guard(part.lock);
      pairs += kh_size(&part.table);
    }
    return pairs;
  }

  /// A key's place is its table, which never changes; its slot does.
  std::uint64_t walk(std::uint64_t position, void* context, tips::ShowPair show) const {
    const Part& part = parts_[position];
    const std::shared_lock guard(part.lock);
    for_each(part.table, [&](Word key, Word value) { return show(context, key, value); });
    return (position + 1) % kParts;
  }

  bool inspect(tips::Inspector& inspector) const {
    for (const Part& part : parts_)
      if (!inspect(inspector, part)) return false;
    return true;
  }

  void renew_locks() {
    for (Part& part : parts_) new (&part.lock) tips::SpinningSharedMutex;
  }

  /// The arrays of a table's first four slots; larger ones it does without.
  static constexpr tips::PutTakes put_takes() {
    return {{{kFirstSlots * sizeof(Word), 2}, {sizeof(khint32_t), 2}}};
  }

 private:
  static constexpr unsigned kPartBits = 6, kParts = 1U << kPartBits, kFirstSlots = 4;

  static void* allocate(std::size_t bytes) {
    try {
      return Memory::allocate(bytes);
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  static void release(void* block) {
    if (block != nullptr) Memory::free(block);
  }
  static void* copy(const void* block, std::size_t bytes, std::size_t new_bytes) {
    void* const made = allocate(new_bytes);
    if (made != nullptr && block != nullptr) std::memcpy(made, block, bytes);
    return made;
  }

  static void announce(const void* place, std::size_t bytes) {
    Memory::add(place, bytes);  // the patch has a call before each group of stores
  }

  /// A table keeps the lowest bits.
  static khint_t slot_hash(Word key) { return static_cast<khint_t>(Keys::hash(key)); }
  static bool equal(Word a, Word b) { return Keys::equal(a, b); }

  KHASH_INIT2(words, static, Word, Word, 1, slot_hash, equal)

  struct alignas(64) Part {
    mutable tips::SpinningSharedMutex lock;  // guards what follows
    khash_t(words) table{};
  };

  static std::uint64_t part_index(Word key) { return Keys::hash(key) >> (64 - kPartBits); }
  Part& part_of(Word key) { return parts_[part_index(key)]; }
  const Part& part_of(Word key) const { return parts_[part_index(key)]; }

  /// As kh_put(), which could not grow: takes a slot that is free all the same. Only for this put:
  /// where no slot is free, kh_put() must try to grow, or it takes another key's.
  static khint_t put_without_memory(khash_t(words) & table, Word key, int& state) {
    if (const khint_t at = kh_get(words, &table, key); at != kh_end(&table)) return state = 0, at;
    if (table.size == table.n_buckets)
      throw Error(Errc::out_of_space, "no memory for a larger hash table");
    Memory::add(&table, sizeof table);
    const khint_t bound = std::exchange(table.upper_bound, table.n_occupied + 1);
    const khint_t at = kh_put(words, &table, key, &state);
    table.upper_bound = bound;
    return at;
  }

  template <class Visit>
  static bool for_each(const khash_t(words) & table, const Visit& visit) {
    for (khint_t at = 0; at != kh_end(&table); ++at)
      if (kh_exist(&table, at) && !visit(kh_key(&table, at), kh_value(&table, at))) return false;
    return true;
  }

  /// First all pairs: a lookup reads the keys of others.
  bool inspect(tips::Inspector& inspector, const Part& part) const {
    const khash_t(words)& table = part.table;
    const std::size_t slots = table.n_buckets;
    if (slots == 0) return table.size == 0 && table.upper_bound == 0 && table.n_occupied == 0;
    if ((slots & (slots - 1)) != 0 || table.upper_bound > slots) return false;
    if (!inspector.node(table.flags, __ac_fsize(slots) * sizeof *table.flags) ||
        !inspector.node(table.keys, slots * sizeof *table.keys) ||
        !inspector.node(table.vals, slots * sizeof *table.vals))
      return false;
    std::uint64_t pairs = 0, taken = 0;
    for (khint_t at = 0; at != slots; ++at) taken += __ac_isempty(table.flags, at) ? 0 : 1;
    const bool shown = for_each(table, [&](Word key, Word value) {
      return ++pairs, inspector.pair(key, value) && &part_of(key) == &part;
    });
    if (!shown || pairs != table.size || taken != table.n_occupied) return false;
    return for_each(table, [&](Word key, Word) {
      const khint_t at = kh_get(words, &table, key);
      return at != slots && kh_key(&table, at) == key;
    });
  }

  std::array<Part, kParts> parts_;
};

}  // namespace perdix::examples

#undef kmalloc
#undef kfree
#undef kcopy
#undef kannounce
