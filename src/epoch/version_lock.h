// Optimistic lock: a version counter and a lock in 8 bytes (V. Leis et al., "The ART of Practical
// Synchronization", 2016).
//
// Readers don't write: they take the version, read the data, and validate that the version is still
// the same. A writer's unlock makes a new version. `unlock_obsolete` says that the object was
// unlinked for ever.
//
//   std::uint64_t v = lock.read_begin();
//   if (VersionLock::obsolete(v)) start over;
//   ... read the data with relaxed atomic loads; use nothing of it yet ...
//   if (!lock.read_validate(v)) start over;
//
// Layout: bit 0 obsolete, bit 1 locked, bits 2-63 the version. Not recursive. `lock` and `try_lock`
// also take an obsolete lock: who may have been overtaken by the unlinking asks `is_obsolete`
// afterwards.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "epoch/tsan.h"
#include "util/spin_lock.h"

namespace perdix::epoch {

class VersionLock {
 public:
  /// Waits while a writer holds the lock; writers hold it for a few stores.
  std::uint64_t read_begin() const noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    if (word & kLocked) [[unlikely]]
      word = wait_unlocked();
    return word;
  }

  /// Whether what was read since `read_begin` returned `version` is consistent.
  bool read_validate(std::uint64_t version) const noexcept {
    // Keeps the data's loads before the load of the word. A datum of a later writer that was read
    // would pair with that writer's release fence in `try_upgrade`, so that the word read here
    // shows at least its lock.
    tsan::fence(std::memory_order_acquire);
    return word_.load(std::memory_order_acquire) == version;
  }

  static constexpr bool obsolete(std::uint64_t version) noexcept { return version & kObsolete; }

  void lock() noexcept {
    util::Backoff backoff;
    while (!try_lock()) backoff.pause();
  }

  /// False if the lock is held.
  bool try_lock() noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    return !(word & kLocked) && try_upgrade(word);
  }

  /// Takes the lock if nobody has locked it since `read_begin` returned `version`, so what was read
  /// still holds.
  bool try_upgrade(std::uint64_t version) noexcept {
    if (!word_.compare_exchange_strong(version, version | kLocked, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return false;
    }
    // The data's stores come after the locked word, also on machines where acquire doesn't order
    // it: see read_validate.
    tsan::fence(std::memory_order_release);
    return true;
  }

  void unlock() noexcept { advance_by(kLocked); }  // carries into the version

  void unlock_obsolete() noexcept { advance_by(kLocked | kObsolete); }

  /// Of the present word; for the holder of the lock.
  bool is_obsolete() const noexcept { return obsolete(word_.load(std::memory_order_relaxed)); }

  /// How often it was locked; for the holder of the lock.
  std::uint64_t version() const noexcept {
    return word_.load(std::memory_order_relaxed) / kVersion;
  }

  bool locked() const noexcept { return word_.load(std::memory_order_relaxed) & kLocked; }

 private:
  static constexpr std::uint64_t kObsolete = 1;
  static constexpr std::uint64_t kLocked = 2;
  static constexpr std::uint64_t kVersion = 4;

  [[gnu::noinline]] std::uint64_t wait_unlocked() const noexcept {
    util::Backoff backoff;
    for (;;) {
      const std::uint64_t word = word_.load(std::memory_order_acquire);
      if (!(word & kLocked)) return word;
      backoff.pause();
    }
  }

  // No read-modify-write is needed: while the lock is held, nobody else stores.
  void advance_by(std::uint64_t amount) noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    assert(word & kLocked);
    word_.store(word + amount, std::memory_order_release);
  }

  std::atomic<std::uint64_t> word_{0};
};

static_assert(sizeof(VersionLock) == 8);

}  // namespace perdix::epoch
