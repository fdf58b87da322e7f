// What happens on open, and destruction. Opening reads the directory, a word for each sixteen pairs
// of the backup log, and the collecting logs; segments come back later (resumer.h).
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "index/common/retry.h"
#include "index/elimda/elimda.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

template <class K>
WordIndex<K>::WordIndex(pool::IndexHandle handle, const ElimDaOptions& options, const Shape& shape)
    : handle_(std::move(handle)),
      pool_(handle_.pool()),
      root_(*retry_when_full(pool_, [&] { return &open_root(pool_, handle_.root(), shape); })),
      shape_(shape_of(pool_, root_)),
      hash_(shape_.seed),
      code_(shape_, options.fingerprint_bits),
      keys_(pool_),
      codec_(pool_, handle_.info().value_kind),
      volatile_caches_(pool_.pm().domain() != pm::Domain::cpu_cache),
      cache_reservation_(CacheReservation::make(options.reserved_cache_ways)),
      backup_(pool_, root_, shape_),
      logs_(pool_, root_, shape_),
      table_(pool_, root_, shape_),
      dram_(arena_, pool_.reclaimer()),
      drain_first_(pool_.reclaimer()) {
  const auto start = std::chrono::steady_clock::now();
  open(options);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class K>
WordIndex<K>::~WordIndex() {
  entry_.reset();
  resumption_.stop();
}

template <class K>
void WordIndex<K>::open(const ElimDaOptions& options) {
  load_segments();
  backup_.open();
  const bool had_logs = pm::load(root_.log_area) != pm::kNull;
  if (had_logs || !volatile_caches_) {
    if (!had_logs) retry_when_full(pool_, [&] { logs_.create(segments_.load()); });
    logs_.open();
    finish_copied_logs();
  }
  make_cold();
  if (logs_.set() != nullptr) use_logs();
  start_resuming(options.resume_in_background);
  entry_.emplace(pool_.open_indexes(), *this);
}

template <class K>
void WordIndex<K>::load_segments() {
  dram_.start(table_.directory().depth);
  unsigned segments = 0;
  table_.for_each_leader([&](std::uint64_t number, Reference leader) {
    const unsigned further = table_.directory().depth - leader.depth;
    dram_.link(
        *Segment::make(arena_, shape_.buckets, leader.offset, leader.depth, number >> further));
    ++segments;
  });
  segments_.store(segments);
}

/// A log whose pairs are in the backup log under its number was about to be emptied (E5). If a
/// crash came before all words of the unit were there, the log has them still, and the unit loses
/// them.
template <class K>
void WordIndex<K>::finish_copied_logs() {
  const LogSet& logs = *logs_.set();
  for (Unit unit = 0; unit < backup_.units(); ++unit) {
    const std::uint16_t name = UnitWord::unpack(pm::load(backup_.words(unit)[0])).log;
    if (name == UnitWord::kNoLog || backup_.counted(unit) == 0) continue;
    if (name > logs.log(logs.count() - 1).name())
      pool::throw_corrupt(pool_, "a backup unit", pool_.offset(backup_.words(unit)));
    if (!logs.has(name)) continue;  // of fewer logs: complete
    const CollectingLog log = logs.named(name);
    const auto head = LogWord::unpack(pm::load(log.word()));
    const unsigned copied = words_with(unit, name, head.number);
    if (head.count == 0 || copied == 0) continue;
    if (copied == shape_.unit_words())
      log.reset();
    else
      empty(unit);
  }
}

/// How many words of a unit say that it is that copy of a log. (Words before this one's first may
/// be of another, and then none of their pairs counts.)
template <class K>
unsigned WordIndex<K>::words_with(Unit unit, unsigned log, std::uint32_t number) const {
  unsigned words = 0;
  for (unsigned i = 0; i < shape_.unit_words(); ++i) {
    const auto word = UnitWord::unpack(pm::load(backup_.words(unit)[i]));
    words += word.log == log && word.number == number;
  }
  return words;
}

/// Has no pair of a unit count, durably.
template <class K>
void WordIndex<K>::empty(Unit unit) {
  for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
    const BackupRef ref = backup_.ref(unit, i);
    if (!backup_.counts(ref)) continue;
    commit(pm::Change{&backup_.word(ref), backup_.bit(ref), 0});
    backup_.forget(ref);
  }
}

/// The fingerprints of pairs in collecting logs; or no logs, where they may not be used.
template <class K>
void WordIndex<K>::use_logs() {
  logs_.set()->for_each([&](CollectingLog log) {
    LogLine& line = log.line();
    for (unsigned i = 0; i < line.count; ++i) {
      if (log.dead(i)) continue;
      const Signature signature = signature_of(pm::load(log.pairs()[i].key));
      line.set_print(i, LogLine::print_of(signature));
    }
  });
  if (!volatile_caches_) return;
  retry_when_full(pool_, [&] { drain_logs(); });
  logs_.stop_using();
}

}  // namespace perdix::detail::index::elimda
