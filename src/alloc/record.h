// The recyclable log: what an operation is about to allocate and free, so that a crash in the
// middle leaks nothing (NbTree paper, III-C). One record per lane, used again by each operation.
//
// A record is valid if its checksum is right. The checksum is written last and zeroed first,
// and that is durable before the lane's next record is begun. So a crash leaves a whole record or
// none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "alloc/layout.h"
#include "pm/persist.h"

namespace perdix::detail::alloc {

/// A block with its size, as far as its offset doesn't tell it.
struct BlockRef {
  Offset offset = pm::kNull;
  std::uint16_t units = 0;  ///< 0: small block; else spans of a run, or chunks of a large object

  constexpr std::uint64_t pack() const noexcept {
    return offset | std::uint64_t{units} << kOffsetBits;
  }
  static constexpr BlockRef unpack(std::uint64_t word) noexcept {
    return {word & kOffsetMask, static_cast<std::uint16_t>(word >> kOffsetBits)};
  }
};

/// Up to kMaxBlocks blocks.
class BlockList {
 public:
  void push(BlockRef block) noexcept { blocks_[size_++] = block; }
  void clear() noexcept { size_ = 0; }
  bool full() const noexcept { return size_ == kMaxBlocks; }
  unsigned size() const noexcept { return size_; }
  BlockRef operator[](unsigned i) const noexcept { return blocks_[i]; }
  const BlockRef* begin() const noexcept { return blocks_.data(); }
  const BlockRef* end() const noexcept { return blocks_.data() + size_; }

 private:
  std::array<BlockRef, kMaxBlocks> blocks_;
  unsigned size_ = 0;
};

/// A store to a word of the pool.
struct WordStore {
  Offset word = pm::kNull;  ///< kNull: none
  std::uint64_t value = 0;
};

struct Record {
  Offset commit_word = pm::kNull;  ///< kNull: the operation is committed by the record itself
  std::uint64_t mask = 0;
  std::uint64_t expected = 0;
  BlockList reserved;
  BlockList freed;
  WordStore redo;
  WordStore undo;

  void clear() noexcept {
    commit_word = pm::kNull;
    reserved.clear();
    freed.clear();
    redo.word = pm::kNull;
    undo.word = pm::kNull;
  }
};

using RecordWords = std::array<std::uint64_t, kRecordWords>;

/// Writes a record and makes it and all that this thread flushed before durable. The words hold no
/// valid record. Cost: one line for up to four blocks without redo and undo, else two; one fence.
void write_record(const pm::Persister& pm, RecordWords& words, const Record& record);

/// Makes the words hold no record, durably. Cost: one line, one fence.
void clear_record(const pm::Persister& pm, RecordWords& words);

/// The record that the words hold, if any. Its blocks and words are not validated.
std::optional<Record> read_record(const RecordWords& words);

}  // namespace perdix::detail::alloc
