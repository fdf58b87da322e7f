// The file of a pool: its lock, its mapping, what makes stores to it durable, and its growth.
//
// Invariants:
//   1. [0, size()) has space on the device and is mapped, but for holes that fill() has not filled.
//   2. Once a sync has failed or a page is lost (LostPages), nothing that is stored reaches the
//      file any more.
//   3. If the program has closed the file, a call that needs it throws, and `health` says so.
//
// Opening and closing belong to one thread, in the order in which they stand here; what lies
// between is thread-safe, but set_size() and take(), which the pool serialises. Memory stays where
// it is until close().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <perdix/pool.h>

#include "pm/file.h"
#include "pm/journal.h"
#include "pm/mapping.h"
#include "pm/no_fork.h"
#include "pm/offset.h"
#include "pm/persist.h"
#include "pm/second_mapping.h"
#include "pool/durability.h"
#include "pool/file_lock.h"
#include "pool/growth.h"
#include "pool/health.h"
#include "pool/lost_pages.h"
#include "pool/origin.h"
#include "pool/superblock.h"

namespace perdix::detail::pool {

class MappedFile {
 public:
  /// The boot id is read before the file is opened: then it needs no descriptor that the file has.
  MappedFile(const BootId& boot, pm::File file) : file_(std::move(file)), origin_(boot, file_) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // --- Opening ---

  /// Throws in_use. No child has a descriptor of the file, which was opened since `no_fork` began.
  void lock(const pm::NoFork& no_fork) { lock_.emplace(file_, no_fork); }

  /// Gives a new, empty file its size, and maps it.
  void format(std::uint64_t size, const PoolOptions& options, std::uint64_t seed);

  /// The superblock of a pool whose syncs failed, or may have, as its device has it: what the
  /// kernel has cached of it may be newer, marked as written, and gone after the next power
  /// failure. What is cached may also lie in large folios, which syncs write as a whole
  /// (docs/durability/pool.md).
  FoundSuperblock read_superblock_on_device(Durability asked);

  /// Maps the file of a pool, of which this was read.
  void map(const Superblock& before, const PoolOptions& options);

  /// Applies the journal, before anything else of the pool is read, whatever domain it is opened in
  /// now. Null if there is nothing to replay; the caller finishes the replay when all that opening
  /// relies on has been found sound.
  std::unique_ptr<pm::Replay> replay_journal(const Superblock& before);

  /// In the pool's first MiB. Called at most once.
  void use_journal();

  /// The journal goes on in another area, which is the caller's to give. `fresh`: it has not been
  /// one before.
  void move_journal(pm::FileRange area, bool fresh);
  std::uint64_t journal_size() const noexcept { return journal_size_; }

  bool has_holes() const noexcept { return sparse_; }

  /// Gives space to what is in use, if free chunks may be holes: to read a hole of a full tmpfs
  /// would raise SIGBUS.
  void fill(std::span<const pm::FileRange> used);

  /// Cuts off growth that a crash interrupted, or that was made ready and not taken.
  void cut_off_growth();

  /// Shows a new pool at its path. In memory its pages are made ready ahead of use; on a disk
  /// touching them would write all of it.
  void publish();

  // --- While it is open ---

  Health& health() const noexcept { return *health_; }
  const pm::Persister& pm() const noexcept { return *pm_; }
  const Origin& origin() const noexcept { return origin_; }
  const std::filesystem::path& path() const noexcept { return file_.path(); }

  std::byte* base() const noexcept { return base_; }
  std::uint64_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  std::uint64_t max_size() const noexcept { return max_size_; }

  template <class T>
  T* area(pm::Offset offset) const noexcept {  // in the pool's own first MiB
    return reinterpret_cast<T*>(base_ + offset);
  }

  bool survives_power() const noexcept { return decision_.survives_power(); }
  bool dax() const noexcept { return mapping_->dax(); }
  bool huge_pages() const { return mapping_->huge_pages(); }

  /// What a superblock says of an opening like this one: unclean.
  void set_opened(Superblock& superblock) const;

  /// Fills in what the file and its mapping are.
  void describe(PoolInfo& info) const;

  /// Throws out_of_space if the pool may not become so large.
  void require_limit(std::uint64_t size) const;

  /// Gives [size(), size) space, and maps it. It counts when set_size() was called.
  void take(std::uint64_t size);
  void set_size(std::uint64_t size) noexcept { size_.store(size, std::memory_order_release); }

  /// As alloc::Space.
  bool provide(pm::Offset offset, std::uint64_t bytes);

  /// Touches [begin, end) in the background.
  void prepare(std::uint64_t begin, std::uint64_t end) { growth_->touch(begin, end); }

  /// Waits until nothing more is made ready ahead of use. For tests.
  void wait_for_growth() { growth_->wait_until_idle(); }

  /// Syncs the file of a pool that is to survive power failures.
  void sync_for_power();

  /// Makes a superblock that was just updated true of a pool of any durability.
  void sync_superblock();

  // --- Closing ---

  /// Ends the threads that use the file.
  void end_threads() noexcept;

  /// All that was stored is on the device, and the journal is empty.
  void make_durable();

  void unmap() noexcept;

  /// Cuts off what was made ready ahead of use, unmaps, and releases the file.
  void close() noexcept;

 private:
  void map(std::uint64_t size, const PoolOptions& options, std::uint64_t fixed, std::uint64_t seed);
  void choose_domain(Durability requested, DomainChoice choice);
  pm::JournalPlace journal_place(pm::FileRange area, unsigned halves) const;
  void stop_reaching_file();
  template <class Use>
  void unless_file_is_lost(Use use);

  const Health::Owner health_ = Health::create();
  pm::File file_;
  std::optional<FileLock> lock_;
  Origin origin_;
  std::optional<pm::Mapping> mapping_;
  std::optional<LostPages> lost_pages_;                // as long as mapping_
  std::unique_ptr<pm::SecondMapping> second_mapping_;  // for pm_; null: there is none
  std::optional<pm::Persister> pm_;
  std::optional<Growth> growth_;

  DomainDecision decision_;
  Durability requested_ = Durability::automatic;
  std::byte* base_ = nullptr;
  std::uint64_t requested_max_size_ = 0;
  std::uint64_t max_size_ = 0;      // less, if the process had not as many addresses
  std::uint64_t journal_size_ = 0;  // 0: none
  bool sparse_ = false;             // free chunks may be holes of the file
  std::atomic<std::uint64_t> size_{0};
};

}  // namespace perdix::detail::pool
