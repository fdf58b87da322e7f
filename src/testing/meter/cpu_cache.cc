#include "testing/meter/cpu_cache.h"

#include <algorithm>
#include <utility>

#include "testing/meter/line_map.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kEmpty = ~std::uint64_t{1};  // no line has this number, and it is clean

}  // namespace

CpuCache::CpuCache(const CpuCacheOptions& options)
    : ways_(std::max<std::size_t>(options.ways, 1)),
      sets_(std::max<std::size_t>(options.bytes / kLineBytes / ways_, 1)),
      table_(sets_ * ways_, kEmpty) {}

const std::uint64_t* CpuCache::set_of(std::uint64_t line) const {
  const std::uint64_t hash = line * 0x9e3779b97f4a7c15;
  const auto scaled = static_cast<unsigned __int128>(hash) * sets_;
  return table_.data() + static_cast<std::size_t>(scaled >> 64) * ways_;
}

std::uint64_t* CpuCache::set_of(std::uint64_t line) {
  return const_cast<std::uint64_t*>(std::as_const(*this).set_of(line));
}

std::size_t CpuCache::position_of(const std::uint64_t* set, std::uint64_t line) const {
  for (std::size_t i = 0; i < ways_; ++i) {
    if (set[i] >> 1 == line) return i;
  }
  return ways_;
}

bool CpuCache::touch(std::uint64_t line, bool write) {
  std::uint64_t* set = set_of(line);
  const std::size_t i = position_of(set, line);
  if (i == ways_) return false;
  std::rotate(set, set + i, set + i + 1);
  set[0] |= std::uint64_t{write};
  return true;
}

bool CpuCache::contains(std::uint64_t line) const {
  return position_of(set_of(line), line) != ways_;
}

std::optional<std::uint64_t> CpuCache::insert(std::uint64_t line, bool dirty) {
  std::uint64_t* set = set_of(line);
  const std::uint64_t victim = set[ways_ - 1];
  std::copy_backward(set, set + ways_ - 1, set + ways_);
  set[0] = line << 1 | std::uint64_t{dirty};
  if ((victim & 1) == 0) return std::nullopt;
  return victim >> 1;
}

void CpuCache::drop(std::uint64_t line) {
  std::uint64_t* set = set_of(line);
  const std::size_t i = position_of(set, line);
  if (i == ways_) return;
  std::copy(set + i + 1, set + ways_, set + i);
  set[ways_ - 1] = kEmpty;
}

bool CpuCache::clean(std::uint64_t line) {
  std::uint64_t* set = set_of(line);
  const std::size_t i = position_of(set, line);
  if (i == ways_ || (set[i] & 1) == 0) return false;
  set[i] &= ~std::uint64_t{1};
  return true;
}

}  // namespace perdix::testing
