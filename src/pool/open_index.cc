#include "pool/open_index.h"

namespace perdix::detail::pool {

OpenIndexes::Entry::Entry(OpenIndexes& list, OpenIndex& index) : list_(list), index_(index) {
  const std::lock_guard lock(list_.mutex_);
  list_.all_.push_back(&index_);
}

OpenIndexes::Entry::~Entry() {
  const std::lock_guard lock(list_.mutex_);
  std::erase(list_.all_, &index_);
}

bool OpenIndexes::reclaim_space() {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (OpenIndex* index : all_) any |= index->reclaim_space();
  return any;
}

}  // namespace perdix::detail::pool
