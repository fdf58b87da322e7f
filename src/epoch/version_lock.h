// Optimistic lock: a version counter and a lock in one word (V. Leis et al., "The ART of Practical
// Synchronization", 2016).
//
// Readers don't write: they take the version, read the data, and validate that the version is still
// the same. A writer's unlock makes a new version. `unlock_obsolete` says that the object was
// unlinked for good.
//
//   std::uint64_t v = lock.read_begin();
//   if (VersionLock::obsolete(v)) start over;
//   ... read the data with relaxed atomic loads; use nothing of it yet ...
//   if (!lock.read_validate(v)) start over;
//
// Layout: bit 0 obsolete, bit 1 locked, the others the version. Not recursive. `lock` and
// `try_lock` also take an obsolete lock: a caller that the unlinking may have overtaken asks
// `is_obsolete` afterwards.
//
// VersionLock has 8 bytes. SmallVersionLock has 4, and its versions return after 2^30 changes: it
// is wrong only if exactly that many changes of one object pass between two loads of a reader.
#pragma once

#include <atomic>
#include <cassert>
#include <concepts>
#include <cstdint>

#include "epoch/tsan.h"
#include "util/spin_lock.h"

namespace perdix::detail::epoch {

template <std::unsigned_integral Word>
class BasicVersionLock {
 public:
  using Version = Word;

  /// Waits while a writer holds the lock; writers hold it for a few stores.
  Version read_begin() const noexcept {
    Version word = word_.load(std::memory_order_acquire);
    if (word & kLocked) [[unlikely]]
      word = wait_unlocked();
    return word;
  }

  /// Whether what was read since `read_begin` returned `version` is consistent.
  bool read_validate(Version version) const noexcept {
    // Keeps the data's loads before the load of the word. A datum of a later writer that was read
    // would pair with that writer's release fence in `try_upgrade`, so that the word read here
    // shows at least its lock.
    tsan::fence(std::memory_order_acquire);
    return word_.load(std::memory_order_acquire) == version;
  }

  static constexpr bool obsolete(Version version) noexcept { return version & kObsolete; }

  void lock() noexcept {
    util::Backoff backoff;
    while (!try_lock()) backoff.pause();
  }

  /// False if the lock is held.
  bool try_lock() noexcept {
    const Version word = word_.load(std::memory_order_relaxed);
    return !(word & kLocked) && try_upgrade(word);
  }

  /// Takes the lock if no thread has locked it since `read_begin` returned `version`, so what was
  /// read still holds.
  bool try_upgrade(Version version) noexcept {
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
  Version version() const noexcept { return word_.load(std::memory_order_relaxed) / kVersion; }

  /// What readers had for a version before it was locked, and will have once it is unlocked; for
  /// the holder of the lock.
  Version before_lock() const noexcept { return word_.load(std::memory_order_relaxed) - kLocked; }
  Version after_unlock() const noexcept { return word_.load(std::memory_order_relaxed) + kLocked; }

  /// Whether it was taken when it had that version, so that what was read before still holds; for
  /// the holder of the lock.
  bool taken_at(Version version) const noexcept {
    return word_.load(std::memory_order_relaxed) == (version | kLocked);
  }

  bool locked() const noexcept { return word_.load(std::memory_order_relaxed) & kLocked; }

 private:
  static constexpr Version kObsolete = 1;
  static constexpr Version kLocked = 2;
  static constexpr Version kVersion = 4;

  [[gnu::noinline]] Version wait_unlocked() const noexcept {
    util::Backoff backoff;
    for (;;) {
      const Version word = word_.load(std::memory_order_acquire);
      if (!(word & kLocked)) return word;
      backoff.pause();
    }
  }

  // No read-modify-write is needed: while the lock is held, only its holder stores.
  void advance_by(Version amount) noexcept {
    const Version word = word_.load(std::memory_order_relaxed);
    assert(word & kLocked);
    word_.store(word + amount, std::memory_order_release);
  }

  std::atomic<Version> word_{0};
};

using VersionLock = BasicVersionLock<std::uint64_t>;
using SmallVersionLock = BasicVersionLock<std::uint32_t>;

static_assert(sizeof(VersionLock) == 8 && sizeof(SmallVersionLock) == 4);

}  // namespace perdix::detail::epoch
