#include "index/tips_of/blocks.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/tips_of/size_class.h"
#include "pm/probe.h"

namespace perdix::detail::index::tips_of {
namespace {

constexpr std::uint64_t kMaxPages = std::uint64_t{64} << 20 >> 12;  // of an extent of small blocks

}  // namespace

void Blocks::format(std::uint64_t object_bytes) {
  arena() = Arena{};
  arena().cut = head_bytes(object_bytes);
}

void Blocks::push(unsigned number, pm::Offset block) {
  auto* const free_block = pages_.pool().at<FreeBlock>(block);
  free_block->next = arena().free[number];
  arena().free[number] = block;
}

/// The rest of the extent becomes free blocks.
void Blocks::cut_up_rest() {
  const pm::Offset begin = pages_.pool().offset(pages_.begin_of(arena().extent));
  while (arena().cut < pages_.bytes(arena().extent)) {
    const unsigned number = largest_class_within(pages_.bytes(arena().extent) - arena().cut);
    push(number, begin + arena().cut);
    arena().cut += size_of_class(number);
  }
}

/// As large as all extents before, so that there are few.
void Blocks::make_room(std::uint64_t bytes) {
  while (pages_.bytes(arena().extent) - arena().cut < bytes) {
    if (arena().extent + 1 == pages_.extents()) {
      const std::uint64_t needed = (bytes + kPage - 1) / kPage;
      const std::uint64_t most = pm::limit("tips: pages of an extent", kMaxPages);
      pages_.add_extent(std::max(needed, std::min(pages_.count(), most)));
    }
    cut_up_rest();
    ++arena().extent;
    arena().cut = 0;
  }
}

void* Blocks::allocate(std::uint64_t bytes) {
  if (bytes > kMaxBlock) {
    throw Error(Errc::too_large, fmt::format("a container asked for {} bytes at once; the most is "
                                             "{}",
                                             bytes, kMaxBlock));
  }
  const unsigned number = class_of(std::max<std::uint64_t>(bytes, 1));
  const std::uint64_t size = size_of_class(number);
  pm::Offset block = arena().free[number];
  if (block != pm::kNull) {
    arena().free[number] = pages_.pool().at<FreeBlock>(block)->next;
  } else {
    make_room(size);
    block = pages_.pool().offset(pages_.begin_of(arena().extent)) + arena().cut;
    arena().cut += size;
  }
  ++arena().live_blocks;
  arena().live_bytes += size;
  return pages_.pool().at<std::byte>(block);
}

bool Blocks::free(void* block, std::uint64_t bytes) noexcept {
  if (!pages_.contains(block, bytes)) return false;
  const unsigned number = class_of(std::max<std::uint64_t>(bytes, 1));
  push(number, pages_.pool().offset(block));
  --arena().live_blocks;
  arena().live_bytes -= size_of_class(number);
  return true;
}

/// Calls show(class, block) for each free block. False if a list leads elsewhere, or back.
template <class Show>
bool Blocks::for_each_free(Show show) const {
  std::uint64_t left = pages_.count() * kPage / kBlockUnit;
  for (unsigned number = 0; number < kClasses; ++number) {
    for (pm::Offset at = arena().free[number]; at != pm::kNull; --left) {
      if (left == 0 || at % kBlockUnit != 0) return false;
      const std::uint64_t size = size_of_class(number);
      if (!pages_.pool().contains(at, size) ||
          !pages_.contains(pages_.pool().at<std::byte>(at), size))
        return false;
      show(number, at);
      at = pages_.pool().at<FreeBlock>(at)->next;
    }
  }
  return true;
}

std::uint64_t Blocks::bytes_cut() const {
  std::uint64_t bytes = arena().cut;
  for (std::size_t i = 0; i < arena().extent; ++i) bytes += pages_.bytes(i);
  return bytes;
}

std::uint64_t Blocks::free_bytes() const {
  std::uint64_t bytes = 0;
  for_each_free([&](unsigned number, pm::Offset) { bytes += size_of_class(number); });
  return bytes;
}

void Blocks::explain(Suspects& suspects) const {
  suspects.number(&arena(), sizeof(Arena));
  for_each_free([&](unsigned number, pm::Offset at) {
    auto* const block = pages_.pool().at<FreeBlock>(at);
    suspects.number(&block->next, sizeof block->next);
    suspects.dead(block, size_of_class(number));
  });
}

void Blocks::check(std::uint64_t object_bytes, Problems& problems) const {
  const bool sound = arena().extent < pages_.extents() &&
                     arena().cut <= pages_.bytes(arena().extent) && arena().constructed <= 1;
  problems.expect(sound, "the arena contradicts its extents (O4)");
  if (!sound || arena().constructed == 0) return;
  std::uint64_t free_bytes = 0;
  const bool ends =
      for_each_free([&](unsigned number, pm::Offset) { free_bytes += size_of_class(number); });
  problems.expect(ends, "a list of free blocks leads out of the container's pages, or back (O4)");
  problems.expect(
      !ends || head_bytes(object_bytes) + arena().live_bytes + free_bytes == bytes_cut(),
      "{} bytes of blocks and {} of free ones are not the {} that were cut off (O4)",
      arena().live_bytes, free_bytes, bytes_cut());
}

}  // namespace perdix::detail::index::tips_of
