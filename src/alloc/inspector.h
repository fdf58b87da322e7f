// Reads the allocator's structures in PM without trusting them: finds blocks, lists them, and
// checks every invariant.
//
// Thread-safe. While operations run, each word is read as it is at one moment.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <perdix/types.h>

#include "alloc/chunks.h"
#include "alloc/view.h"

namespace perdix::detail::alloc {

struct FoundBlock {
  std::uint64_t size = 0;   ///< of the block, run or large object; 0: none begins there
  bool small = false;       ///< then:
  Offset span = pm::kNull;  ///< the span that it lies in
  std::uint32_t index = 0;  ///< and its number there
};

class Inspector {
 public:
  Inspector(View view, const Chunks& chunks) noexcept : view_(view), chunks_(chunks) {}

  /// The block that begins at an offset, whatever number that is. Small blocks whether or not they
  /// are allocated, runs and large objects only if they are. Cost: one or two lines.
  FoundBlock find(Offset offset) const noexcept;

  /// Where the small block begins that covers an offset, whatever number that is; kNull if there is
  /// none.
  Offset small_block_at(Offset offset) const noexcept;

  /// Whether a found block is allocated, as its mark says: blocks in a ring are taken for
  /// allocated.
  bool marked(const FoundBlock& block) const noexcept;

  void for_each_allocated(const std::function<void(Offset, std::uint64_t)>& fn) const;

  /// Bytes of all allocated blocks. Exact while no operation runs. Cost: reads each bitmap, not
  /// each block.
  std::uint64_t bytes_allocated() const;
  std::uint64_t bytes_in_spans() const;
  void check(CheckReport& report) const;

 private:
  std::vector<Offset> ring_blocks() const;
  void for_each_allocated(const std::vector<Offset>& in_ring,
                          const std::function<void(Offset, std::uint64_t)>& fn) const;
  template <class Whole, class Span>
  void for_each_part(Whole whole, Span span) const;
  std::uint64_t count_marked(Offset span, unsigned size_class) const;
  void for_each_in_span(Offset span, unsigned size_class,
                        const std::function<void(Offset, std::uint64_t)>& fn) const;
  void check_lanes(const std::vector<Offset>& in_ring, CheckReport& report) const;
  void check_chunk(std::uint64_t chunk, CheckReport& report) const;
  void check_span(Offset span, unsigned size_class, CheckReport& report) const;

  View view_;
  const Chunks& chunks_;
};

/// Adds a sentence to a report, up to a hundred of them.
void add_problem(CheckReport& report, std::string sentence);

}  // namespace perdix::detail::alloc
