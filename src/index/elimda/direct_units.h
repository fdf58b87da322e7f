// Where in the backup log a thread's next pair goes if there are no collecting logs: every pair
// with volatile caches, and those that find their P-bucket full where media units do not matter.
// Threads of different stripes fill different units, each from its first place to its last, so that
// the device can combine the writes (ElimDa paper, 3.7). Where the backup log has regions, each has
// a unit of its own in place of that. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "index/elimda/backup_log.h"
#include "index/elimda/shape.h"
#include "pm/persist.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::index::elimda {

class DirectUnits {
 public:
  /// Returns a place in the backup log for one pair, in the region of its hash of at most that
  /// depth. The place is counted and is the caller's, which calls forget() if it does not use it.
  /// Throws corrupt, out_of_space, bad_alloc.
  BackupRef reserve(const pm::Persister& pm, const Shape& shape, BackupLog& log, KeyHash hash,
                    unsigned max_depth) {
    for (;;) {
      const unsigned depth = std::min(log.lists().depth(), max_depth);
      OpenUnit& open = depth == 0 ? of_stripes_[util::current_stripe() % of_stripes_.size()].unit
                                  : of_regions()[ChunkLists::region_of(hash, depth)];
      const std::lock_guard lock(open.lock);
      if (open.open || !log.deepen(hash, max_depth))
        return reserve_in(open, pm, shape, log, hash, depth);
    }
  }

 private:
  struct OpenUnit {
    util::SpinLock lock;
    bool open = false;
    BackupLog::Unit unit = 0;
    unsigned next = 0;
  };
  struct alignas(util::kCacheLine) OfStripe {
    OpenUnit unit;
  };

  /// With the lock of the unit held. It is for all pairs of the hash's region of that depth.
  BackupRef reserve_in(OpenUnit& open, const pm::Persister& pm, const Shape& shape, BackupLog& log,
                       KeyHash hash, unsigned depth) {
    if (!open.open) {
      const BackupLog::Unit unit = log.take(hash, depth);
      const UnitWord word{0, UnitWord::kNoLog, log.next_number(unit)};
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

  OpenUnit* of_regions() {
    std::call_once(made_,
                   [&] { of_regions_ = std::make_unique<OpenUnit[]>(ChunkLists::kRegions); });
    return of_regions_.get();
  }

  std::array<OfStripe, 16> of_stripes_;
  std::once_flag made_;
  std::unique_ptr<OpenUnit[]> of_regions_;  // once there are regions
};

}  // namespace perdix::detail::index::elimda
