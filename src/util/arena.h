// DRAM for index nodes: size classes carved from one stretch of memory that the kernel backs with
// huge pages once there is more than one of them.
//
// A random read from a huge page costs half of one from 4 KiB pages, and nodes of one index lie
// together. In an arena with a range, 32 bits name a piece. Sizes are rounded up to a multiple of
// 16 bytes. A size that is a multiple of 64 is aligned to 64 bytes, all others to 16. Sizes above 4
// KiB are mappings of their own, aligned to pages, and to huge pages from 2 MiB on.
//
// Small arenas stay small: the first 2 MiB are ordinary pages until more is needed, and a class
// begins with a slab of a page or a few.
//
// Invariants:
//   1. Memory is divided into slabs; a slab always serves the same size class, and starts at a
//      multiple of 64 bytes.
//   2. Freed memory goes to its class and is returned to the system only when the arena is
//      destroyed. Separate mappings are returned immediately.
//   3. A free piece is in the hands of one stripe, or in a batch that the class's list leads to. A
//      batch is pushed by one compare-and-swap, and all batches are taken together, so neither the
//      list nor its pieces are read by two threads.
//
// Thread-safe, and in an arena with a range no thread waits for another: a stripe is only ever
// tried, a thread that finds all of them locked does without, and a thread that needs the effect of
// a system call makes it again. Memory must be released to the arena that it came from, with the
// size asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::util {

class Arena {
 public:
  /// Names a piece of up to 4 KiB of an arena with a range; 0: none.
  using Ref = std::uint32_t;

  static constexpr std::size_t kGranule = 16;

  /// As much as can have Refs: nearly 64 GiB.
  static constexpr std::size_t kMaxRange = (kGranule << 32) - (std::size_t{2} << 20);

  /// Without a range. Throws std::bad_alloc.
  Arena() : Arena(0) {}

  /// Takes all pieces of up to 4 KiB from this many addresses, or fewer if the system has no more:
  /// once they are in use there is no more memory. Throws std::bad_alloc if it has very few.
  explicit Arena(std::size_t range);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Unmaps everything; nothing allocated here may be used afterwards. Own mappings must have been
  /// released.
  ~Arena();

  /// Uninitialised memory; bytes > 0. Throws std::bad_alloc if the system has no more.
  void* allocate(std::size_t bytes);

  /// As many pieces of one size as the array has, of up to 4 KiB: cheaper than one by one.
  void allocate(std::size_t bytes, std::span<void*> pieces);

  void release(void* memory, std::size_t bytes) noexcept;

  /// For pieces of an arena with a range; nullptr and 0 stand for each other.
  Ref ref(const void* piece) const {
    if (piece == nullptr) return 0;
    return static_cast<Ref>((reinterpret_cast<std::uintptr_t>(piece) - before_range_) / kGranule);
  }
  void* piece(Ref ref) const {
    if (ref == 0) return nullptr;
    return reinterpret_cast<void*>(before_range_ + ref * kGranule);
  }

  /// Allocated and not released, with rounding.
  std::size_t bytes_in_use() const noexcept;

  /// Taken from the system: slabs and mappings of their own, in whole huge pages where there are
  /// any. What of it was never touched takes no memory.
  std::size_t bytes_reserved() const noexcept;

 private:
  static constexpr std::size_t kLargestClass = 4096;
  static constexpr std::size_t kClasses = kLargestClass / kGranule + 1;
  static constexpr std::size_t kLargestSlab = 64 * 1024;
  static constexpr std::size_t kBlock = 2 * 1024 * 1024;
  static constexpr std::size_t kArenaStripes = 16;

  /// A piece that is free.
  struct Free {
    Free* next;        // of the same batch
    Free* next_batch;  // of the first piece of a batch
  };

  /// A stripe's pieces of one class. All 0 at first.
  struct Local {
    Free* freed;       // a batch that grows and shrinks
    Free* full;        // another one, which was full
    std::byte* fresh;  // the part of the current slab that was never used
    std::byte* fresh_end;
    std::uint32_t count;  // of `freed`, at most
    std::uint32_t slabs;  // so far
  };

  /// In memory that is 0 at first, of which only what is used is touched.
  struct alignas(kCacheLine) Stripe {
    SpinLock lock;  // only tried
    std::atomic<std::int64_t> in_use;
    std::array<Local, kClasses> classes;
  };

  std::unique_lock<SpinLock> try_stripe(Stripe*& stripe);
  void* take(Local& local, std::size_t bytes);
  bool refill(Local& local, std::size_t bytes);
  void* take_from_others(std::size_t bytes) noexcept;
  void* take_without_stripe(std::size_t bytes);
  void give_back(Local& local, void* memory, std::size_t bytes) noexcept;
  Free* pop_batch(std::size_t bytes) noexcept;
  void push_batches(Free* first, std::size_t bytes) noexcept;
  std::span<std::byte> carve(std::size_t least, std::size_t most);
  std::span<std::byte> carve_range(std::size_t least, std::size_t most);
  std::span<std::byte> carve_block(std::size_t least, std::size_t most);
  bool make_accessible(std::size_t begin, std::size_t end);
  void* allocate_mapping(std::size_t bytes);

  std::array<std::atomic<Free*>, kClasses> batches_{};
  Stripe* stripes_ = nullptr;
  std::atomic<std::int64_t> in_use_{0};     // beside those of the stripes
  std::atomic<std::size_t> mappings_{0};    // bytes of own ones
  std::atomic<std::size_t> carved_{0};      // bytes of slabs; in a range they lie side by side
  std::atomic<std::size_t> accessible_{0};  // bytes of the range, from its begin; or more are
  std::uintptr_t before_range_ = 0;         // one granule, so that no piece has the Ref 0
  std::byte* range_ = nullptr;
  std::size_t range_size_ = 0;

  // Of an arena without a range.
  SpinLock block_lock_;
  std::vector<std::byte*> blocks_;
  std::byte* slab_ = nullptr;  // what is left of the newest block
  std::byte* slab_end_ = nullptr;
};

}  // namespace perdix::detail::util
