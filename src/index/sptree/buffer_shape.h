// The write buffers of SpTree: their sizes, which its middle nodes and leaves decide.
#pragma once

#include <cstdint>

#include "index/common/buffer_pool.h"
#include "index/common/write_buffer.h"
#include "index/sptree/filter.h"
#include "index/sptree/mnode.h"

namespace perdix::detail::index::sptree {

/// Changes that a buffer holds: pairs and tombstones. The paper's 14 for each 64 slots of the leaf.
inline constexpr unsigned kBufferPairs = 28;

template <class MiddleNode>
struct BufferShape {
  using Node = MiddleNode;
  using Slots = SlotSet;

  static constexpr unsigned kPairs = kBufferPairs;
  static constexpr unsigned kSlots = kLeafPairs;
  static constexpr unsigned kNumberBits = LeafAndBuffer::kBufferBits;

  static std::uint8_t fingerprint(Hash16 hash) { return sptree::fingerprint(hash); }
};

template <class MiddleNode>
using WriteBuffer = index::WriteBuffer<BufferShape<MiddleNode>>;

static_assert(sizeof(WriteBuffer<int>) == 576);

inline constexpr unsigned kChainRecords = WriteBuffer<int>::kChainRecords;

}  // namespace perdix::detail::index::sptree
