// Which blocks an index owns, said once for each engine: by a walk, `walk(…, Owned&)` in the
// engine's owned.h. What visits the walk decides what it is for:
//
//   ShownBlocks   calls a function for each block: for_each_block(), counts and sizes
//   AuditedBlocks counts blocks for check(), and finds those that lie in free memory
//   DroppedBlocks frees each block by the store that lets go of it: the index is being dropped
//
// Rules for a walk:
//   O1. It tells of a block when all others that only this block leads to have been told of.
//   O2. After each release() the index can be walked again from its root, and the walk then tells
//       of the blocks that are left: so a drop that a crash interrupts goes on with the next one.
//   O3. It reads what it needs of a block, and of a word, before the release() that names them.
//   O4. It ends and crashes nowhere, also in a damaged pool: it throws corrupt where it cannot go
//       on.
//
// Writers are idle. So stats(), which may be called beside writers, counts in its own ways.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <span>

#include <perdix/types.h>

#include "alloc/calloc.h"
#include "alloc/layout.h"
#include "epoch/guard.h"
#include "index/common/codec.h"
#include "index/common/problems.h"
#include "index/common/value_codec.h"
#include "pm/access.h"
#include "pm/change.h"
#include "pool/checked.h"
#include "pool/open_index.h"

namespace perdix::detail::index {

struct OwnedBlock {
  pm::Offset at;
  std::uint64_t bytes;  ///< that it has room for, at least
  const char* what;     ///< with its article: "a leaf"
};

/// The blocks that one store lets go of, as many as one commit can free.
class OwnedBlocks {
 public:
  OwnedBlocks() = default;
  OwnedBlocks(pm::Offset at, std::uint64_t bytes, const char* what) { add(at, bytes, what); }

  OwnedBlocks& add(pm::Offset at, std::uint64_t bytes, const char* what) {
    assert(size_ < blocks_.size());
    blocks_[size_++] = {at, bytes, what};
    return *this;
  }

  /// Adds the blob of a word, if it has one.
  template <Storable K>
  OwnedBlocks& add_key(Word word) {
    return Codec<K>::blobs(word) == 0 ? *this : add_blob(word);
  }
  OwnedBlocks& add_value(const ValueCodec& values, Word word) {
    return values.blobs(word) == 0 ? *this : add_blob(word);
  }

  operator std::span<const OwnedBlock>() const {  // NOLINT(google-explicit-constructor): a view
    return std::span(blocks_).first(size_);
  }

 private:
  /// Codec::sound() looks at the size of a blob; what needs no more than the word does not read it.
  OwnedBlocks& add_blob(Word word) {
    return add(blob_offset(word), sizeof(std::uint32_t), "a string");
  }

  std::array<OwnedBlock, alloc::kMaxBlocks> blocks_;
  std::size_t size_ = 0;
};

/// Whether words of pairs may have blobs.
template <Storable K>
bool owns_blobs(const ValueCodec& values) {
  return !Codec<K>::kInline || !values.is_inline();
}

/// The blobs of a pair.
template <Storable K>
OwnedBlocks blobs_of(const ValueCodec& values, Word key, Word value) {
  return OwnedBlocks().add_key<K>(key).add_value(values, value);
}

/// A visitor of blocks. One virtual call for each owner, so that a walk is compiled once.
class Owned {
 public:
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  virtual ~Owned() = default;

  /// Tells of blocks that no other word leads to than that of `change`, which lets go of them: at
  /// most alloc::kMaxBlocks. Only a drop makes the change.
  virtual void release(const pm::Change& change, std::span<const OwnedBlock> blocks) = 0;

  /// Whether the index is being dropped: for what a walk changes besides.
  bool drops() const { return drops_; }

 protected:
  explicit Owned(bool drops) : drops_(drops) {}

 private:
  const bool drops_;
};

/// Calls a function for each block.
class ShownBlocks final : public Owned {
 public:
  /// `visit` outlives this.
  explicit ShownBlocks(const pool::BlockVisitor& visit) : Owned(false), visit_(visit) {}

  void release(const pm::Change&, std::span<const OwnedBlock> blocks) override {
    for (const OwnedBlock& block : blocks) visit_(block.at);
  }

 private:
  const pool::BlockVisitor& visit_;
};

/// Counts blocks, and reports each that is not allocated as a problem.
class AuditedBlocks final : public Owned {
 public:
  /// Both outlive this. `invariant`: that the engine's layout.h says it by.
  AuditedBlocks(const alloc::Calloc& allocator, CheckReport& report, const char* invariant)
      : Owned(false), allocator_(allocator), report_(report), invariant_(invariant) {}

  void release(const pm::Change&, std::span<const OwnedBlock> blocks) override {
    report_.blocks += blocks.size();
    for (const auto& [at, bytes, what] : blocks) {
      Problems(report_).expect(allocator_.validate_block(at, bytes),
                               "{} at {:#x} lies in free memory ({})", what, at, invariant_);
    }
  }

 private:
  const alloc::Calloc& allocator_;
  CheckReport& report_;
  const char* const invariant_;
};

/// Frees blocks, with one commit for each release().
class DroppedBlocks final : public Owned {
 public:
  explicit DroppedBlocks(alloc::Calloc& allocator) : Owned(true), allocator_(allocator) {}

  /// Throws corrupt if no block is there.
  void release(const pm::Change& change, std::span<const OwnedBlock> blocks) override {
    alloc::Session session = allocator_.session();
    for (const OwnedBlock& block : blocks) session.free(block.at);
    session.commit(change);
  }

 private:
  alloc::Calloc& allocator_;
};

/// What a walk says of an element of a list.
struct ListStep {
  std::uint64_t next;  ///< what leads to the next element; kNull: none follows
  OwnedBlocks blocks;  ///< of the element, itself included
};

/// Tells of the elements of a list from `at` on, which `word` leads to when the index is being
/// dropped: `tell(at)` tells of what the element owns by other words, and returns the rest. Throws
/// corrupt if the list leads round in a circle, where an element is `what`.
template <class Tell>
void walk_list(const pool::PoolCore& pool, std::uint64_t& word, pm::Offset at, const char* what,
               Owned& owned, Tell tell) {
  pm::Offset met = pm::kNull;  // one of those before: it is met again in a circle (Brent)
  std::uint64_t steps = 0;
  while (at != pm::kNull) {
    if (at == met) pool::throw_corrupt(pool, what, at);
    if ((steps & (steps + 1)) == 0) met = at;
    ++steps;
    const ListStep step = tell(at);
    owned.release(pm::set_word(word, step.next), step.blocks);
    at = step.next;
  }
}

/// Like walk_list() above, of a list that `word` leads to.
template <class Tell>
void walk_list(const pool::PoolCore& pool, std::uint64_t& word, const char* what, Owned& owned,
               Tell tell) {
  walk_list(pool, word, pm::load(word), what, owned, tell);
}

/// Adds to the report what a walk of an index finds, walk(owned), under a guard. `invariant`: as
/// AuditedBlocks has it.
template <class Walk>
void audit(const alloc::Calloc& allocator, CheckReport& report, const char* invariant, Walk walk) {
  const epoch::Guard guard;
  AuditedBlocks audited(allocator, report, invariant);
  as_problem(report, [&] { walk(audited); });
}

}  // namespace perdix::detail::index
