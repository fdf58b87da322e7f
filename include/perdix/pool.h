// A pool: one file that holds named indexes. On persistent memory, tmpfs or an ordinary disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/error.h>
#include <perdix/types.h>

namespace perdix {

namespace detail::pool {
class PoolCore;
}

namespace tips {
class Plugin;
}

/// The failures that a pool must survive.
enum class Durability : std::uint8_t {
  automatic = 0,  ///< `power` on persistent memory (DAX), `process` elsewhere
  process = 1,    ///< the end of the process in any way, `kill -9` included; not of the machine
  power = 2,      ///< a power failure too: flushes on persistent memory, msync on ordinary files
};

/// Where a store is safe on this machine. Detected, unless the user knows better.
enum class DomainChoice : std::uint8_t {
  detect = 0,  ///< ask the platform; CXL's global persistent flush is never assumed
  /// The caches are flushed on power failure (eADR, CXL with global persistent flush).
  cpu_cache = 1,
  memory_controller = 2,  ///< lines must be written back and fenced
  page_cache = 3,         ///< pages must be synced: by way of a journal in the pool
};

/// How a pool is created or opened.
struct PoolOptions {
  /// Bytes to allocate at creation, rounded up to a multiple of 16 MiB; 0: the smallest pool.
  std::uint64_t initial_size = 0;
  /// Bytes of address space to reserve. The pool never grows beyond them, and remembers them. 0:
  /// what was asked for last, at first 1 TiB; less where the process has not enough addresses left
  /// (a process has 128 TiB: 127 pools of 1 TiB, fewer with indexes in them).
  std::uint64_t max_size = 0;
  /// The failures that the pool must survive.
  Durability durability = Durability::automatic;
  /// Where stores are safe on this machine.
  DomainChoice domain = DomainChoice::detect;
  /// Where to map the pool: a multiple of 2 MiB with max_size free bytes behind it. 0: the pool
  /// chooses a free place, or the address that it must have, if it holds a Tips index, which keeps
  /// addresses. A pool remembers its address from its first Tips index on, and then can't be opened
  /// elsewhere.
  std::uint64_t address = 0;
  /// The caller's indexes that the pool may have, plugged into Tips (perdix/tips_plugin.h). They
  /// must outlive the pool, which closes with its last copy and index. An index whose plug-in is
  /// not among them can't be opened, checked as a whole, or dropped; nothing else changes.
  std::vector<const tips::Plugin*> plugins{};
  /// Bytes of the journal of a pool that is `power` on an ordinary file, from 640 KiB to 255 MiB; a
  /// block of the pool. 0: what was asked for last; if nothing was, an eighth of the pool's size at
  /// this opening, at most 64 MiB, if it has 32 MiB or more and may become four times as large;
  /// else 640 KiB. Half of it is filled while what the other half holds is written to its place: so
  /// it is worth more to random writes, whose pages are then written once for many of them. Its
  /// first opening writes all of it. If there is no space for it, the journal stays as it is.
  std::uint64_t journal_size = 0;
};

/// The name, the engine and the types of an index.
struct IndexInfo {
  /// 1 to kMaxNameSize bytes without control characters; unique in its pool.
  std::string name;
  std::string engine;  ///< "sptree", …
  /// The type of its keys.
  Kind key_kind = Kind::u64;
  /// The type of its values.
  Kind value_kind = Kind::u64;
  /// The kind of content.
  DataModel model = DataModel::pairs;
};

/// An index that was dropped but still occupies space: see Pool::drop().
struct UnfinishedDrop {
  /// The index that was dropped.
  IndexInfo index;
  std::string why;  ///< a sentence
};

/// Facts about an open pool.
struct PoolInfo {
  /// The file.
  std::filesystem::path path;
  /// The version of the pool's format.
  std::uint32_t format_version = 0;
  std::uint64_t size = 0;                       ///< bytes of the file, all really allocated
  std::uint64_t allocated = 0;                  ///< bytes of it that blocks of indexes occupy
  std::uint64_t max_size = 0;                   ///< bytes that it can grow to while it is open
  std::uint64_t address = 0;                    ///< where the pool is mapped
  bool fixed_address = false;                   ///< it can be mapped nowhere else
  Durability durability = Durability::process;  ///< never `automatic`
  std::string domain;      ///< "cpu_cache", "memory_controller" or "page_cache"
  bool dax = false;        ///< mapped directly from persistent memory
  bool was_clean = false;  ///< the pool had been closed before this open
  /// The file system copies on write, or another file shares extents with this one. A write to the
  /// pool may then need space although the pool has its space; if there is none the process gets
  /// SIGBUS.
  bool may_copy_on_write = false;
  /// The file lies in memory (tmpfs), so that it ends with the machine, whatever its durability.
  bool in_memory = false;
  /// Bytes of the journal; 0 if the pool is opened without one.
  std::uint64_t journal_size = 0;
  /// Indexes that are gone but still occupy space.
  std::vector<UnfinishedDrop> unfinished_drops;
};

/// An open pool. Copies refer to the same pool; it closes with its last copy and index. An object
/// that was moved from refers to none, and its calls throw Errc::invalid_argument. Thread-safe.
///
/// One process owns a pool at a time: a second opener gets Errc::in_use with the owner's pid. The
/// file is created with mode 0600. Whatever bytes a file holds, opening it gives a pool or an
/// Error.
///
/// A process that forks keeps its pools, and the child has none. In the child every call of an
/// inherited pool or index throws Errc::forked, close() too; destructors do nothing. The file lock
/// ends with the owner, whatever its children do. So call daemon(3) before opening a pool, not
/// after. A child may open other pools. fork() waits for grace periods and for pools that other
/// threads are opening or closing.
///
/// A program that closes the descriptor of a pool's file, which is never 0, 1 or 2, finds out when
/// the pool must grow or is closed: that call throws Errc::io_error, and so does every later one
/// that would change something. Reads go on. Nothing is lost: open the pool again.
///
/// No thread is cancelled (pthread_cancel) while its call opens, closes or grows a pool, or waits
/// for a device: it ends in the first call after that in which threads may end.
///
/// Every call of a pool or an index may throw Errc::no_memory. Such a call has changed nothing, but
/// for close(), which releases the file all the same. What drop() could not free, for want of
/// memory, it leaves to the next opening.
///
/// A pool of durability `power` on an ordinary file may meet a device that can't write. The calls
/// in progress when the first sync failed throw Errc::io_error. What they were to change is
/// *undecided*: the next opening shows it entirely or not at all. Every later call throws io_error,
/// reads and info() included; close() releases the file without writing to it, and throws too. What
/// was acknowledged before is on the device. Open the pool again once the device works: the opening
/// shows what the device holds. If the kernel can't even keep later stores from the file, because a
/// limit of data or memory leaves no private mapping, the process ends as in a crash.
class Pool {
 public:
  /// Creates a pool. Throws already_exists, out_of_space, invalid_argument, no_threads, io_error;
  /// then no file is left. Throws unsupported if the processor lacks what perdix was compiled for.
  static Pool create(const std::filesystem::path& path, const PoolOptions& options = {});

