// DRAM for index nodes: size classes carved from 2 MiB-aligned blocks that the kernel backs with
// huge pages.
//
// A random read from a huge page costs half of one from 4 KiB pages, and nodes of one index lie
// together. In an arena with a range, 32 bits name a piece. Sizes are rounded up to a multiple of
// 16 bytes. A size that is a multiple of 64 is aligned to 64 bytes, all others to 16. Sizes above 4
// KiB are mappings of their own, aligned to pages, and to huge pages from 2 MiB on.
//
// Invariants:
//   1. A block is divided into slabs; a slab serves one size class for ever, and starts at a
//      multiple of 64 bytes.
//   2. Freed memory goes to its class's list and is returned to the system only when the arena is
//      destroyed. Mappings of their own are returned at once.
//
// Thread-safe, by one short lock. Memory must be released to the arena that it came from, with the
// size asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "util/spin_lock.h"

namespace perdix::util {

class Arena {
 public:
  /// Names a piece of up to 4 KiB of an arena with a range; 0: none.
  using Ref = std::uint32_t;

  static constexpr std::size_t kGranule = 16;

  /// As much as can have Refs: nearly 64 GiB.
  static constexpr std::size_t kMostRange = (kGranule << 32) - (std::size_t{2} << 20);

  Arena() = default;

  /// Takes all pieces of up to 4 KiB from so many addresses, or fewer if the system has no more:
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

  /// Mapped from the system; what of it was never touched takes no memory.
  std::size_t bytes_reserved() const noexcept;

 private:
  static constexpr std::size_t kLargestClass = 4096;
  static constexpr std::size_t kSlab = 64 * 1024;
  static constexpr std::size_t kBlock = 2 * 1024 * 1024;

  struct FreeChunk {
    FreeChunk* next;
  };
  struct SizeClass {
    FreeChunk* freed = nullptr;
    std::byte* fresh = nullptr;  // the part of the current slab that was never used
    std::byte* fresh_end = nullptr;
  };

  std::byte* next_block();
  void* take(SizeClass& size_class, std::size_t bytes);
  void* allocate_mapping(std::size_t bytes);
  void give_back(SizeClass& size_class, void* memory, std::size_t bytes) noexcept;
  void refill(SizeClass& size_class);

  mutable SpinLock lock_;
  std::array<SizeClass, kLargestClass / kGranule + 1> classes_{};
  std::vector<std::byte*> blocks_;   // of an arena without a range
  std::uintptr_t before_range_ = 0;  // one granule, so that no piece has the Ref 0
  std::byte* range_ = nullptr;       // what is left of it
  std::byte* range_end_ = nullptr;
  std::byte* slab_ = nullptr;  // the next slab of the newest block
  std::byte* slab_end_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t reserved_ = 0;
};

}  // namespace perdix::util
