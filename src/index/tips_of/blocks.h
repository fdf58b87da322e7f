// Memory for a container: blocks that are cut off its pages, and lists of free blocks by size
// class. All of this state lies in the pages (layout.h, Arena), so a write that is rolled back also
// takes back what it allocated and freed.
//
// A freed block is used by the next allocation of its class. Memory goes back to the pool only when
// the index is dropped.
//
// Not thread-safe: for the thread that is in the container's write, or when no write runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include <perdix/tips_of_type.h>

#include "index/common/problems.h"
#include "index/tips_of/layout.h"
#include "index/tips_of/pages.h"
#include "pm/probe.h"

namespace perdix::detail::index::tips_of {

class Blocks {
 public:
  explicit Blocks(Pages& pages) : pages_(pages) {}

  /// Makes an arena without blocks. Blocks will begin behind the container's object, which takes
  /// `object_bytes`.
  void format(std::uint64_t object_bytes);

  /// Returns a block of at least `bytes`, aligned to 16 bytes. Adds an extent to the pages if there
  /// is no room. Throws out_of_space, too_large, no_memory.
  void* allocate(std::uint64_t bytes);

  /// Takes back a block of allocate(bytes). Returns false, and has changed nothing, if it does not
  /// lie in the container's pages.
  bool free(void* block, std::uint64_t bytes) noexcept;

  /// Verifies O4, as far as that is possible without knowing the container, and adds to `problems`.
  void check(std::uint64_t object_bytes, Problems& problems) const;

  /// Tells what of the pages is not the container's memory: the arena and free blocks.
  void explain(Suspects& suspects) const;

  Arena& arena() const { return *reinterpret_cast<Arena*>(pages_.begin_of(0)); }
  /// Bytes of all free blocks. Cost: reads each of them.
  std::uint64_t free_bytes() const;

 private:
  void cut_up_rest();
  void make_room(std::uint64_t bytes);
  void push(unsigned number, pm::Offset block);
  std::uint64_t bytes_cut() const;

  template <class Show>
  bool for_each_free(Show show) const;

  Pages& pages_;
};

/// Where the first block begins in the first extent: behind the container's object.
constexpr std::uint64_t head_bytes(std::uint64_t object_bytes) {
  return kObjectAt + (object_bytes + 15) / 16 * 16;
}

/// The number of pages that a new index begins with.
inline std::uint64_t first_pages(std::uint64_t object_bytes) {
  constexpr std::uint64_t kFirst = 16;
  return pm::limit("tips: pages of an extent", kFirst) + head_bytes(object_bytes) / kPage;
}

}  // namespace perdix::detail::index::tips_of