  /// Opens a pool and repairs what a crash left. Throws not_found, not_a_pool, truncated,
  /// newer_format, older_format, corrupt, in_use (also if the pool has a fixed address, and that is
  /// taken), needs_check (see verify()), out_of_space, no_threads, io_error, unsupported (as
  /// create()); the file is then what it was. An index that is damaged, or of an engine
  /// that is not known, keeps no other one from being used. Cost: independent of the size of the
  /// pool, but for one line per 16 MiB; a copy that skipped zeros gets its space back where indexes
  /// use it. After a crash of a pool whose stores are synced by page, what the kernel has cached of
  /// it is dropped and read again.
  static Pool open(const std::filesystem::path& path, const PoolOptions& options = {});

  /// open() if the file exists, else create().
  static Pool open_or_create(const std::filesystem::path& path, const PoolOptions& options = {});

  /// Opens a pool even if stores may be missing (Errc::needs_check): the machine went down while a
  /// `process` pool was open, or the file is a copy of a pool that was not closed. Checks every
  /// index and block of it. If the report is clean the pool may be opened again from then on, but
  /// pairs may be missing, old or torn (CheckReport::stores_may_be_missing).
  static CheckReport verify(const std::filesystem::path& path, const PoolOptions& options = {});

  /// Facts about the pool, at the moment of the call. Cost: reads about a line for each 64 KiB of
  /// the pool, to count what is allocated.
  PoolInfo info() const;

  /// Returns whether huge pages map the pool now, at least in part; a pool on a disk asks for none,
  /// and one of the smallest size gets none before it grows. Cost: reads /proc/self/smaps, for
  /// which the kernel walks all pages that the process has at lower addresses too.
  bool huge_pages() const;
  /// The indexes of the pool, open or not.
  std::vector<IndexInfo> indexes() const;

  /// Checks every index and that exactly the blocks that they reach are allocated. No index may be
  /// open or in use. Until it returns, close() throws in_use.
  CheckReport check() const;

  /// Removes an index and frees its blocks. Throws not_found, in_use while it is open, or
  /// unsupported if its engine is not known to this release; then nothing has changed.
  /// Crash-atomic: after a crash the index is whole, or gone (what was not yet freed is freed at
  /// the next open). What can't be freed, since the index is damaged, stays occupied: the index is
  /// gone all the same, info() lists it under `unfinished_drops`, check() as a problem, and each
  /// opening tries again.
  void drop(std::string_view name);

  /// Marks the pool clean and releases the file. Throws in_use while an index is open or the pool
  /// is being checked, and io_error if the device failed: the file is released, and repaired when
  /// it is opened. Further calls throw invalid_argument. Throws forked in a child.
  void close();

  /// For the indexes of this library.
  const std::shared_ptr<detail::pool::PoolCore>& core() const;

 private:
  explicit Pool(std::shared_ptr<detail::pool::PoolCore> core);

  std::shared_ptr<detail::pool::PoolCore> core_;
};

}  // namespace perdix
