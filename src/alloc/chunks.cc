#include "alloc/chunks.h"

#include <cassert>
#include <iterator>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pm/access.h"

namespace perdix::detail::alloc {

namespace {

[[noreturn]] void throw_no_space(std::uint64_t chunks) {
  throw Error(Errc::out_of_space,
              fmt::format("the pool's file has holes that need {} MiB, and its file system has no "
                          "space for them; free some",
                          chunks * (kChunkSize >> 20)));
}

}  // namespace

Chunks::Chunks(Space& space)
    : space_(space),
      pm_(space.pm()),
      view_(space.base()),
      capacity_(space.max_size() / kChunkSize),
      words_(make_zeroed_array<std::atomic<std::uint64_t>>(capacity_)) {}

void Chunks::open() {
  const std::uint64_t count = pm::load(view_.header().alloc_num);
  const std::uint64_t usable = std::min(space_.size() / kChunkSize, capacity_);
  if (count == 0 || count > usable) {
    throw Error(count == 0 ? Errc::corrupt : Errc::truncated,
                fmt::format("the allocator says that the pool has {} chunks of 16 MiB, but it has "
                            "{}; restore the pool "
                            "from a copy",
                            count, usable));
  }
  for (std::uint64_t chunk = 0; chunk < count;) {
    const std::uint64_t packed = pm::load(view_.chunk(chunk).word);
    const ChunkWord word = ChunkWord::unpack(packed);
    const bool fits = ChunkWord::valid(packed) && word.count <= count - chunk;
    if (!fits || (chunk == 0 && word.kind != ChunkKind::spans)) {
      throw Error(
          Errc::corrupt,
          fmt::format(
              "the header of chunk {} (at offset {:#x}) is damaged; restore the pool from a copy",
              chunk, chunk_header_offset(chunk)));
    }
    words_[chunk].store(packed, std::memory_order_relaxed);
    chunk += word.count;
  }
  count_.store(count, std::memory_order_release);
}

void Chunks::collect_free() {
  ChunkWord word;
  for (std::uint64_t chunk = 0; chunk < count(); chunk += word.count) {
    tile(chunk, word);
    if (word.kind == ChunkKind::free) give_back(chunk);
  }
}

bool Chunks::tile(std::uint64_t chunk, ChunkWord& word) const noexcept {
  if (chunk >= count()) return false;
  const std::uint64_t packed = words_[chunk].load(std::memory_order_acquire);
  word = ChunkWord::unpack(packed);
  return packed != 0;
}

std::uint32_t Chunks::tile_size(std::uint64_t chunk) const noexcept {
  ChunkWord word;
  [[maybe_unused]] const bool begins = tile(chunk, word);
  assert(begins);
  return word.count;
}

void Chunks::write(std::uint64_t chunk, ChunkWord word) {
  pm_.store(view_.chunk(chunk).word, word.pack());
  pm_.flush(&view_.chunk(chunk).word, sizeof(std::uint64_t));  // durable at the caller's fence
  words_[chunk].store(word.pack(), std::memory_order_release);
}

void Chunks::wrote(std::uint64_t chunk) {
  words_[chunk].store(pm::load(view_.chunk(chunk).word), std::memory_order_release);
}

std::uint64_t Chunks::take(std::uint64_t count, bool grow_pool) {
  std::uint64_t chunk = take_free(count);
  if (chunk == 0 && grow_pool) {
    if (const std::uint64_t there = free_at_end(); there < count) grow(count - there);
    chunk = take_free(count);
    if (chunk == 0) throw_no_space(count);  // what is free is a hole of the file
  }
  return chunk;
}

std::uint64_t Chunks::take_free(std::uint64_t count) {
  for (auto run = free_.begin(); run != free_.end(); ++run) {
    if (run->second < count) continue;
    const auto [chunk, length] = *run;
    // With the header of what is left of the run, which carve() writes.
    const std::uint64_t rest = length > count ? sizeof(ChunkLayout) : 0;
    if (!space_.provide(chunk * kChunkSize, count * kChunkSize + rest)) continue;
    if (length > count) free_.emplace(chunk + count, length - count);
    free_.erase(run);
    carve(chunk, count);
    return chunk;
  }
  return 0;
}

/// Makes the first `count` chunks of a run of free tiles one tile.
void Chunks::carve(std::uint64_t chunk, std::uint64_t count) {
  const std::uint64_t end = chunk + count;
  std::uint64_t tile = chunk;
  while (tile + tile_size(tile) < end) tile += tile_size(tile);
  if (const std::uint64_t tile_end = tile + tile_size(tile); tile_end > end) {
    // Hidden inside a free tile until the store below; must be durable when that one is.
    write(end, {ChunkKind::free, 0, static_cast<std::uint32_t>(tile_end - end)});
    pm_.fence();
  }
  for (std::uint64_t i = chunk + 1; i < end; ++i) words_[i].store(0, std::memory_order_relaxed);
  if (tile_size(chunk) == count) return;
  write(chunk, {ChunkKind::free, 0, static_cast<std::uint32_t>(count)});
  // Before the part behind is used: its header must be part of the tiling.
  pm_.fence();
}

std::uint64_t Chunks::free_at_end() const noexcept {
  if (free_.empty()) return 0;
  const auto [chunk, length] = *std::prev(free_.end());
  return chunk + length == count() ? length : 0;
}

void Chunks::grow(std::uint64_t added) {
  const std::uint64_t first = count();
  const std::uint64_t needed = (first + added) * kChunkSize;
  if (needed > space_.max_size()) {
    throw Error(Errc::out_of_space, fmt::format("the pool would need {} MiB but may have {} MiB at "
                                                "most; open it with a larger max_size, or "
                                                "erase something",
                                                needed >> 20, space_.max_size() >> 20));
  }
  if (needed > space_.size()) {
    space_.extend(needed);
  } else if (!space_.provide(first * kChunkSize, added * kChunkSize)) {
    throw_no_space(added);
  }
  write(first, {ChunkKind::free, 0, static_cast<std::uint32_t>(added)});
  // The header must be there before alloc_num says so.
  pm_.fence();
  pm_.publish(view_.header().alloc_num, first + added);
  count_.store(first + added, std::memory_order_release);
  give_back(first);
}

void Chunks::give_back(std::uint64_t chunk) {
  std::uint64_t length = tile_size(chunk);
  const auto next = free_.lower_bound(chunk);
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == chunk) {
      chunk = previous->first;
      length += previous->second;
      free_.erase(previous);
    }
  }
  if (next != free_.end() && chunk + length == next->first) {
    length += next->second;
    free_.erase(next);
  }
  free_.emplace(chunk, length);
}

}  // namespace perdix::detail::alloc
