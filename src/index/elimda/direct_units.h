// Where in the backup log a thread's next pair goes if there are no collecting logs: every pair
// with volatile caches, and those that find their P-bucket full where media units do not matter.
// Threads of different stripes fill different units, each from its first place to its last, so that
// the device can combine the writes (ElimDa paper, 3.7). Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "index/elimda/backup_log.h"
#include "index/elimda/shape.h"
#include "pm/persist.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::index::elimda {

class DirectUnits {
 public:
  /// Numbers new units from this on. Before all else.
  void begin_at(std::uint32_t number) { next_number_.store(number); }

  /// Returns a place in the backup log for one pair. The place is counted and is the caller's,
  /// which calls forget() if it does not use it. Throws out_of_space, bad_alloc.
  BackupRef reserve(const pm::Persister& pm, const Shape& shape, BackupLog& log) {
    OpenUnit& open = open_[util::current_stripe() % kOpenUnits];
    const std::lock_guard lock(open.lock);
    if (!open.open) {
      const BackupLog::Unit unit = log.take();
      const UnitWord word{0, UnitWord::kNoLog,
                          next_number_.fetch_add(1, std::memory_order_relaxed)};
      for (unsigned i = 0; i < shape.unit_words(); ++i) pm.store(log.words(unit)[i], word.pack());
      // Not flushed: the commit of a pair flushes its word, and a word without bits means nothing.
      open.open = true;
      open.unit = unit;
      open.next = 0;
    }
    const BackupRef ref = log.ref(open.unit, open.next);
    // The place is counted before the unit may be given back.
    log.count(open.unit, 1);
    if (++open.next == shape.unit_pairs) {
      open.open = false;
      log.unpin(open.unit);
    }
    return ref;
  }

 private:
  struct alignas(util::kCacheLine) OpenUnit {
    util::SpinLock lock;
    bool open = false;
    BackupLog::Unit unit = 0;
    unsigned next = 0;
  };
  static constexpr unsigned kOpenUnits = 16;

  std::array<OpenUnit, kOpenUnits> open_;
  std::atomic<std::uint32_t> next_number_{0};
};

}  // namespace perdix::detail::index::elimda
