// How pairs move on from the collecting logs: a full log is copied to the backup log, and its pairs
// are added to the DRAM table (ElimDa paper, 3.3).
//
// A pair is in the new place, durably and for readers, before it leaves the old one; a crash in
// between leaves it in both (E5).
#pragma once

#include <algorithm>
#include <exception>

#include "epoch/guard.h"
#include "index/elimda/relocate.h"
#include "index/elimda/store.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::elimda {

/// A collecting log that this thread has copied and must bring into the DRAM table.
struct Flush {
  LogLine* line = nullptr;
  BackupLog::Unit unit = 0;
};

template <class K>
class Flusher {
 public:
  Flusher(Store<K>& store, Relocator<K>& relocator) : store_(store), relocator_(relocator) {}

  /// Copies a full log to the backup log and empties it. The caller holds `lock`, the lock of the
  /// log. Returns true with the log empty and still locked; `flush` then names the copy, which the
  /// caller passes to finish() once it has released the lock, or is empty if no pair of the log
  /// counted. Returns false with the log unlocked and unchanged if it is retired, or an earlier
  /// flush was in the way: this call has waited for it, or has completed it if it had failed
  /// half-way. Then the caller begins again. Throws out_of_space, bad_alloc: then the log is
  /// unchanged.
  bool begin(std::optional<Flush>& flush, std::unique_lock<util::SpinLock>& lock,
             CollectingLog log) {
    LogLine& line = log.line();
    if (line.retired) {
      pm::on_step("elimda: a writer meets a log that is retired");
      lock.unlock();
      return false;
    }
    if (!line.flushing.try_lock()) {
      pm::on_step("elimda: a flush waits for another");
      lock.unlock();
      util::Backoff backoff;
      while (!line.flushing.try_lock()) backoff.pause();
      line.flushing.unlock();
      return false;
    }
    try {
      if (const std::uint32_t in_flight = line.in_flight.load(); in_flight != 0) {
        // An earlier flush failed half-way. Its pairs are older than those of the log, so they must
        // come into the DRAM table first.
        lock.unlock();
        add_all_to_dram({&line, in_flight - 1});
        line.flushing.unlock();
        return false;
      }
      flush = copy_to_backup(log);
      if (flush) return true;
    } catch (...) {
      line.flushing.unlock();
      throw;
    }
    line.flushing.unlock();  // no pair counted, so there is nothing to finish
    return true;
  }

  /// Adds the pairs of a copied log to the DRAM table. If that fails they stay in flight, and the
  /// next flush of the log goes on where this one stopped. The error is not reported, since the
  /// caller's own pair is in the log already.
  void finish(const Flush& flush) noexcept {
    try {
      add_all_to_dram(flush);
    } catch (const std::exception&) {
      pm::on_step("elimda: a flush failed half-way");
    }
    flush.line->flushing.unlock();
  }

  /// Moves all pairs of the collecting logs to the DRAM table. Called on opening, before other
  /// threads use the index, where caches are volatile: there no pair may come into a log, and none
  /// may be left in one. Throws out_of_space, bad_alloc; may be called again then.
  void drain_logs() {
    store_.logs.set()->for_each([&](CollectingLog log) {
      LogLine& line = log.line();
      const epoch::Guard guard;
      const std::lock_guard flushing(line.flushing);
      std::optional<Flush> flush;
      if (const std::uint32_t in_flight = line.in_flight.load(); in_flight != 0)
        flush = {&line, in_flight - 1};  // from an attempt that had no space
      else if (line.count > 0)
        flush = copy_to_backup(log);
      if (flush) add_all_to_dram(*flush);
    });
  }

