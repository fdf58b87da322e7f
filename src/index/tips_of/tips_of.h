// A container that page protection makes durable (docs/durability/tips_of.md). The container's type
// is known to its public class only; here it is memory that changes.
//
//   pages.h           protection, copies, commit
//   faults.h          the handler of SIGSEGV
//   blocks.h          memory for the container
//   trial.h           whether a type of container can be made durable
//   recovery.cc       what happens on open: creation, recovery; and on drop
//   check.cc          verification; statistics
//   api.cc            what the public class calls
//
// Thread-safe: one write at a time, or reads.
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string_view>

#include <perdix/tips_of.h>
#include <perdix/types.h>

#include "index/tips_of/blocks.h"
#include "index/tips_of/faults.h"
#include "index/tips_of/layout.h"
#include "index/tips_of/pages.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::tips_of {

inline constexpr std::string_view kEngineName = "tips_of";

class Table final : public pool::OpenIndex {
 public:
  /// Opens what there is, of whatever type, to be checked or dropped.
  explicit Table(pool::IndexHandle handle);
  /// Opens the container, or creates it. Throws wrong_kind, unsupported.
  Table(pool::IndexHandle handle, const ContainerType& type);
  ~Table() override;

  static void destroy(pool::PoolCore& pool, std::uint64_t& root);

  pool::PoolCore& pool() const { return handle_.pool(); }
  void* container() const { return pages_->begin_of(0) + kObjectAt; }

  void* allocate(std::uint64_t bytes);
  void free(void* block, std::uint64_t bytes) noexcept;

  /// Throws in a thread that is in a write, whichever container's.
  void begin_write();
  /// Throws if what was written can't be made durable; nothing has ended then.
  void prepare_commit();
  /// Ends a write by making it durable. Throws if the device has failed.
  void commit();
  void roll_back() noexcept;
  /// Ends a write in a child that was forked in it, which has no pages.
  void abandon() noexcept;

  void begin_read() const;
  void end_read() const { mutex_.unlock_shared(); }

  IndexStats stats() const override;
  TipsOfStats container_stats() const;
  CheckReport check() const override;
  void for_each_block(const pool::BlockVisitor& visit) const override;

 private:
  friend class Trial;

  // recovery.cc
  void open();
  void require_type() const;
  void make_container();
  void require_same_hashes();

  // tips_of.cc
  void end_write() noexcept;
  void settle();

  Arena& arena() const { return blocks_->arena(); }

  pool::IndexHandle handle_;    // keeps the pool open
  const ContainerType type_{};  // without functions if it was opened untyped
  Header* header_ = nullptr;    // null: there is none yet
  std::optional<Pages> pages_;
  std::optional<Blocks> blocks_;

  mutable std::shared_mutex mutex_;  // guards the pages and what follows
  std::optional<Faults> faults_;     // during a write
  bool foreign_ = false;             // memory was given back that is not of this container
};

}  // namespace perdix::detail::index::tips_of
