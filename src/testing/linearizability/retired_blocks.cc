#include "testing/linearizability/retired_blocks.h"

#include <iterator>

namespace perdix::testing {

void RetiredBlocks::begin_section() {
  const std::lock_guard lock(mutex_);
  sections_[std::this_thread::get_id()] = now_;
}

void RetiredBlocks::retired(const void* p, std::size_t n) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<Address>(p);
  blocks_[begin] = {begin + n, ++now_};
}

void RetiredBlocks::reclaimed(const void* p) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(reinterpret_cast<Address>(p));
}

bool RetiredBlocks::may_read(const void* p, std::size_t n) const {
  const std::lock_guard lock(mutex_);
  const auto section = sections_.find(std::this_thread::get_id());
  if (section == sections_.end()) return true;
  const auto begin = reinterpret_cast<Address>(p);
  auto block = blocks_.lower_bound(begin + n);
  while (block != blocks_.begin()) {
    --block;
    if (block->second.end <= begin) break;  // blocks do not overlap
    if (block->second.retired > section->second) continue;
    return false;
  }
  return true;
}

}  // namespace perdix::testing
