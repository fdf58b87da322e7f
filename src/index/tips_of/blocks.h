// Memory for a container: blocks that are cut off its pages, and lists of free ones. All of this
// state lies in the pages, so a write that is rolled back also rolls back its blocks.
//
// A freed block goes to the next allocation of its size. Memory does not go back to the pool before
// the index is dropped.
//
// Used by the thread that writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/common/problems.h"
#include "index/tips_of/layout.h"
#include "index/tips_of/pages.h"
#include "pm/probe.h"

namespace perdix::detail::index::tips_of {

class Blocks {
 public:
  explicit Blocks(Pages& pages) : pages_(pages) {}

  /// Forgets all blocks. What follows is cut off behind `bytes` for the container's object.
  void format(std::uint64_t object_bytes);

  /// Aligned to 16 bytes. Throws out_of_space, too_large, no_memory.
  void* allocate(std::uint64_t bytes);

  /// Takes back a block of allocate(bytes). Returns false if it lies elsewhere.
  bool free(void* block, std::uint64_t bytes) noexcept;

  /// O4, as far as it can be seen without the container.
  void check(std::uint64_t object_bytes, Problems& problems) const;

  Arena& arena() const { return *reinterpret_cast<Arena*>(pages_.begin_of(0)); }
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

/// Where blocks begin behind a container's object.
constexpr std::uint64_t head_bytes(std::uint64_t object_bytes) {
  return kObjectAt + (object_bytes + 15) / 16 * 16;
}

/// Pages that a new index begins with.
inline std::uint64_t first_pages(std::uint64_t object_bytes) {
  constexpr std::uint64_t kFirst = 16;
  return pm::limit("tips: pages of an extent", kFirst) + head_bytes(object_bytes) / kPage;
}

}  // namespace perdix::detail::index::tips_of
