// The chunks of a pool: which are free, which hold spans, which are part of a large object; and
// growth.
//
// Chunks [0, alloc_num) are tiled: a tile begins with a ChunkWord that says what it is and how many
// chunks it has. The tiles are known in DRAM since open(), so nothing here reads PM later.
//
// Invariants:
//   1. Each change of the tiling is one durable store of a ChunkWord. Words that this store exposes
//      are durable before it.
//   2. Tiles that are free in PM and in DRAM are in free_. Reserved tiles, and tiles that wait for
//      their readers, are free in PM and not in free_.
//
// Thread-safety: word() and write() from any thread, write() by the owner of the tile. The rest
// under the heap's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "alloc/space.h"
#include "alloc/view.h"
#include "alloc/zeroed_array.h"

namespace perdix::detail::alloc {

class Chunks {
 public:
  explicit Chunks(Space& space);

  /// Reads and validates the tiling. Throws Errc::corrupt or truncated. Cost: one line per tile.
  void open();

  /// Called once recovery has decided which chunks are free.
  void collect_free();

  /// Chunks that have a tile.
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }

  /// The tile that begins at a chunk; false if none does.
  bool tile(std::uint64_t chunk, ChunkWord& word) const noexcept;

  /// Changes what a tile is; flushed, not fenced.
  void write(std::uint64_t chunk, ChunkWord word);

  /// The chunk's word has changed in PM.
  void wrote(std::uint64_t chunk);

  /// Takes `count` neighbouring chunks, in PM one free tile. With `grow` the pool grows if need be,
  /// and out_of_space is thrown when it can't; without, 0 (no chunk that can be taken) is returned
  /// when there are none.
  std::uint64_t take(std::uint64_t count, bool grow);

  /// A tile that is free in PM may be taken again.
  void give_back(std::uint64_t chunk);

 private:
  std::uint64_t take_free(std::uint64_t count);
  void carve(std::uint64_t chunk, std::uint64_t count);
  void grow(std::uint64_t count);
  std::uint64_t free_at_end() const noexcept;
  std::uint32_t tile_size(std::uint64_t chunk) const noexcept;

  Space& space_;
  const pm::Persister& pm_;
  View view_;
  std::uint64_t capacity_;  // chunks of the largest possible pool
  ZeroedArray<std::atomic<std::uint64_t>>
      words_;  // packed ChunkWord of the tile that begins there, or 0
  std::atomic<std::uint64_t> count_{0};
  std::map<std::uint64_t, std::uint64_t>
      free_;  // first chunk -> chunks; runs of tiles, never adjacent to each other
};

}  // namespace perdix::detail::alloc
