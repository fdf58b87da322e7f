// The seam between the engines and the instruments that watch them.
//
// In a build with PERDIX_INSTRUMENTED every access to PM that an engine announces, every flush and
// every fence reaches the installed `Probe`. In a normal build the functions below are empty and
// cost nothing. This file and pm/persist.h are the only ones that know the difference.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

#include "pm/change.h"

namespace perdix::detail::pm {

#ifdef PERDIX_INSTRUMENTED

/// Identity of a call site of the seam, so that an instrument can report it or suppress it.
using Site = std::source_location;

inline constexpr bool kInstrumented = true;

/// Receives every event of the seam. Called on the thread of the event, after a write and before a
/// flush or fence acts.
class Probe {
 public:
  virtual ~Probe() = default;
  virtual void on_read(const void* p, std::size_t n) = 0;
  virtual void on_write(const void* p, std::size_t n) = 0;
  virtual bool on_flush(const void* p, std::size_t n,
                        const Site& site) = 0;  ///< false: suppress it
  virtual bool on_fence(const Site& site) = 0;  ///< false: suppress it

  /// A write of whole lines that passes the caches: stores and their flush, which on_flush() hears
  /// of next, are one step.
  virtual void on_stream(const void* p, std::size_t n) { on_write(p, n); }

  /// A commit of several stores as one: they are made when this returns. What the thread has
  /// flushed becomes durable before them, and they become durable together. False: suppress the
  /// sync.
  virtual bool on_commit(std::span<const Change> changes, const Site& site) {
    for (const Change& change : changes) {
      on_write(change.word, sizeof *change.word);
      on_flush(change.word, sizeof *change.word, site);
    }
    return on_fence(site);
  }

  /// A store, made when this returns, that the next fence or commit of any thread makes durable
  /// that has seen it: store and flush are one step. False: suppress the sync.
  virtual bool on_publish_for_next(std::uint64_t& word, std::uint64_t /*value*/, const Site& site) {
    on_write(&word, sizeof word);
    return on_flush(&word, sizeof word, site) && on_fence(site);
  }

