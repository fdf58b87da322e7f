// Calloc, the crash-safe allocator of a pool (NbTree paper, III-C): one for all indexes.
//
// It never leaks a block and never gives one to two owners, whatever the moment of a crash, in
// every persistence domain; see docs/durability/calloc.md. docs/format/allocator.md describes what
// lies in PM. How it is put together:
//
//   Session   one operation: reserve, free, log, finish           session.h
//   Lane      recyclable log, reclaimed ring, current spans       lane.h, record.h
//   Claim     free space that is kept for one user             claim.h
//   Heap      spans and runs of spans                             heap.h, span.h, span_map.h
//   Chunks    chunks of 16 MiB and growth                         chunks.h
//
// All of it is thread-safe. Nothing belongs to a thread, and there is nothing to register.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <perdix/types.h>

#include "alloc/heap.h"
#include "alloc/inspector.h"
#include "alloc/lane.h"
#include "alloc/marks.h"
#include "alloc/session.h"
#include "alloc/space.h"
#include "alloc/topology.h"

namespace perdix::detail::alloc {

class Calloc {
 public:
  /// Makes the allocator's structures in a new pool of at least one chunk, durably. Writes nothing
  /// below kPoolArea.
  static void format(Space& space);

  /// Opens the allocator of a pool and resolves operations that a crash interrupted. Throws
  /// Errc::corrupt, truncated, and then nothing that matters was changed. Cost: 64 pages of lanes,
  /// and one line per chunk; not more in a larger or fuller pool.
  explicit Calloc(Space& space, const Topology& topology = Topology::system());
  Calloc(const Calloc&) = delete;
  Calloc& operator=(const Calloc&) = delete;

  /// Starts an operation. Waits if as many as there are lanes are running.
  Session session();

  /// Prefetches the memory that Session::free() of a block reads. No more than a hint.
  void prefetch_for_free(Offset block) const noexcept { heap_.prefetch(block); }

  /// The bytes that a block for `bytes` has; 0 if that is above kMaxObject.
  static std::uint64_t size_for(std::uint64_t bytes) noexcept;

  /// Whether a block of at least `bytes` is allocated at `block`: for offsets that come from PM.
  /// Cost: two or three lines.
  bool validate_block(Offset block, std::uint64_t bytes) const noexcept;

  /// Where the block begins that an offset lies in, allocated or not, if it has a size class; kNull
  /// otherwise. For offsets that come from PM. Cost: one or two lines.
  Offset small_block_at(Offset offset) const noexcept { return inspector_.small_block_at(offset); }

  /// Bytes of the block that begins at an offset, allocated or not; 0 if none does.
  std::uint64_t block_size(Offset block) const noexcept;

  /// Calls fn(block, size) for every allocated block, ascending. Exact while no operation runs.
  /// Cost: reads all span tables and bitmaps.
  void for_each_allocated(const std::function<void(Offset, std::uint64_t)>& fn) const;

  /// Sum of the sizes of all allocated blocks. Cost: reads each bitmap of blocks, not each block.
  std::uint64_t bytes_allocated() const;

  /// Bytes of spans and chunks that hold blocks, with what is free within them: the space that the
  /// blocks really cost. Cost: reads all span tables, nine lines per chunk.
  std::uint64_t bytes_in_spans() const;

  /// Verifies every invariant of layout.h, and that DRAM agrees with PM. No operation may run. Adds
  /// to `report`.
  void check(CheckReport& report) const;

  /// Keeps spans free that Claims had when the pool was open last, until new ones take them over.
  /// For the pool, once.
  void restore_claims(std::uint64_t spans) noexcept { heap_.restore_claims(spans); }

  /// Waits for a grace period, so that all that was freed before the call can be allocated after
  /// it. Returns whether anything was waiting for one. In an epoch::Guard it does nothing and
  /// returns false. The caller must hold no Session.
  bool reclaim();

 private:
  friend class Claim;
  friend class Session;

  void refill(Lane& lane, unsigned size_class, Block& block);
  BlockRef take_object(Lane& lane, std::uint64_t bytes);
  void claim(std::uint64_t spans);
  template <class Attempt>
  void with_space(Lane& lane, Attempt attempt);
  std::size_t settle_others(Lane& lane);
  void collect_everything(Lane& lane);
  unsigned first_lane() const noexcept;
  Offset offset_in_pool(const std::uint64_t& word) const;

  Space& space_;
  const pm::Persister& pm_;
  epoch::Reclaimer& reclaimer_;
  View view_;
  Topology topology_;
  Heap heap_;
  Marks marks_;
  Inspector inspector_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace perdix::detail::alloc
