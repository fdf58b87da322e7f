// An open pool as the allocator and the indexes see it: its memory, its persister, its directory of
// indexes. perdix::Pool, the public class, is a shared_ptr to one.
//
// Its parts: MappedFile is the file in memory and on the device, SuperblockStore tells its state,
// IndexTable has the indexes.
//
// Invariants:
//   1. A pool that is open is marked unclean, durably, before anything else in it changes; it is
//      marked clean only by close(), after everything else in it is durable.
//   2. [0, size()) is ready (MappedFile) and covered by the superblock, which is durable before the
//      allocator may use what was added.
//   3. An index is open at most once; an IndexHandle keeps its pool open.
//   4. Once a sync has failed or a page is lost, no call returns a result: the pool can only be
//      closed, which writes nothing.
//   5. In a child of fork() every call throws `forked` before it takes a lock or looks at the pool;
//      only the end of the last reference does nothing.
//
// Thread-safe, close() included. Memory stays where it is until close().
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/pool.h>

#include "alloc/calloc.h"
#include "alloc/space.h"
#include "epoch/reclaimer.h"
#include "pm/file.h"
#include "pm/persist.h"
#include "pool/background.h"
#include "pool/health.h"
#include "pool/index_handle.h"
#include "pool/index_table.h"
#include "pool/mapped_file.h"
#include "pool/open_index.h"
#include "pool/superblock.h"

namespace perdix::detail::pool {

/// Why a pool is opened.
enum class Purpose {
  use,
  verification,  ///< also if stores of the last run may be missing (PoolCore::needs_check())
};

class PoolCore final : public alloc::Space, public std::enable_shared_from_this<PoolCore> {
 public:
  /// As perdix::Pool::create().
  static std::shared_ptr<PoolCore> create(const std::filesystem::path& path,
                                          const PoolOptions& options);

  /// Creates a pool in a file that is new and empty.
  static std::shared_ptr<PoolCore> create(pm::File file, const PoolOptions& options);

  /// As perdix::Pool::open(). Opened for verification, needs_check() may be true.
  static std::shared_ptr<PoolCore> open(const std::filesystem::path& path,
                                        const PoolOptions& options, Purpose purpose = Purpose::use);

  /// Closes, if close() hasn't been called; a failure leaves the pool unclean.
  ~PoolCore() override;

  const pm::Persister& pm() const noexcept override { return file_.pm(); }
  alloc::Calloc& allocator() noexcept { return *allocator_; }
  epoch::Reclaimer& reclaimer() const noexcept override { return *reclaimer_; }
  Background& background() noexcept { return background_; }
  OpenIndexes& open_indexes() noexcept { return open_indexes_; }

  /// Whether the pool is to survive power failures, and whether it is mapped directly from
  /// persistent memory.
  bool survives_power() const noexcept { return file_.survives_power(); }
  bool dax() const noexcept { return file_.dax(); }

  std::byte* base() const noexcept override { return file_.base(); }
  std::uint64_t size() const noexcept override { return file_.size(); }
  std::uint64_t max_size() const noexcept override { return file_.max_size(); }

  /// Makes [size(), new_size) part of the pool, zeroed; new_size is rounded up to whole units.
  /// Throws out_of_space or io_error, nothing changed.
  void extend(std::uint64_t new_size) override;

  bool provide(pm::Offset offset, std::uint64_t bytes) override;

  /// Touches [offset, offset + bytes) in the background.
  void prepare(pm::Offset offset, std::uint64_t bytes) override;

  template <class T>
  T* at(pm::Offset offset) const noexcept {
    assert((contains(offset, sizeof(T)) && offset % alignof(T) == 0) || health().page_lost());
    return file_.area<T>(offset);
  }

  pm::Offset offset(const void* p) const noexcept {
    return static_cast<pm::Offset>(static_cast<const std::byte*>(p) - base());
  }

  /// Whether [offset, offset + n) lies in the pool, behind its superblock and directory: to be
  /// asked before an offset from a file is followed.
  bool contains(pm::Offset offset, std::uint64_t n) const noexcept {
    const std::uint64_t end = size();
    return offset >= kPoolAreaSize && offset <= end && n <= end - offset;
  }

  /// For a caller that got out_of_space: what the open indexes don't need and what was freed before
  /// the call can be allocated after it. Returns whether there was any of that. Waits for grace
  /// periods, unless the thread is in an epoch::Guard: then it does nothing and returns false. The
  /// caller holds neither a lock nor a Session.
  bool reclaim_space();

  /// As the options named them.
  const std::vector<const tips::Plugin*>& plugins() const noexcept { return plugins_; }

  /// Throws forked in a child of the process that opened the pool, and io_error once a sync has
  /// failed or a page is lost. One load.
  void require_usable() const {
    if (!health().usable()) [[unlikely]]
      throw_unusable();
  }

  /// Like require_usable(), around a change; io_error also if the program has closed the file.
  void require_writable() const {
    if (!health().writable()) [[unlikely]]
      throw_unusable();
  }

  const Health& health() const noexcept { return file_.health(); }

  /// The word that says how many free spans are kept for an index when the pool is opened after a
  /// crash (alloc::Claim), by the root of the index. The index publishes what it claims before it
  /// relies on that, and 0 before it is dropped.
  std::uint64_t& claim_of(const std::uint64_t& root) const { return indexes_->claim_of(root); }

