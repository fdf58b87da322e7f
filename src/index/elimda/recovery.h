// What happens on open. Reads the directory, a word for each sixteen pairs of the backup log, and
// the collecting logs; segments come back later (cold.h).
#pragma once

#include <cstdint>

#include "index/common/retry.h"
#include "index/elimda/bits.h"
#include "index/elimda/direct_units.h"
#include "index/elimda/flush.h"
#include "index/elimda/store.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

template <class K>
class Recovery {
 public:
  Recovery(Store<K>& store, Flusher<K>& flusher, DirectUnits& direct)
      : store_(store), flusher_(flusher), direct_(direct) {}

  /// Opens the layers. Before other threads use them. Throws corrupt, out_of_space, bad_alloc.
  void run() {
    load_segments();
    store_.backup.open();
    const bool had_logs = pm::load(store_.root.log_area) != pm::kNull;
    if (had_logs || !store_.volatile_caches) {
      if (!had_logs)
        retry_when_full(store_.pool, [&] { store_.logs.create(store_.dram.segments()); });
      store_.logs.open();
      finish_copied_logs();
    }
    direct_.begin_at(store_.cold.make(store_.logs.area().depth));
    if (store_.logs.set() != nullptr) use_logs();
  }

 private:
  using Unit = BackupLog::Unit;

  void load_segments() {
    store_.dram.start(store_.table.directory().depth);
    store_.table.for_each_leader([&](std::uint64_t number, Reference leader) {
      const unsigned further = store_.table.directory().depth - leader.depth;
      store_.dram.link(*Segment::make(store_.arena, store_.shape.buckets, leader.offset,
                                      leader.depth, number >> further));
      store_.dram.count_segments(1);
    });
  }

  /// A log whose pairs are in the backup log under its number was about to be emptied (E5). If a
  /// crash came before all words of the unit were there, the log has them still, and the unit loses
  /// them.
  void finish_copied_logs() {
    const LogSet& logs = *store_.logs.set();
    for (Unit unit = 0; unit < store_.backup.units(); ++unit) {
      const std::uint16_t name = UnitWord::unpack(pm::load(store_.backup.words(unit)[0])).log;
      if (name == UnitWord::kNoLog || store_.backup.counted(unit) == 0) continue;
      if (name > logs.log(logs.count() - 1).name())
        pool::throw_corrupt(store_.pool, "a backup unit",
                            store_.pool.offset(store_.backup.words(unit)));
      if (!logs.has(name)) continue;  // of fewer logs: complete
      const CollectingLog log = logs.named(name);
      const auto head = LogWord::unpack(pm::load(log.word()));
      const unsigned copied = words_with(unit, name, head.number);
      if (head.count == 0 || copied == 0) continue;
      if (copied == store_.shape.unit_words())
        log.reset();
      else
        empty(unit);
    }
  }

  /// How many words of a unit say that it is that copy of a log. (Words before this one's first may
  /// be of another, and then none of their pairs counts.)
  unsigned words_with(Unit unit, unsigned log, std::uint32_t number) const {
    unsigned words = 0;
    for (unsigned i = 0; i < store_.shape.unit_words(); ++i) {
      const auto word = UnitWord::unpack(pm::load(store_.backup.words(unit)[i]));
      words += word.log == log && word.number == number;
    }
    return words;
  }

  /// Has no pair of a unit count, durably.
  void empty(Unit unit) {
    store_.backup.for_each_pair(unit, [&](BackupRef ref) {
      commit_bits(store_.pm(), store_.backup.killing(ref));
      store_.backup.forget(ref);
    });
  }

  /// The fingerprints of pairs in collecting logs; or no logs, where they may not be used.
  void use_logs() {
    store_.logs.set()->for_each([&](CollectingLog log) {
      LogLine& line = log.line();
      for (unsigned i = 0; i < line.count; ++i) {
        if (log.dead(i)) continue;
        const Signature signature = store_.words.signature_of(pm::load(log.pairs()[i].key));
        line.set_print(i, LogLine::print_of(signature));
      }
    });
    if (!store_.volatile_caches) return;
    retry_when_full(store_.pool, [&] { flusher_.drain_logs(); });
    store_.logs.stop_using();
  }

  Store<K>& store_;
  Flusher<K>& flusher_;
  DirectUnits& direct_;
};

}  // namespace perdix::detail::index::elimda
