#include "special/resume/loader.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "index/sptree/replay.h"
#include "index/sptree/sptree.h"
#include "special/resume/plain_log.h"
#include "wal/log.h"

namespace perdix::bench::resumption {
namespace {

using Index = SpTree<std::uint64_t, std::uint64_t>;
namespace sptree = detail::index::sptree;

constexpr std::chrono::milliseconds kPoll{1};

void insert(Index& index, const Records& records, std::uint64_t number) {
  if (!index.insert(records.key(number), records.value(number)))
    throw Error(Errc::corrupt, fmt::format("record {} was there before it was inserted", number));
}

/// The changes of all chains that have not been merged, from the oldest to the newest.
std::vector<std::pair<detail::wal::Position, Change>> open_changes(detail::pool::PoolCore& core,
                                                                   detail::wal::Log& log,
                                                                   const sptree::Root& root) {
  const detail::index::Codec<std::uint64_t> keys(core);
  std::vector<std::pair<detail::wal::Position, Change>> changes;
  for (detail::pm::Offset at = root.first; at != detail::pm::kNull;) {
    const sptree::Leaf& leaf = sptree::leaf_at(core, at);
    const auto survivor = sptree::survivor_of(core, keys, log, leaf);
    if (survivor && !survivor->replay.stale) {
      log.follow(survivor->owner, survivor->head,
                 [&](detail::wal::Type type, std::uint64_t key, std::uint64_t value,
                     detail::wal::Position place) {
                   if (type != detail::wal::Type::put)
                     throw Error(Errc::corrupt, "something was erased that never was");
                   changes.emplace_back(place, Change{survivor->owner, key, value});
                 });
    }
    at = sptree::successor_of(leaf);
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return changes;
}

Leftover write_leftover_here(const std::filesystem::path& path,
                             const std::filesystem::path& plain_log) {
  const Pool pool = Pool::open(path);
  detail::pool::PoolCore& core = *pool.core();
  const detail::pool::IndexHandle handle =
      core.open_index(kIndexName, sptree::kEngineName, Kind::u64, Kind::u64);
  const sptree::Root& root = sptree::root_at(core, detail::pm::load(handle.root()));
  detail::wal::Log log(core, detail::pm::load(root.log), detail::wal::Log::Limits{kUnlimited});
  std::vector<Change> changes;
  for (const auto& [place, change] : open_changes(core, log, root)) changes.push_back(change);
  write_plain_log(plain_log, changes);
  return {log.bytes_used(), changes.size()};
}

}  // namespace

void load_and_kill(const std::filesystem::path& path, std::uint64_t dram_budget, std::uint64_t keys,
                   const LoadOptions& options, Acknowledged& acknowledged) {
  acknowledged.set_threads(options.threads);
  Process process([&] {
    const Pool pool = Pool::create(path);
    Index index(pool, kIndexName, {.dram_budget = dram_budget});
    std::atomic<bool> failed{false};
    run_threads(options.threads, failed, [&](unsigned thread) {
      for (std::uint64_t n = thread; !failed.load(std::memory_order_relaxed);
           n += options.threads) {
        insert(index, options.records, n);
        acknowledged.add(thread);
      }
    });
  });
  while (acknowledged.total() < keys && process.running(*options.stop)) {
    options.on_progress(acknowledged.total());
    std::this_thread::sleep_for(kPoll);
  }
  process.kill();
}

Leftover write_leftover(const std::filesystem::path& pool, const std::filesystem::path& plain_log,
                        const std::atomic<bool>& stop) {
  const Shared<Leftover> leftover;
  Process([&] { *leftover = write_leftover_here(pool, plain_log); }).finish(stop);
  return *leftover;
}

void load_rest_and_kill(const std::filesystem::path& path, const std::filesystem::path& plain_log,
                        const LoadOptions& options, const Acknowledged& acknowledged) {
  const Shared<std::atomic<bool>> loaded;
  const Shared<Acknowledged> done;
  done->set_threads(options.threads);
  Process process([&] {
    const PlainLog log(plain_log);
    FlatTable buffered(log.capacity());
    log.scan(buffered);
    const Pool pool = Pool::create(path);
    Index index(pool, kIndexName);
    std::atomic<bool> failed{false};
    run_threads(options.threads, failed, [&](unsigned thread) {
      for (std::uint64_t n = thread; n < acknowledged.end() && !failed; n += options.threads) {
        if (acknowledged.has(n) && !buffered.get(options.records.key(n)))
          insert(index, options.records, n);
        done->add(thread);
      }
    });
    loaded->store(true, std::memory_order_release);
    for (;;) ::pause();
  });
  while (!loaded->load(std::memory_order_acquire) && process.running(*options.stop)) {
    options.on_progress(done->total());
    std::this_thread::sleep_for(kPoll);
  }
  process.kill();
}

}  // namespace perdix::bench::resumption
