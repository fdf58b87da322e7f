// A container that page protection makes durable (docs/durability/tips_of.md). Only the public
// class TipsOf knows the container's type; here the container is memory that changes.
//
//   table.begin_write();
//   ...                      // changes the container; a TipsAllocator calls allocate() and free()
//   table.prepare_commit();  // if this or the change throws: roll_back(), or abandon() in a child
//   table.commit();
//
//   pages.h           protection, copies, commit
//   faults.h          the handler of SIGSEGV
//   blocks.h          memory for the container
//   foreign.cc        addresses that a write must not leave
//   program_memory.h  which ones these are
//   trial.h           whether a type of container can be made durable
//   recovery.cc       what happens on open: creation, recovery; and on drop
//   check.cc          verification; statistics
//   api.cc            what the public class calls
//
// Thread-safe: a call waits until it may begin, since there is one write at a time, or reads.
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include <perdix/tips_of.h>
#include <perdix/types.h>

#include "index/tips_of/blocks.h"
#include "index/tips_of/faults.h"
#include "index/tips_of/layout.h"
#include "index/tips_of/pages.h"
#include "index/tips_of/program_memory.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::tips_of {

inline constexpr std::string_view kEngineName = "tips_of";

class Table final : public pool::OpenIndex {
 public:
  /// Opens what there is, of whatever type, to be checked or dropped. Throws corrupt.
  explicit Table(pool::IndexHandle handle);
  /// Opens the container, or creates it. Throws wrong_kind if it is of another type, unsupported if
  /// the type can't be made durable (trial.h), corrupt, out_of_space.
  /// A container that is opened for export is there already and is not written to (not_found).
  Table(pool::IndexHandle handle, const ContainerType& type, Purpose purpose);
  ~Table() override;

  /// Frees all blocks of a container that is being dropped and clears its root. Restartable.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root);

  pool::PoolCore& pool() const { return handle_.pool(); }
  void* container() const { return pages_->begin_of(0) + kObjectAt; }

  /// Memory for the container. Called by the thread that is in a write. See Blocks.
  void* allocate(std::uint64_t bytes);
  void free(void* block, std::uint64_t bytes) noexcept;
  /// Clears what may be addresses of the process where an object was.
  void forget(void* object, std::uint64_t bytes) noexcept;

  /// Begins a write of this thread: waits for other writes and reads to end, and protects the
  /// pages. Throws invalid_argument if this thread is in a write of any container, unsupported if
  /// the kernel refuses, and what PoolCore::require_usable() throws; then no write has begun.
  void begin_write();
  /// Called at the end of a write. Throws if what was written can't be made durable; the write is
  /// still running then, and the caller rolls it back.
  void prepare_commit();
  /// Makes the write durable and ends it. Throws if the device has failed; the write has ended
  /// then, too.
  void commit();
  /// Takes all changes of the write back and ends it.
  void roll_back() noexcept;
  /// Ends the write in a child process that was forked during it. The child does not have the
  /// pages, and leaves the lock as it is.
  void abandon() noexcept;

  /// Begins a read; waits for a write to end. Throws invalid_argument if this thread is in the
  /// write of this container.
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
  void open_or_create();
  void open_for_export();
  void require_type() const;
  void make_container();
  void require_same_hashes();

  // tips_of.cc
  void require_not_exported() const;
  void end_write() noexcept;

  // foreign.cc
  void settle();
  /// Says which address of this process the open write would leave, and where.
  std::optional<std::string> foreign_address(const AddressFilter& filter) const;

  Arena& arena() const { return blocks_->arena(); }
  Region pool_region() const {
    const auto base = reinterpret_cast<std::uintptr_t>(pool().base());
    return {base, base + pool().max_size()};
  }

  pool::IndexHandle handle_;    // keeps the pool open
  const ContainerType type_{};  // without functions if it was opened untyped
  const Purpose purpose_ = Purpose::use;
  Header* header_ = nullptr;  // null: there is none yet
  std::optional<Pages> pages_;
  std::optional<Blocks> blocks_;
  std::optional<AddressFilter> filter_;  // unless it was opened untyped

  mutable std::shared_mutex mutex_;  // guards the pages and what follows
  std::optional<Faults> faults_;     // engaged during a write
  bool foreign_ = false;             // the write has given back memory that is not the container's
};

}  // namespace perdix::detail::index::tips_of
