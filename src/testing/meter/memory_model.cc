#include "testing/meter/memory_model.h"

namespace perdix::testing {
namespace {

// Numbers that no line of PM has.
constexpr std::uint64_t kFirstDramLine = std::uint64_t{1} << 60;

}  // namespace

MemoryModel::MemoryModel(const MeterOptions& options)
    : platform_(options.platform),
      cache_(options.cache),
      prefetcher_(options.prefetch),
      device_(options.device),
      next_dram_line_(kFirstDramLine) {}

// The streamer looks at what level 1 misses; an access to the line of the one before is taken for a
// hit there.
void MemoryModel::access(std::uint64_t line, bool write) {
  if (!cache_.touch(line, write)) fetch(line, write);
  if (line == last_line_) return;
  last_line_ = line;
  const Prefetcher::Range ahead = prefetcher_.observe(line);
  for (std::uint64_t next = ahead.begin; next < ahead.end; ++next) {
    if (!cache_.contains(next)) fetch(next, false);
  }
}

void MemoryModel::fetch(std::uint64_t line, bool dirty) {
  device_.read(line);
  insert(line, dirty);
}

// Only lines of PM are ever dirty.
void MemoryModel::insert(std::uint64_t line, bool dirty) {
  if (const auto evicted = cache_.insert(line, dirty)) device_.write(*evicted);
}

void MemoryModel::stream(std::uint64_t line) {
  cache_.drop(line);
  device_.write(line);
}

void MemoryModel::flush(std::uint64_t line) {
  if (platform_ == Platform::adr && cache_.clean(line)) device_.write(line);
}

void MemoryModel::pollute(std::uint64_t lines) {
  for (std::uint64_t i = 0; i < lines; ++i) insert(next_dram_line_++, false);
}

}  // namespace perdix::testing
