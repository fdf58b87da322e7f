#include "pm/page_sync.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include <perdix/error.h>

namespace perdix::pm {
namespace {
std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}
}  // namespace

void PageSync::note(const void* p, std::size_t n) noexcept {
  const std::uintptr_t page = page_size();
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const Run run{address & ~(page - 1), (address + n + page - 1) & ~(page - 1)};
  try {
    add_noted(run);
  } catch (const std::bad_alloc&) {
    // The caller has stored what it flushes, and can't take it back. Sooner than at the fence is
    // right, too.
    const std::lock_guard lock(syncing_);
    if (!failed() && !sync_run(run)) fail();
  }
}

void PageSync::add_noted(Run run) {
  const std::lock_guard lock(mutex_);
  std::vector<Run>& runs = noted_[std::this_thread::get_id()];
  if (!runs.empty() && runs.back().begin <= run.begin && run.end <= runs.back().end) return;
  runs.push_back(run);
}

std::vector<PageSync::Run> PageSync::take_noted() {
  std::vector<Run> runs;
  {
    const std::lock_guard lock(mutex_);
    const auto it = noted_.find(std::this_thread::get_id());
    if (it == noted_.end()) return runs;
    runs = std::move(it->second);
    noted_.erase(it);  // a thread that ends leaves nothing behind
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  return runs;
}

void PageSync::sync() {
  const std::vector<Run> runs = take_noted();
  if (runs.empty()) return;  // what the caller stores from now on relies on no sync of its own
  const std::lock_guard lock(syncing_);
  for (std::size_t i = 0; i < runs.size();) {
    Run merged = runs[i++];
    while (i < runs.size() && runs[i].begin <= merged.end)
      merged.end = std::max(merged.end, runs[i++].end);
    if (failed()) return;
    if (!sync_run(merged)) fail();
  }
}

bool PageSync::sync_run(Run run) {
  return ::msync(reinterpret_cast<void*>(run.begin), run.end - run.begin, MS_SYNC) == 0;
}

void PageSync::sync_file(File& file) {
  const std::lock_guard lock(syncing_);
  if (failed()) throw Error(Errc::io_error, "an earlier sync has failed");
  try {
    file.sync();
  } catch (const Error&) {
    fail();
    throw;
  }
}

/// noexcept: a process that can't keep its stores from the file ends here, as in a crash.
void PageSync::fail() noexcept {
  if (on_failure_) on_failure_();
  failed_.store(true, std::memory_order_release);
}

}  // namespace perdix::pm