  /// Before a write; a probe may hold the thread back here to decide the order of threads.
  virtual void before_write(const void* /*p*/, std::size_t /*n*/) {}
  /// A protocol has taken a step that no access to PM shows: it changes DRAM only, or has met
  /// another thread's work. `name` is a literal. A probe may hold the thread back here.
  virtual void on_step(const char* /*name*/) {}
  /// A limit of a structure in DRAM, or of when work begins. `name` is a literal. A probe may
  /// return a smaller one, so that small states have the structure of large ones.
  virtual std::uint64_t on_limit(const char* /*name*/, std::uint64_t limit) { return limit; }
  /// A random number that goes into persistent memory; the returned place is used instead, so that
  /// a run can be repeated.
  virtual std::uint64_t on_draw(std::uint64_t random) { return random; }
  /// Whether freed memory may be reused at a time that the clock decides; if not, only a call that
  /// waits for it brings that about, so that a run can be repeated.
  virtual bool allows_background_reclamation() { return true; }
  /// The calling thread begins a section (epoch::Guard) that is in no other one.
  virtual void on_section() noexcept {}
  /// A block is free, but may be read by sections that have begun before.
  virtual void on_retired(const void* /*p*/, std::size_t /*n*/) {}
  /// The block that begins there may be used again: these sections have ended.
  virtual void on_reclaimed(const void* /*p*/) {}
  /// A pool is mapped: offset 0 is at `base`, and it may grow to `n` bytes.
  virtual void on_map(const void* /*base*/, std::size_t /*n*/) {}
};

/// Installs a probe (nullptr: none) and returns the one before. Not while other threads use a pool.
Probe* install_probe(Probe* probe) noexcept;

/// Whether reads reach the installed probe: they do from its installation on. Reads are so frequent
/// that a probe which needs none should say so.
void watch_reads(bool watch) noexcept;

namespace internal {
// The one exception to "no global state": a probe watches the process, and only instrumented builds
// have it. In the header because there are very many reads.
inline std::atomic<Probe*> probe{nullptr};
inline std::atomic<Probe*> probe_of_reads{nullptr};  // the same one, or nullptr
}  // namespace internal

inline Probe* installed_probe() noexcept { return internal::probe.load(std::memory_order_acquire); }

inline void on_read(const void* p, std::size_t n) {
  Probe* probe = internal::probe_of_reads.load(std::memory_order_acquire);
  if (probe != nullptr) probe->on_read(p, n);
}
inline void on_write(const void* p, std::size_t n) {
  if (Probe* probe = installed_probe()) probe->on_write(p, n);
}
inline void on_stream(const void* p, std::size_t n) {
  if (Probe* probe = installed_probe()) probe->on_stream(p, n);
}
inline void before_write(const void* p, std::size_t n) {
  if (Probe* probe = installed_probe()) probe->before_write(p, n);
}
/// Names a step of a protocol for the instruments, which count it and may stop a thread there.
inline void on_step(const char* name) {
  if (Probe* probe = installed_probe()) probe->on_step(name);
}
/// The limit of that name: this one, unless an instrument wants a smaller one.
inline std::uint64_t limit(const char* name, std::uint64_t limit) {
  Probe* probe = installed_probe();
  return probe == nullptr ? limit : probe->on_limit(name, limit);
}
inline void on_section() noexcept {
  if (Probe* probe = installed_probe()) probe->on_section();
}
inline void on_retired(const void* p, std::size_t n) {
  if (Probe* probe = installed_probe()) probe->on_retired(p, n);
}
inline void on_reclaimed(const void* p) {
  if (Probe* probe = installed_probe()) probe->on_reclaimed(p);
}
inline void on_map(const void* base, std::size_t n) {
  if (Probe* probe = installed_probe()) probe->on_map(base, n);
}
inline std::uint64_t on_draw(std::uint64_t random) {
  Probe* probe = installed_probe();
  return probe == nullptr ? random : probe->on_draw(random);
}
inline bool background_reclamation() {
  Probe* probe = installed_probe();
  return probe == nullptr || probe->allows_background_reclamation();
}
/// Whether a thread may change persistent memory at a time that the clock decides. Not while a
/// probe watches: such work is done in calls then, so that a run can be repeated.
inline bool background_work() { return installed_probe() == nullptr; }
/// Whether a pool remembers which file it is in. Not while a probe watches: an explorer opens
/// images of one pool in several files.
inline bool files_have_identity() { return installed_probe() == nullptr; }
/// The seed of a new index's hashes. While a probe watches it is always the same, so that a run can
/// be repeated, and keys can be chosen that share a place.
inline constexpr std::uint64_t kWatchedHashSeed = 1;
inline std::uint64_t hash_seed(std::uint64_t drawn) {
  return installed_probe() == nullptr ? drawn : kWatchedHashSeed;
}
inline bool on_flush(const void* p, std::size_t n, const Site& site) {
  Probe* probe = installed_probe();
  return probe == nullptr || probe->on_flush(p, n, site);
}
inline bool on_fence(const Site& site) {
  Probe* probe = installed_probe();
  return probe == nullptr || probe->on_fence(site);
}
inline bool on_publish_for_next(std::uint64_t& word, std::uint64_t value, const Site& site) {
  Probe* probe = installed_probe();
  return probe == nullptr || probe->on_publish_for_next(word, value, site);
}
inline bool on_commit(std::span<const Change> changes, const Site& site) {
  Probe* probe = installed_probe();
  return probe == nullptr || probe->on_commit(changes, site);
}

#else

/// Not used here. Not every compiler that can build the library knows std::source_location.
struct Site {
  static constexpr Site current() noexcept { return {}; }
};

inline constexpr bool kInstrumented = false;

inline void on_read(const void*, std::size_t) {}
inline void on_write(const void*, std::size_t) {}
inline void on_stream(const void*, std::size_t) {}
inline void before_write(const void*, std::size_t) {}
inline void on_step(const char*) {}
inline std::uint64_t limit(const char*, std::uint64_t limit) { return limit; }
inline void on_section() noexcept {}
inline void on_retired(const void*, std::size_t) {}
inline void on_reclaimed(const void*) {}
inline void on_map(const void*, std::size_t) {}
inline std::uint64_t on_draw(std::uint64_t random) { return random; }
inline bool background_reclamation() { return true; }
inline bool background_work() { return true; }
inline bool files_have_identity() { return true; }
inline std::uint64_t hash_seed(std::uint64_t drawn) { return drawn; }
inline bool on_flush(const void*, std::size_t, const Site&) { return true; }
inline bool on_fence(const Site&) { return true; }
inline bool on_publish_for_next(std::uint64_t&, std::uint64_t, const Site&) { return true; }
inline bool on_commit(std::span<const Change>, const Site&) { return true; }

#endif

}  // namespace perdix::detail::pm
