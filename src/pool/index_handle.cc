#include "pool/index_handle.h"

#include <utility>

#include "pool/pool_core.h"

namespace perdix::detail::pool {

IndexHandle& IndexHandle::operator=(IndexHandle&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::move(other.pool_);
  slot_ = other.slot_;
  root_ = other.root_;
  info_ = std::move(other.info_);
  created_ = other.created_;
  return *this;
}

IndexHandle::~IndexHandle() { release(); }

IndexHandle IndexHandle::part(std::uint64_t& root) const {
  IndexHandle part = pool_->another(*this);
  part.root_ = &root;
  part.info_ = info_;
  return part;
}

void IndexHandle::release() noexcept {
  if (pool_ == nullptr) return;
  pool_->release(slot_);
  pool_.reset();
}

}  // namespace perdix::detail::pool
