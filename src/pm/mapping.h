// A pool's file in memory: mapped by libpmem2 at the start of a reserved range of addresses, in
// which it grows in place, so that pointers stay valid.
//
// Invariants: the base address is a multiple of 2 MiB and never changes; [base, base + size) is
// mapped and backed by space of the file. A child of fork() does not inherit the mapping. grow() is
// serialised by the owner; the rest is thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pm/file.h"
#include "pm/huge_pages.h"

struct pmem2_map;
struct pmem2_source;
struct pmem2_vm_reservation;

namespace perdix::detail::pm {

/// The smallest unit that the platform keeps over a power failure once it was stored, as libpmem2
/// reports it.
enum class Granularity : std::uint8_t {
  byte,        ///< nothing to flush: the platform flushes its caches itself (eADR)
  cache_line,  ///< lines must be flushed
  page,        ///< pages must be synced: the file is in the page cache
};

class Mapping {
 public:
  /// The alignment of the base.
  static constexpr std::uint64_t kAlignment = kHugePage;

  /// Reserves `max_size` bytes of addresses and maps the first `size` bytes of the file, which must
  /// be there. `file` must outlive the mapping. Sizes are multiples of kAlignment, size > 0. Throws
  /// out_of_space (no addresses left) or io_error.
  /// `address`: where it begins, a multiple of kAlignment; then in_use if any of these addresses is
  /// taken. 0: anywhere.
  Mapping(const File& file, std::uint64_t size, std::uint64_t max_size, std::uintptr_t address = 0);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* base() const noexcept { return base_; }
  std::uint64_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  std::uint64_t max_size() const noexcept { return max_size_; }
  Granularity granularity() const noexcept { return granularity_; }

  /// True if stores go straight to persistent memory, without a page cache between.
  bool dax() const noexcept { return granularity_ != Granularity::page; }

  /// Maps the file up to `new_size` bytes, which must be there. Throws io_error and changes
  /// nothing.
  void grow(std::uint64_t new_size);

  /// From now on nothing that is stored reaches the file: stores go to private copies of its pages,
  /// and what was mapped stays readable and writable at its address. Other threads may use the
  /// mapping during the call; the kernel makes them wait. Where the file can't be mapped once more
  /// (its device is gone, or its descriptor), what the kernel has cached of it is copied, pages
  /// that it has not are zeros, and what other threads store meanwhile may be missing: for what is
  /// read from then on the caller needs a health that says so. The mapping doesn't grow any more.
  /// Throws io_error if the kernel refuses (a limit of data or of committed memory): then stores to
  /// some of it, or to all, still reach the file.
  void make_private();

  /// As make_private(), and the page of `address` becomes zeros: the device lost it. So does the
  /// first page, which is where an offset that is read as zero leads. False if the kernel refuses.
  /// For the handler of SIGBUS: async-signal-safe, so without the lock that keeps children out. A
  /// child that another thread forks in this moment may inherit the mapping, and keeps the file
  /// open until it ends or executes a program.
  bool replace_lost_page(const void* address) noexcept;

  /// Touches [offset, offset + n) ahead of use, as huge pages where the file system can give them,
  /// so that later stores don't fault. Advice: a failure only costs time later.
  void populate(std::uint64_t offset, std::uint64_t n) const noexcept;

  /// Waits until [offset, offset + n) is on the device, whatever the domain. Page-aligned. Throws
  /// io_error.
  void sync(std::uint64_t offset, std::uint64_t n) const;

  /// Whether huge pages map the pool now, at least in part. Cost: reads /proc/self/smaps.
  bool huge_pages() const;

 private:
  struct DeleteSource {
    void operator()(pmem2_source* source) const noexcept;
  };
  struct DeleteReservation {
    void operator()(pmem2_vm_reservation* reservation) const noexcept;
  };
  struct DeleteMap {
    void operator()(pmem2_map* map) const noexcept;
  };
  using Map = std::unique_ptr<pmem2_map, DeleteMap>;

  /// Where stores go.
  enum class Reach : std::uint8_t { file, changing, memory };

  bool leave_file() noexcept;
  bool can_be_mapped() const noexcept;
  bool map_privately() noexcept;
  bool replace_by_copy() noexcept;
  static bool replace_by_zeros(const void* address) noexcept;
  void reserve(std::uintptr_t address);
  Map map(std::uint64_t begin, std::uint64_t end) const;
  void keep_from_children(std::uint64_t begin, std::uint64_t end) const;

  const File& file_;
  std::uint64_t max_size_;
  std::unique_ptr<pmem2_source, DeleteSource> source_;
  std::unique_ptr<pmem2_vm_reservation, DeleteReservation> reservation_;
  std::vector<Map> maps_;  // after reservation_: a reservation must be empty when it is deleted
  std::byte* base_ = nullptr;
  std::atomic<std::uint64_t> size_{0};
  Granularity granularity_ = Granularity::page;
  std::atomic<Reach> reach_{Reach::file};
  static_assert(std::atomic<Reach>::is_always_lock_free, "a signal handler changes it");
};

}  // namespace perdix::detail::pm
