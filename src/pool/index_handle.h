// The right to use one index of a pool: held by the engine that has it open.
//
// While a handle exists its index can't be opened again or dropped, and its pool stays open.
// Movable; a moved-from handle may only be destroyed or assigned to. One thread per handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <perdix/pool.h>

namespace perdix::detail::pool {

class PoolCore;

class IndexHandle {
 public:
  IndexHandle(IndexHandle&& other) noexcept = default;
  IndexHandle& operator=(IndexHandle&& other) noexcept;
  ~IndexHandle();

  /// The engine's word in PM: 0 while the index is new and empty. To be changed by
  /// Persister::publish() or by the allocator's log.
  std::uint64_t& root() const noexcept { return *root_; }

  const IndexInfo& info() const noexcept { return info_; }
  const std::string& name() const noexcept { return info_.name; }

  /// True if this opening created the index. (After a crash the root may be 0 though this is
  /// false.)
  bool created() const noexcept { return created_; }

  PoolCore& pool() const noexcept { return *pool_; }

  /// A second handle, for a part of the index that another engine keeps: its root is `root`, a word
  /// in a block of the index.
  IndexHandle part(std::uint64_t& root) const;

 private:
  friend class PoolCore;

  IndexHandle(std::shared_ptr<PoolCore> pool, std::size_t slot, std::uint64_t& root, IndexInfo info,
              bool created)
      : pool_(std::move(pool)),
        slot_(slot),
        root_(&root),
        info_(std::move(info)),
        created_(created) {}

  void release() noexcept;

  std::shared_ptr<PoolCore> pool_;  // null: moved from
  std::size_t slot_;
  std::uint64_t* root_;
  IndexInfo info_;
  bool created_;
};

}  // namespace perdix::detail::pool
