// More collecting logs: an index begins with few and gets more as its table grows, so that they
// take about half as much of the pool as the segments do.
//
// The thread that has flushed a log looks whether more are due. It locks all logs and copies their
// pairs to a new set, whose logs are parts of the old ones: so the pairs of a log fit, and keep
// their order. The commit is one store of the root's `log_area`. Until then nothing refers to the
// new area, and the old one stays as it was, for readers also afterwards.
//
// Meanwhile writers that need the lock of a log wait: those that add or erase keys, or update a
// pair that lies in a log. They wait for the flushes under way, and for a copy of what at most half
// the logs hold that the index will have. Lookups do not wait. Locks of logs are taken in their
// order; others hold one at a time. Whoever holds `flushing` takes no lock of a log.
//
// There are logs only where a store is durable once it is visible, in the order of the stores: so
// nothing is flushed.
#pragma once

#include <exception>
#include <memory>

#include "alloc/session.h"
#include "index/elimda/store.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::elimda {

template <class K>
class MoreLogs {
 public:
  explicit MoreLogs(Store<K>& store) : store_(store) {}

  /// Gives the index more logs if its table has grown. The caller is in an epoch::Guard and holds
  /// no lock. If there is no space or memory, or a flush has failed half-way, nothing happens until
  /// the table has grown by an eighth.
  void grow() noexcept {
    if (store_.logs.set()->depth() == store_.shape.max_log_depth()) [[likely]]
      return;
    const unsigned segments = store_.dram.segments();
    const unsigned depth = store_.shape.log_depth_for(segments);
    if (store_.logs.set()->depth() >= depth) return;
    const std::unique_lock growing(growing_, std::try_to_lock);
    if (!growing || segments < no_room_below_ || store_.logs.set()->depth() >= depth) return;
    no_room_below_ = segments + segments / 8 + 1;
    try {
      move_to_more_logs(*store_.logs.set(), depth);
    } catch (const std::exception&) {
      pm::on_step("elimda: no space for more logs");
    }
  }

 private:
  /// Throws out_of_space, bad_alloc, and nothing has happened.
  void move_to_more_logs(const LogSet& from, unsigned depth) {
    auto to = std::make_unique<LogSet>(store_.pool, store_.shape, depth);
    {  // What has to be done for the space is done before any log is locked.
      alloc::Session probe = store_.pool.allocator().session();
      store_.logs.reserve(probe, depth);
    }
    std::vector<std::unique_lock<util::SpinLock>> locks;
    locks.reserve(from.count());
    bool in_flight = false;
    from.for_each([&](CollectingLog log) {
      locks.emplace_back(log.line().lock);
      const std::lock_guard flushed(log.line().flushing);  // no flush begins without the lock
      in_flight |= log.line().in_flight.load() != 0;
    });
    if (in_flight) return;  // a flush has failed half-way
    pm::on_step("elimda: all logs are locked");
    alloc::Session session = store_.pool.allocator().session();
    session.free(store_.logs.area().offset);
    const pm::Offset area = store_.logs.reserve(session, depth);
    to->place(area);
    copy_pairs(from, *to);
    session.commit(pm::set_word(store_.root.log_area, store_.logs.area_word({area, depth})), [&] {
      pm::on_step("elimda: there are more logs in PM");
      store_.logs.use(to.release());
    });
    // Before the locks are released: from then on a writer that has taken the old set looks here.
    from.for_each([&](CollectingLog log) {
      log.line().retired = true;
      log.line().count =
          static_cast<std::uint16_t>(store_.shape.unit_pairs);  // appends see that it is full
    });
    store_.pool.reclaimer().retire(const_cast<LogSet*>(&from));
  }

  /// Copies the pairs that count, in their order. The new logs are out of others' reach.
  void copy_pairs(const LogSet& from, const LogSet& to) const {
    store_.pm().zero(&to.log(0).word(), store_.shape.log_heads_bytes(to.count()));
    from.for_each([&](CollectingLog log) {
      for (unsigned i = 0; i < log.line().count; ++i) {
        if (log.dead(i)) continue;
        const Pair& pair = log.pairs()[i];
        const KeyHash hash = store_.words.hash_of_word(pm::load(pair.key));
        const CollectingLog into = to.log_of(hash);
        const unsigned slot = into.line().count++;
        store_.pm().store(into.pairs()[slot].key, pm::load(pair.key));
        store_.pm().store(into.pairs()[slot].value, pm::load(pair.value));
        into.line().set_print(slot, LogLine::print_of(hash.signature()));
      }
    });
    to.for_each([&](CollectingLog log) {
      store_.pm().store(log.word(), LogWord{log.line().count, 0}.pack());
    });
  }

  Store<K>& store_;
  std::mutex growing_;
  unsigned no_room_below_ = 0;  // segments: with fewer no more logs are tried, since they failed
};

}  // namespace perdix::detail::index::elimda