 private:
  /// Copies the pairs of a log that count to a unit, which becomes visible as in flight, and
  /// empties the log. Returns nothing if no pair counts; then there is no copy, but the log is
  /// emptied, too. The caller holds `flushing`, and keeps others from appending.
  std::optional<Flush> copy_to_backup(CollectingLog log) {
    LogLine& line = log.line();
    unsigned counting = 0;
    for (unsigned i = 0; i < line.count; ++i) counting += !log.dead(i);
    if (counting == 0) {
      line.moves.fetch_add(1);  // the log's slots are about to be used again
      log.reset();
      return std::nullopt;
    }
    const BackupLog::Unit unit = store_.backup.take(log.first_hash(), log.depth());
    store_.backup.count(unit, counting);
    const Pair* const from = log.pairs();
    std::array<Pair, Shape::kMaxUnitPairs> pairs;
    for (unsigned i = 0; i < store_.shape.unit_pairs; ++i) {
      const bool counts = i < line.count;
      pairs[i] = counts ? load(from[i]) : Pair{0, 0};
    }
    // stream() stores word by word: a late reader of the unit's earlier pairs may still read it.
    store_.pm().stream(store_.backup.pairs(unit), pairs.data(), store_.shape.unit_bytes());
    log.begin_copy();
    store_.pm().fence();  // before bits say that the pairs count: an opening looks for them then
    const auto number = LogWord::unpack(pm::load(log.word())).number;
    for (unsigned w = 0; w < store_.shape.unit_words(); ++w) {
      UnitWord word{0, log.name(), number};
      for (unsigned i = w * UnitWord::kPairs; i < (w + 1) * UnitWord::kPairs && i < line.count;
           ++i) {
        if (!log.dead(i)) word.valid |= static_cast<std::uint16_t>(store_.backup.bit(i));
      }
      // The last of these stores is the commit: finish_copies() finishes or undoes the copy.
      store_.pm().publish(store_.backup.words(unit)[w], word.pack());
    }
    pm::on_step("elimda: a log was copied");
    line.in_flight.store(unit + 1, std::memory_order_release);
    line.moves.fetch_add(1);
    pm::on_step("elimda: a copy is in flight");
    log.reset();
    return Flush{&line, unit};
  }

  /// Adds the pairs of a copied log to their D-buckets, in their order, and then ends the flight.
  /// Begins behind the pairs that an earlier attempt has added (`flushed`). The caller holds
  /// `flushing`. Throws out_of_space, bad_alloc: then some pairs are added, and all stay in flight.
  void add_all_to_dram(const Flush& flush) {
    prefetch_buckets(flush);
    for (std::uint16_t& i = flush.line->flushed; i < store_.shape.unit_pairs; ++i)
      add_to_dram(store_.backup.ref(flush.unit, i));
    pm::on_step("elimda: a copy is in the DRAM table");
    flush.line->flushed = 0;
    flush.line->moves.fetch_add(1);
    flush.line->in_flight.store(0, std::memory_order_release);
    store_.backup.unpin(flush.unit);
  }

  /// Prefetches what add_to_dram() will read and write. A heuristic: a wrong guess costs time only.
  void prefetch_buckets(const Flush& flush) const {
    if constexpr (Codec<K>::kInline) {
      const Store<K>& store = store_;  // read once
      std::array<const Slot*, UnitWord::kPairs> slots{};
      const unsigned count = std::min<unsigned>(store.shape.unit_pairs, slots.size());
      for (unsigned i = 0; i < count; ++i) {
        const KeyHash hash = store.words.hash_of(pm::load(store.backup.pairs(flush.unit)[i].key));
        slots[i] = &store.dram.segment_of(hash).slot(hash.bucket(store.shape.buckets));
        __builtin_prefetch(slots[i], 1);
      }
      for (unsigned i = 0; i < count; ++i) {
        const Bucket* bucket = slots[i]->bucket();
        if (bucket != nullptr) bucket->prefetch_head_for_add();
      }
      for (unsigned i = 0; i < count; ++i) {
        const Bucket* bucket = slots[i]->bucket();
        if (bucket != nullptr) bucket->prefetch_pair_for_add();
      }
    }
  }

  /// Adds one pair of the backup log to its D-bucket, unless it was erased.
  void add_to_dram(BackupRef ref) {
    const Pair& pair = store_.backup.pair(ref);
    if (!store_.backup.counts(ref)) return;
    const KeyHash hash = store_.words.hash_of_word(pm::load(pair.key));
    pm::on_step("elimda: a pair comes into the DRAM table");
    for (;;) {
      Locked locked = store_.lock_bucket(hash);
      if (!store_.backup.counts(ref)) return;
      if (!locked.bucket->d_full()) {
        // An update of the pair holds the lock, too: so its value is not lost.
        locked.bucket->d_add({load(pair), ref, hash.signature()});
        return;
      }
      relocator_.make_room(std::move(locked), hash);
    }
  }

  Store<K>& store_;
  Relocator<K>& relocator_;
};

}  // namespace perdix::detail::index::elimda
