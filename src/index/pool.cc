// The public Pool. pool/ handles the file. This file has the parts that need the engines: finishing
// drops, checking.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <perdix/pool.h>

#include "index/engine.h"
#include "pm/processor.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"
#include "util/cancellation.h"

namespace perdix {
namespace {

/// Problems that a report lists at most.
constexpr std::size_t kMaxProblems = 100;

void add_problem(CheckReport& report, std::string problem) {
  if (report.problems.size() < kMaxProblems) report.problems.push_back(std::move(problem));
}

/// Frees all blocks that a hidden index reaches, and its entry. Restartable: a crash in it is
/// continued at the next open. What can't be freed, for example since it is damaged, stays where it
/// is, and so does the entry: the index is gone for users all the same, and must not keep the
/// others from them.
void destroy(detail::pool::PoolCore& core, detail::pool::IndexHandle handle) {
  const IndexInfo& info = handle.info();
  try {
    detail::pool::as_errors(
        [&] { detail::index::engine_of(info, core).destroy(core, info, handle.root()); });
  } catch (const Error& error) {
    return core.postpone_drop(std::move(handle), error.what());
  }
  core.finish_drop(std::move(handle));
}

std::shared_ptr<detail::pool::PoolCore> finish_drops(std::shared_ptr<detail::pool::PoolCore> core) {
  for (detail::pool::IndexHandle& handle : core->dropping()) destroy(*core, std::move(handle));
  return core;
}

/// Checks what can be checked of an index that a plug-in keeps which this process does not have.
void check_logs(const detail::index::PluginHost& host, detail::pool::PoolCore& core,
                const IndexInfo& info, CheckReport& report,
                std::vector<detail::pm::Offset>& reached) {
  report.unknown.push_back(
      fmt::format("index '{}' has the engine '{}', a plug-in that the pool was opened without: "
                  "only its logs were checked",
                  info.name, info.engine));
  try {
    CheckReport of_logs;
    host.check_logs(core, info, of_logs, reached);
    for (const std::string& problem : of_logs.problems)
      add_problem(report, fmt::format("index '{}': {}", info.name, problem));
  } catch (const Error& error) {
    if (error.code() == Errc::in_use) throw;
    add_problem(report, fmt::format("index '{}': {}", info.name, error.what()));
  }
}

/// Checks one index and adds the blocks that it reaches.
void check_index(detail::pool::PoolCore& core, const IndexInfo& info, CheckReport& report,
                 std::vector<detail::pm::Offset>& reached) {
  const detail::index::EngineType* engine = detail::index::look_up_engine(info, core);
  const detail::index::PluginHost* host = detail::index::plugin_host_of(info.engine);
  if (engine == nullptr && host != nullptr) return check_logs(*host, core, info, report, reached);
  if (engine == nullptr) {
    report.unknown.push_back(
        fmt::format("index '{}' has the engine '{}', which this program doesn't have: it was not "
                    "checked",
                    info.name, info.engine));
    return;
  }
  try {
    const auto index = engine->open(core.open_index(info), {});
    const CheckReport of_index = index->check();
    report.pairs += of_index.pairs;
    for (const std::string& problem : of_index.problems) {
      add_problem(report, fmt::format("index '{}': {}", info.name, problem));
    }
    // A damaged index may link to anything; its blocks are followed only if it is sound.
    if (of_index.ok())
      index->for_each_block([&](detail::pm::Offset block) { reached.push_back(block); });
  } catch (const Error& error) {
    if (error.code() == Errc::in_use) throw;
    // Opening completes what a crash has interrupted, for example a creation.
    if (error.code() == Errc::out_of_space) {
      report.unknown.push_back(fmt::format(
          "index '{}' needs space to be opened: it was not checked ({})", info.name, error.what()));
      return;
    }
    if (error.code() == Errc::older_format) {  // which may be sound
      report.unknown.push_back(
          fmt::format("index '{}' was not checked: {}", info.name, error.what()));
      return;
    }
    add_problem(report, fmt::format("index '{}': {}", info.name, error.what()));
  }
}

/// Every allocated block is reached exactly once, and nothing else is. Unless `complete`, blocks
/// may belong to indexes that were not followed.
void compare_blocks(detail::pool::PoolCore& core, std::vector<detail::pm::Offset>& reached,
                    bool complete, CheckReport& report) {
  std::vector<detail::pm::Offset> allocated;
  core.allocator().for_each_allocated(
      [&](detail::pm::Offset block, std::uint64_t) { allocated.push_back(block); });
  std::sort(allocated.begin(), allocated.end());
  std::sort(reached.begin(), reached.end());
  report.blocks = allocated.size();

  const auto twice = std::adjacent_find(reached.begin(), reached.end());
  if (twice != reached.end()) {
    add_problem(report, fmt::format("block {:#x} is reached in two ways", *twice));
  }
  std::vector<detail::pm::Offset> difference;
  std::set_difference(allocated.begin(), allocated.end(), reached.begin(), reached.end(),
                      std::back_inserter(difference));
  if (complete) {
    for (const detail::pm::Offset block : difference)
      add_problem(report,
                  fmt::format("block {:#x} is allocated, but no index reaches it (leak)", block));
  }
  difference.clear();
  std::set_difference(reached.begin(), reached.end(), allocated.begin(), allocated.end(),
                      std::back_inserter(difference));
  for (const detail::pm::Offset block : difference) {
    add_problem(report, fmt::format("block {:#x} is used by an index, but not allocated", block));
  }
}

CheckReport check_pool(detail::pool::PoolCore& core) {
  const detail::pool::PoolCore::Checking checking(core);
  CheckReport report;
  core.allocator().check(report);
  std::vector<detail::pm::Offset> reached;
  if (const detail::pm::Offset block = core.journal_block(); block != detail::pm::kNull)
    reached.push_back(block);
  for (const IndexInfo& info : core.indexes()) check_index(core, info, report, reached);
  const std::vector<UnfinishedDrop> unfinished = core.unfinished_drops();
  if (report.ok())
    compare_blocks(core, reached, unfinished.empty() && report.unknown.empty(), report);
  for (const UnfinishedDrop& drop : unfinished) {
    add_problem(report, fmt::format("index '{}' was dropped, but its space could not be freed: {}",
                                    drop.index.name, drop.why));
  }
  core.require_usable();
  return report;
}

/// A pool that may lack stores is sound only if all of it was checked.
void require_all_known(CheckReport& report) {
  for (const std::string& unknown : report.unknown)
    add_problem(report, unknown + ", so the pool stays refused");
}

CheckReport verify_pool(const std::filesystem::path& path, const PoolOptions& options) {
  detail::index::require_plugins(options.plugins);
  const auto core = finish_drops(
      detail::pool::PoolCore::open(path, options, detail::pool::Purpose::verification));
  CheckReport report = check_pool(*core);
  report.stores_may_be_missing = core->needs_check();
  if (report.stores_may_be_missing) require_all_known(report);
  if (report.ok()) core->accept_after_check();
  core->close();
  return report;
}

[[noreturn]] void throw_moved_from() {
  throw Error(Errc::invalid_argument,
              "this Pool object was moved from: use the one that it was moved to, or assign a pool "
              "to it first");
}

void drop_index(detail::pool::PoolCore& core, std::string_view name) {
  // Before anything is changed: an index of an engine that isn't there is left alone.
  detail::index::engine_of(core.index_info(name), core);
  destroy(core, core.begin_drop(name));
}

}  // namespace

Pool::Pool(std::shared_ptr<detail::pool::PoolCore> core) : core_(std::move(core)) {}

Pool Pool::create(const std::filesystem::path& path, const PoolOptions& options) {
  const detail::util::NotCancelled not_cancelled;
  detail::pm::require_processor();
  return detail::pool::as_errors([&] {
    detail::index::require_plugins(options.plugins);
    return Pool(detail::pool::PoolCore::create(path, options));
  });
}

Pool Pool::open(const std::filesystem::path& path, const PoolOptions& options) {
  const detail::util::NotCancelled not_cancelled;
  detail::pm::require_processor();
  return detail::pool::as_errors([&] {
    detail::index::require_plugins(options.plugins);
    return Pool(finish_drops(detail::pool::PoolCore::open(path, options)));
  });
}

Pool Pool::open_or_create(const std::filesystem::path& path, const PoolOptions& options) {
  try {
    return open(path, options);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
  try {
    return create(path, options);
  } catch (const Error& error) {
    if (error.code() != Errc::already_exists) throw;
  }
  return open(path, options);  // another process has created it in between
}

CheckReport Pool::verify(const std::filesystem::path& path, const PoolOptions& options) {
  const detail::util::NotCancelled not_cancelled;
  detail::pm::require_processor();
  return detail::pool::as_errors([&] { return verify_pool(path, options); });
}

PoolInfo Pool::info() const {
  return detail::pool::as_errors(*core(), [&] { return core_->info(); });
}

bool Pool::huge_pages() const {
  return detail::pool::as_errors(*core(), [&] { return core_->huge_pages(); });
}

std::vector<IndexInfo> Pool::indexes() const {
  return detail::pool::as_errors(*core(), [&] { return core_->indexes(); });
}

CheckReport Pool::check() const {
  return detail::pool::as_errors(*core(), [&] { return check_pool(*core_); });
}

void Pool::drop(std::string_view name) {
  detail::pool::as_errors(*core(), [&] { drop_index(*core_, name); });
}

void Pool::close() {
  const detail::util::NotCancelled not_cancelled;
  detail::pool::as_errors([&] { core()->close(); });
}

const std::shared_ptr<detail::pool::PoolCore>& Pool::core() const {
  if (core_ == nullptr) [[unlikely]]
    detail::pool::as_errors([] { throw_moved_from(); });
  return core_;
}

}  // namespace perdix
