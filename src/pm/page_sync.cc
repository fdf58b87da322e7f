#include "pm/page_sync.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace perdix::pm {
namespace {
std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}
}  // namespace

void PageSync::note(const void* p, std::size_t n) {
  const std::uintptr_t page = page_size();
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const Run run{address & ~(page - 1), (address + n + page - 1) & ~(page - 1)};
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
  for (std::size_t i = 0; i < runs.size();) {
    Run merged = runs[i++];
    while (i < runs.size() && runs[i].begin <= merged.end)
      merged.end = std::max(merged.end, runs[i++].end);
    if (::msync(reinterpret_cast<void*>(merged.begin), merged.end - merged.begin, MS_SYNC) != 0) {
      failed_.store(true, std::memory_order_release);
    }
  }
}

}  // namespace perdix::pm
