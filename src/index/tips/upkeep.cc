#include "index/tips/upkeep.h"

#include <exception>

#include "index/common/retry.h"

namespace perdix::detail::index::tips {

Upkeep::Upkeep(pool::PoolCore& pool, Framework& framework, Inspection& inspection, Changes& changes,
               Cache& cache, const Settings& settings)
    : logs_(framework.logs),
      inspection_(inspection),
      resumes_(settings.resumes),
      replayer_(framework, inspection, changes, cache, settings.options) {
  replayer_.recover();
  retry_when_full(pool, [&] { logs_.make_first_ring(); });
  job_.emplace(pool.background(), [this] { replay_in_background(); });
  if (inspection_.is_done() && replayer_.has_deferred()) job_->request();
  start_inspection();
}

Upkeep::~Upkeep() {
  inspection_.stop();
  job_.reset();  // runs it, if it was requested
  try {
    // Once settled, it leaves the allocated blocks as for_each_block() has shown them.
    if (inspection_.is_done() && !replayer_.is_settled()) settle();
  } catch (const std::exception&) {  // the records stay, and the next opening replays them
  }
}

/// Under a probe the first call that needs it inspects.
void Upkeep::start_inspection() noexcept {
  if (inspection_.is_done() || !resumes_ || !pm::background_work()) return;
  inspection_.start([this](const std::stop_token& stop) {
    if (alone([&](Replayer&) { return inspection_.run(stop); })) replay_in_background();
  });
}

void Upkeep::inspect() {
  if (!inspection_.is_done()) alone([&](Replayer&) { inspection_.run(); });
}

void Upkeep::catch_up() {
  if (replayer_.is_caught_up()) return;
  alone([&](Replayer&) { replay_some(); });
}

/// The caller holds the lock.
void Upkeep::replay_some() {
  replayer_.run();
  if (logs_.is_due()) replayer_.reclaim();
}

void Upkeep::make_room() {
  alone([](Replayer& replayer) {
    replayer.run();
    replayer.reclaim();
  });
}

void Upkeep::settle() {
  alone([](Replayer& replayer) { replayer.settle(); });
}

void Upkeep::replay_in_background() noexcept {
  requested_.store(false);
  if (!inspection_.is_done() && resumes_) return;  // the inspection's thread replays, too
  try {
    alone([&](Replayer& replayer) {
      if (replayer.is_settled()) return;
      replay_some();
    });
  } catch (const std::exception&) {  // the next call that needs a replay meets the same error
  }
}

void Upkeep::after_write() noexcept try {
  constexpr std::uint64_t kMaxBacklog = 1024;
  if (!requested_.load(std::memory_order_relaxed) && !requested_.exchange(true)) job_->request();
  if (!pm::background_work() &&
      replayer_.backlog() >= pm::limit("tips: writes before a replay", kMaxBacklog))
    catch_up();
} catch (const std::exception&) {
}

}  // namespace perdix::detail::index::tips
