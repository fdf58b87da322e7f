#include "special/resume/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "special/resume/flat_table.h"
#include "special/resume/loader.h"
#include "special/resume/plain_log.h"
#include "special/resume/process.h"
#include "util/random.h"

namespace perdix::bench::resumption {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The index, and what a plain log had for it.
class Store {
 public:
  explicit Store(const Restart& restart)
      : pool_(Pool::open(restart.pool)),
        opened_(Clock::now()),
        index_(pool_, kIndexName, {.dram_budget = restart.dram_budget}) {
    if (!restart.plain_log.empty()) scan(restart.plain_log);
  }

  std::optional<std::uint64_t> get(std::uint64_t key) const {
    if (buffered_) {
      if (const auto value = buffered_->get(key)) return value;
    }
    return index_.get(key);
  }

  IndexStats stats() const { return index_.stats(); }

  /// Since the pool was open.
  Clock::time_point opened() const { return opened_; }

 private:
  // The index's background thread works during this time.
  void scan(const std::filesystem::path& path) {
    const PlainLog log(path);
    buffered_.emplace(log.capacity());
    log.scan(*buffered_);
  }

  Pool pool_;
  Clock::time_point opened_;
  SpTree<std::uint64_t, std::uint64_t> index_;
  std::optional<FlatTable> buffered_;
};

bool answers(const Store& store, const Records& records, std::uint64_t number) {
  return store.get(records.key(number)) == records.value(number);
}

// stats() reads the whole backup, so the interval between the calls grows. The index itself records
// the moment.
IndexStats wait_until_rebuilt(const Store& store) {
  for (std::chrono::microseconds pause(500);; pause += pause / 2) {
    std::this_thread::sleep_for(pause);
    const IndexStats stats = store.stats();
    if (stats.resumed >= 1 && stats.resumption_seconds > 0) return stats;
  }
}

// One thread's lookups until the last moment.
Served look_up(const Store& store, const Restart& restart, std::uint64_t seed,
               Clock::time_point begin, std::span<const std::uint64_t> within) {
  Served served;
  detail::util::Random random(seed);
  const std::uint64_t records = restart.acknowledged.total();
  for (std::size_t moment = 0; moment < within.size();) {
    const std::uint64_t record = restart.acknowledged.record(random.below(records));
    const bool right = answers(store, restart.records, record);
    const Clock::duration passed = Clock::now() - begin;
    served.lost += !right;
    if (served.first_answer_seconds == 0)
      served.first_answer_seconds = std::chrono::duration<double>(passed).count();
    while (moment < within.size() && passed > std::chrono::milliseconds(within[moment])) ++moment;
    if (moment < within.size()) ++served.answers[moment];
  }
  // So far those since the moment before.
  for (std::size_t i = 1; i < within.size(); ++i) served.answers[i] += served.answers[i - 1];
  return served;
}

}  // namespace

Rebuilt measure_rebuild(const Restart& restart) {
  Rebuilt result;
  const Acknowledged& acknowledged = restart.acknowledged;
  const std::uint64_t first =
      acknowledged.record(detail::util::Random(restart.seed).below(acknowledged.total()));
  const Clock::time_point begin = Clock::now();
  const Store store(restart);
  result.lost += !answers(store, restart.records, first);
  result.first_answer_seconds = seconds_since(begin);
  const IndexStats stats = wait_until_rebuilt(store);
  const std::chrono::duration<double> opening = store.opened() - begin;
  result.rebuilt_seconds = opening.count() + stats.resumption_seconds;
  result.leaves = stats.leaves;
  result.dram_bytes = stats.dram_bytes;
  for (std::uint64_t n = 0; n < acknowledged.end(); ++n)
    result.lost += acknowledged.has(n) && !answers(store, restart.records, n);
  return result;
}

Served measure_service(const Restart& restart, unsigned threads,
                       std::span<const std::uint64_t> within) {
  const Clock::time_point begin = Clock::now();
  const Store store(restart);
  Served total;
  std::mutex mutex;
  std::atomic<bool> failed{false};
  run_threads(threads, failed, [&](unsigned thread) {
    const Served served =
        look_up(store, restart, restart.seed * kMaxThreads + thread, begin, within);
    const std::lock_guard lock(mutex);
    const bool is_first = total.first_answer_seconds == 0;
    total.first_answer_seconds =
        is_first ? served.first_answer_seconds
                 : std::min(total.first_answer_seconds, served.first_answer_seconds);
    for (std::size_t i = 0; i < within.size(); ++i) total.answers[i] += served.answers[i];
    total.lost += served.lost;
  });
  return total;
}

}  // namespace perdix::bench::resumption
