// What writers do to the chains of a cache-line hash table.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <new>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "plugins/clht/table.h"

namespace perdix::tips::plugins::clht {

/// `Memory` is where the table lies.
template <class Memory, class Keys>
struct ChainChanges {
  /// Each change of what others can see.
  template <class T>
  static T& change(T& object) {
    Memory::add(&object, sizeof object);
    return object;
  }

  /// The lock of a chain.
  class Locked {
   public:
    explicit Locked(Bucket& head) : state_(change(head).state) {
      for (Backoff backoff;; backoff.pause()) {
        std::uint64_t free = state_.load(std::memory_order_relaxed) & ~kLocked;
        if (state_.compare_exchange_weak(free, free | kLocked)) return;
      }
    }
    ~Locked() { state_.fetch_and(~kLocked, std::memory_order_release); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    std::atomic<std::uint64_t>& state_;
  };

  /// A slot of a bucket; null: there is none.
  struct Place {
    Bucket* bucket;
    unsigned slot;
  };

  // What follows needs the lock of the chain that begins with `head`.

  static Place find_in(Bucket& head, Word key) {
    for (Bucket* bucket = &head; bucket != nullptr; bucket = bucket->following())
      for (unsigned slot = 0; slot < kSlots; ++slot)
        if ((bucket->used() >> slot & 1) != 0 && Keys::equal(bucket->keys[slot], key))
          return {bucket, slot};
    return {nullptr, 0};
  }

  static Bucket* bucket_with_room(Bucket& head) {
    Bucket* bucket = &head;
    while (bucket != nullptr && bucket->used() == kUsed) bucket = bucket->following();
    return bucket;
  }

  static void add(Bucket& head, Word key, Word value) {
    if (Bucket* const bucket = bucket_with_room(head)) return fill(change(*bucket), key, value);
    auto* const bucket = new (Memory::allocate(sizeof(Bucket))) Bucket;
    fill(*bucket, key, value);
    bucket->next.store(head.following(), std::memory_order_relaxed);
    head.next.store(bucket, std::memory_order_release);  // its line was logged for the lock
  }

  static void fill(Bucket& bucket, Word key, Word value) {
    const std::uint64_t state = bucket.state.load(std::memory_order_relaxed);
    const auto slot = static_cast<unsigned>(std::countr_one(state & kUsed));
    // Behind the state that says that the slot is empty: C2.
    bucket.values[slot].store(value, std::memory_order_release);
    bucket.keys[slot].store(key, std::memory_order_release);
    bucket.state.store((state + kVersion) | std::uint64_t{1} << slot, std::memory_order_release);
  }

  static void remove(Bucket& head, const Place& place) {
    Bucket& bucket = *place.bucket;
    change(bucket).state.fetch_and(~(std::uint64_t{1} << place.slot), std::memory_order_release);
    if (&bucket == &head || bucket.used() != 0) return;
    Bucket* before = &head;
    while (before->following() != &bucket) before = before->following();
    change(*before).next.store(bucket.following(), std::memory_order_release);
    Memory::free(&bucket);
  }
};

}  // namespace perdix::tips::plugins::clht
