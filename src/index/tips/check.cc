// Verification of what layout.h states (T1 to T4) and of the plugged-in index, the list of all
// blocks that a Tips index reaches, and statistics.
#include <utility>
#include <vector>

#include <perdix/error.h>

#include "index/common/problems.h"
#include "index/tips/core.h"
#include "index/tips/reach.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

std::uint64_t Core::size() const {
  catch_up();
  const std::lock_guard lock(replaying_);
  const auto pairs = static_cast<std::int64_t>(plugin_.size(index_)) + pending_pairs();
  report_index();
  return static_cast<std::uint64_t>(pairs);
}

/// With replaying_: by how many pairs the index will grow when there is space.
std::int64_t Core::pending_pairs() const {
  std::int64_t pairs = 0;
  for (const Entry* entry : deferred_) {
    if (entry->is_superseded(cut_to_)) continue;
    const bool there = find_in_index(entry->key(), [](Word) {});
    const bool puts = entry->operation() == Operation::put;
    if (puts != there) pairs += puts ? 1 : -1;
  }
  return pairs;
}

namespace {

/// Pairs that a call of the plug-in has shown. They are looked up when it has returned, since it
/// may hold its lock until then.
struct ShownPairs {
  std::vector<std::pair<Word, Word>> pairs;
  bool in_order;

  static bool add(void* context, Word key, Word value) {
    constexpr std::size_t kAtOnce = 128;
    auto& shown = *static_cast<ShownPairs*>(context);
    shown.pairs.emplace_back(key, value);
    return !shown.in_order || shown.pairs.size() < kAtOnce;
  }
};

}  // namespace

/// With replaying_. Calls use(key, value) for the pairs that scans show, until it returns false.
template <class Use>
void Core::for_each_shown(const Use& use) const {
  ShownPairs shown{{}, plugin_.facts().ordered};
  Word last = 0;
  for (std::uint64_t position = 0;; shown.pairs.clear()) {
    const bool begins = position == 0;
    if (plugin_.facts().ordered) {
      plugin_.scan(index_, begins ? nullptr : &last, &shown, ShownPairs::add);
    } else {
      position = plugin_.walk(index_, position, &shown, ShownPairs::add);
    }
    // A scan that goes on begins with the last pair of the one before.
    const std::size_t known = plugin_.facts().ordered && !begins ? 1 : 0;
    for (std::size_t i = known; i < shown.pairs.size(); ++i)
      if (!use(shown.pairs[i].first, shown.pairs[i].second)) return;
    if (plugin_.facts().ordered ? shown.pairs.size() <= known : position == 0) return;
    if (plugin_.facts().ordered) last = shown.pairs.back().first, position = 1;
  }
}

/// With replaying_, of an index that was inspected: asks it as a user does.
void Core::check_lookups(std::uint64_t size, Problems& problems) const {
  std::uint64_t shown = 0, missed = 0;
  for_each_shown([&](Word key, Word value) {
    Word found = 0;
    if (!plugin_.find(index_, key, &found) || found != value) ++missed;
    return ++shown <= size;  // one that shows pairs twice may not end
  });
  report_index();
  problems.expect(missed == 0,
                  "{} pairs that a scan of the plugged-in index '{}' shows are not what a lookup "
                  "of their keys finds",
                  missed, plugin_.facts().name);
  problems.expect(shown == size,
                  "a scan of the plugged-in index '{}' shows {}{} pairs, {} are counted",
                  plugin_.facts().name, shown > size ? "at least " : "", shown, size);
}

CheckReport Core::check() const {
  CheckReport report;
  Problems problems(report);
  try {
    catch_up();
    const std::lock_guard lock(replaying_);
    Reach reach(pool_, kinds_);
    problems.expect(plugin_.inspect(index_, reach),
                    "the plugged-in index '{}' contradicts itself, or leads to memory that is not "
                    "its own (T4)",
                    plugin_.facts().name);
    const std::uint64_t size = plugin_.size(index_);
    problems.expect(reach.pairs() == size, "{} pairs are counted, {} are there", size,
                    reach.pairs());
    if (report.ok()) check_lookups(size, problems);
    report.pairs = reach.pairs() + static_cast<std::uint64_t>(pending_pairs());
    report.blocks = reach.blocks() + 1;
    uno_.check(problems);
  } catch (const Error& error) {
    problems.expect(false, "{}", error.what());
  }
  return report;
}

void Core::check_logs(pool::PoolCore& pool, pm::Offset root, CheckReport& report,
                      const pool::BlockVisitor& visit) {
  if (root == pm::kNull) return;
  Header& header = header_at(pool, root);
  const Uno uno(pool, header);
  OperationLogs logs(pool, header);
  logs.recover([](const LoggedWrite&) {});  // finds the rings
  const Reserve reserve(pool, header);
  Problems problems(report);
  uno.check(problems);
  visit(root);
  uno.for_each_block(visit);
  logs.for_each_block(visit);
  reserve.for_each_block(visit);
}

/// Settled, so that the end of the index has nothing left to free: the pool's check compares the
/// blocks with what is allocated when the index is closed.
void Core::for_each_block(const pool::BlockVisitor& visit) const {
  settle();
  const std::lock_guard lock(replaying_);
  visit(pool_.offset(&header_));
  uno_.for_each_block(visit);
  logs_.for_each_block(visit);
  reserve_.for_each_block(visit);
  Reach reach(pool_, kinds_, &visit);
  plugin_.inspect(index_, reach);
}

/// With replaying_.
TipsStats Core::tips_stats() const {
  TipsStats stats;
  stats.cache_hits = static_cast<std::uint64_t>(hits_.sum());
  stats.cache_misses = static_cast<std::uint64_t>(misses_.sum());
  stats.cached = cache_->entry_bytes();
  stats.waiting = deferred_.size();
  stats.replays = replays_;
  stats.replayed = replayed_.load(std::memory_order_relaxed);
  stats.max_waiting = max_waiting_;
  stats.workers = scaling_.workers();
  stats.workers_used = workers_used_;
  stats.reclamations = reclamations_;
  stats.undo_records = uno_.undo_records();
  stats.undo_saved = uno_.undo_saved();
  return stats;
}

IndexStats Core::stats() const {
  IndexStats stats;
  stats.pairs = size();
  const std::lock_guard lock(replaying_);
  const pool::BlockVisitor add = [&](pm::Offset block) {
    stats.pm_bytes += pool_.allocator().block_size(block);
  };
  Reach reach(pool_, kinds_, &add);
  plugin_.inspect(index_, reach);
  stats.leaves = reach.blocks();
  stats.dram_bytes = sizeof *this + cache_->dram_bytes() + uno_.dram_bytes();
  stats.recovery_seconds = recovery_seconds_;
  stats.resumption_seconds = resumption_.seconds();
  stats.tips = tips_stats();
  return stats;
}

}  // namespace perdix::detail::index::tips
