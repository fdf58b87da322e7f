// A table that is going to replace the current one. It is built where no reader sees it, block by
// block. The caller then makes it the current table by one store (Root::current).
//
//   Replacement replacement(pool, root, rows);
//   position = replacement.reserve(words);    // for each node, in preorder; then sets its words
//   replacement.set(position, word);          // pointers to nodes that come later
//   replacement.finish_lists(values, refs);
//   replacement.link_dead(bits);
//
// Each block is linked by a separate allocator session. After a crash all blocks made so far are
// reachable from the spare table word, and are freed from there (L1). If an exception ends the
// work, the caller frees the blocks the same way.
//
// Used by one thread, which holds the right to the spare table word.
#pragma once

#include <cstdint>
#include <span>

#include "index/elf/layout.h"
#include "index/elf/node.h"
#include "index/elf/shape.h"
#include "pool/pool_core.h"
#include "util/huge_vector.h"

namespace perdix::detail::index::elf {

class Replacement {
 public:
  /// Makes the table's block, with slots for the nodes of this many rows, and links it to the spare
  /// table word, which must be 0. Throws out_of_space.
  Replacement(pool::PoolCore& pool, Root& root, std::uint64_t rows);

  TableLayout& table() const { return *table_; }
  unsigned spare() const { return spare_; }

  /// Takes words for a node, zeroed, and returns its position. The caller sets them through node()
  /// before the next reserve(); pointers may be set later, by set(). Throws out_of_space,
  /// too_large.
  Position reserve(std::uint64_t words);

  /// The words of the node that was reserved last.
  std::uint32_t* node(Position position) { return words_.data() + (position - begin_); }

  /// Sets a word of any node, also of one in a block that is linked already.
  void set(Position position, std::uint32_t word);

  /// Links the last block, and the list of the first dimension: its values, ascending, and what
  /// each leads to. Throws out_of_space, too_large.
  void finish_lists(std::span<const std::uint32_t> values, std::span<const Ref> refs);

  /// Links the bits of dead rows: set for TIDs that no row has (L5). Throws out_of_space.
  void link_dead(std::span<const std::uint64_t> bits);

  /// Sets the bit of a row that was erased since, if it is not set. After link_dead().
  void set_dead(Tid tid);

 private:
  void close_block();
  void link(std::uint64_t& word, std::uint64_t bytes, const void* contents);
  std::uint64_t* slots() const { return reinterpret_cast<std::uint64_t*>(table_ + 1); }

  pool::PoolCore& pool_;
  Root& root_;
  const unsigned spare_;
  const std::uint32_t shift_;
  TableLayout* table_ = nullptr;
  std::uint64_t slot_count_ = 0;

  Position begin_ = 0;          // of the block that is being filled
  std::uint64_t capacity_ = 0;  // its words; 0: there is none
  util::HugeVector<std::uint32_t> words_;
};

}  // namespace perdix::detail::index::elf