  /// Opens the index, or creates it with root 0. Throws wrong_engine, wrong_kind, in_use,
  /// out_of_space (directory full), invalid_argument or too_large (name).
  IndexHandle open_index(IndexInfo wanted);

  /// Like open_index() with an IndexInfo, for an index of pairs.
  IndexHandle open_index(std::string_view name, std::string_view engine, Kind key_kind,
                         Kind value_kind);

  /// Opens the index if it exists, with its own engine and kinds.
  std::optional<IndexHandle> open_existing_index(std::string_view name);

  std::vector<IndexInfo> indexes() const;

  /// What an index is. Throws not_found.
  IndexInfo index_info(std::string_view name) const;

  /// Hides an index for good; the caller then frees what its root reaches and calls finish_drop().
  /// Throws not_found, or in_use while it is open.
  IndexHandle begin_drop(std::string_view name);

  /// A second handle of an index, without its info. It keeps others from opening or dropping the
  /// index when the first one is gone.
  IndexHandle another(const IndexHandle& index) noexcept;

  /// begin_drop() by the owner of the only handle. Allocates nothing, unless it throws.
  void begin_drop(const IndexHandle& index);

  /// Hidden indexes whose drop has not been finished; the caller frees what their roots reach and
  /// calls finish_drop() on each, or postpone_drop().
  std::vector<IndexHandle> dropping();

  /// Frees the directory entry of a hidden index, and takes the handle from the caller.
  void finish_drop(IndexHandle&& index);

  /// Leaves an index hidden, with what it still occupies; the next opening tries again. info() says
  /// so, and why.
  void postpone_drop(IndexHandle index, std::string_view why) noexcept;

  /// Drops that this opening could not finish.
  std::vector<UnfinishedDrop> unfinished_drops() const;

  /// Cost: reads all bitmaps of the allocator, and asks for all extents of the file.
  PoolInfo info() const;
  /// From now on the pool is mapped where it is mapped now, durably: something in it is going to
  /// hold addresses. Throws io_error.
  void fix_address();
  bool has_fixed_address() const;

  /// The block that the journal has; 0: none.
  pm::Offset journal_block() const;

  /// As perdix::Pool::huge_pages().
  bool huge_pages() const;
  const std::filesystem::path& path() const noexcept { return file_.path(); }

  /// True if stores of the last run may be missing, and the pool has not been verified since: the
  /// machine went down while this `process` pool was open, or the file is a copy that was made
  /// while the pool was open. Then it stays refused unless accept_after_check() is called.
  bool needs_check() const;

  /// The pool was verified and may be opened again.
  void accept_after_check();

  /// Marks the pool clean and releases the file; nothing of it may be used afterwards. Throws
  /// in_use while an index is open or the pool is being checked, invalid_argument if closed
  /// already, forked in a child of fork(), and io_error or bad_alloc: then the pool is released
  /// and stays unclean.
  void close();

  /// Keeps the pool open while it is checked. Throws as any call of a closed pool.
  class Checking {
   public:
    explicit Checking(PoolCore& core);
    Checking(const Checking&) = delete;
    Checking& operator=(const Checking&) = delete;
    ~Checking();

   private:
    PoolCore& core_;
  };

  bool is_open() const;

  /// Waits until nothing more is made ready ahead of use. For tests.
  void wait_for_growth() { file_.wait_for_growth(); }

 private:
  friend class IndexHandle;  // releases its slot
  using Lock = std::unique_lock<std::mutex>;

  PoolCore(const BootId& boot, pm::File file) : file_(boot, std::move(file)) {}

  template <class MakeFile>
  static std::shared_ptr<PoolCore> lock_file(MakeFile file);

  static std::shared_ptr<PoolCore> format(std::shared_ptr<PoolCore> core,
                                          const PoolOptions& options);
  void format(std::uint64_t size, const PoolOptions& options);
  void recover(const PoolOptions& options, Purpose purpose);
  void require_complete(const Superblock& before, Purpose purpose);
  std::vector<pm::FileRange> chunks_in_use();
  void fit_journal(std::uint64_t asked);
  void start();
  void mark_open();

  IndexHandle handle(IndexTable::Slot slot, IndexInfo info, bool created) noexcept;
  void release(IndexTable::Slot slot) noexcept;
  Lock lock_open() const;
  void require_open() const;
  void require_unused() const;
  [[noreturn]] void throw_unusable() const;

  template <class Change>
  void change_cleanness(Change change);
  void mark_clean();
  void shut_down();
  void end_work() noexcept;
  void unmap() noexcept;

  MappedFile file_;
  std::optional<SuperblockStore> superblock_;
  std::optional<IndexTable> indexes_;
  std::unique_ptr<epoch::Reclaimer> reclaimer_;
  std::unique_ptr<alloc::Calloc> allocator_;
  std::vector<const tips::Plugin*> plugins_;
  bool was_clean_ = false;

  // Lock order: mutex_, then the allocator's locks, then superblock_mutex_, then Growth's. extend()
  // is called with the allocator's locks held, so it takes only the later ones.
  mutable std::mutex superblock_mutex_;  // guards superblock_, and the size of file_
  mutable std::mutex mutex_;             // guards opening and closing, indexes_, and what follows
  unsigned checks_ = 0;                  // that are going on
  bool open_ = false;
  bool needs_check_ = false;

  OpenIndexes open_indexes_;
  Background background_;  // idle unless an index is open, and then the pool is
};

}  // namespace perdix::detail::pool
