#include "index/tips/core.h"

#include <exception>

#include <perdix/error.h>

#include "index/common/problems.h"
#include "index/common/retry.h"
#include "index/tips/check.h"
#include "index/tips/reach.h"

namespace perdix::detail::index::tips {

Core::Core(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin, Kinds kinds,
           const Settings& settings)
    : pool_(pool),
      header_(open_header(pool, root, plugin, settings.options.log_bytes)),
      guest_(plugin, object_behind(header_), kinds),
      framework_(pool, root, header_),
      inspection_(pool, guest_, framework_.uno),
      changes_(pool, guest_, framework_.uno),
      cache_(pool.reclaimer(), recovered(settings.options)),
      upkeep_(pool, framework_, inspection_, changes_, cache_, settings),
      writer_(pool, framework_, inspection_, changes_, cache_, upkeep_) {}

/// Takes the index back to what it was when the last epoch began. Returns the size of its cache.
Cache::Size Core::recovered(const TipsOptions& options) {
  retry_when_full(pool_, [&] { framework_.roll_back_or_finish(); });
  guest_.renew_locks();
  inspection_.run_if_small();
  return cache_size(options, guest_.size(), pm::load(header_.ring_bytes));
}

bool Core::reclaim_space() noexcept {
  try {
    upkeep_.settle();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::uint64_t Core::size() {
  catch_up();
  return upkeep_.alone([&](const Replayer& replayer) {
    const auto pairs = static_cast<std::int64_t>(guest_.size()) + pending_pairs(replayer);
    guest_.report();
    return static_cast<std::uint64_t>(pairs);
  });
}

/// By how many pairs the index will grow when there is space.
std::int64_t Core::pending_pairs(const Replayer& replayer) const {
  std::int64_t pairs = 0;
  replayer.for_each_deferred([&](const Entry& entry) {
    const bool there = inspection_.find(entry.key(), [](std::string_view) {});
    const bool puts = entry.operation() == Operation::put;
    if (puts != there) pairs += puts ? 1 : -1;
  });
  return pairs;
}

CheckReport Core::check() {
  CheckReport report;
  Problems problems(report);
  try {
    catch_up();
    upkeep_.alone([&](const Replayer& replayer) {
      check_plugged(pool_, guest_, report, problems);
      report.pairs += static_cast<std::uint64_t>(pending_pairs(replayer));
      framework_.uno.check(problems);
      AuditedBlocks audited(pool_.allocator(), report, "T6");
      framework_.walk(audited);
    });
  } catch (const Error& error) {
    problems.expect(false, "{}", error.what());
  }
  return report;
}

void Core::for_each_block(const pool::BlockVisitor& visit) {
  upkeep_.settle();
  upkeep_.alone([&](const Replayer&) {
    ShownBlocks shown(visit);
    framework_.walk(shown);
    Reach reach(pool_, guest_.kinds(), &visit);
    guest_.inspect(reach);
  });
}

TipsStats Core::tips_stats(const Replayer& replayer) const {
  TipsStats stats;
  replayer.count(stats);
  stats.cache_hits = static_cast<std::uint64_t>(hits_.sum());
  stats.cache_misses = static_cast<std::uint64_t>(misses_.sum());
  stats.cached = cache_.entry_bytes();
  stats.reclamations = framework_.reclamations();
  stats.undo_records = framework_.uno.undo_records();
  stats.undo_saved = framework_.uno.undo_saved();
  return stats;
}

IndexStats Core::stats() {
  IndexStats stats;
  stats.pairs = size();
  upkeep_.alone([&](const Replayer& replayer) {
    const pool::BlockVisitor add = [&](pm::Offset block) {
      stats.pm_bytes += pool_.allocator().block_size(block);
    };
    Reach reach(pool_, guest_.kinds(), &add);
    guest_.inspect(reach);
    stats.leaves = reach.blocks();
    stats.tips = tips_stats(replayer);
    stats.dram_bytes = sizeof *this + cache_.dram_bytes() + framework_.uno.dram_bytes();
  });
  stats.recovery_seconds = recovery_.count();
  stats.resumption_seconds = inspection_.seconds();
  return stats;
}

}  // namespace perdix::detail::index::tips
