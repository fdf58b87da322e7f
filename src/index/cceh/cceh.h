// CCEH, the engine: extendible hashing in PM with segments of 16 KiB and buckets of a line (Nam et
// al., FAST 2019). Nothing is rebuilt on open, so opening takes the same time however large the
// table is.
//
//   cceh.cc           put, insert, update, erase; what an index says of itself
//   recovery.{h,cc}   what happens on open: creation
//   owned.h           which blocks a table owns; a drop frees them
//
// What it consists of, each with its invariants:
//
//   segments.h        the slots of segments: which count, and where a pair may lie
//   pair_writer.h     changes of one pair in its slot
//   directory.{h,cc}  which segment is responsible for a hash; directory_copy.h: its copy in DRAM
//   router.h          the way to a segment: the directory, and latches
//   buffers.h         segments with write buffers (index/common/buffered.h), and their merging
//   search.h          the way to a pair: lookups, one by one and in batches
//   builder.h         new segments and overflows, before their commit
//   smo.h             segment split, overflow, joining of empty segments
//   for_each.h        all pairs
//   check.h           verification of the invariants of layout.h (H1-H9); statistics
//
// Concurrency: segments have latches in DRAM (router.h). Writers hold that of the segment that they
// change; readers take none, but validate its version.
//
// Durability: an operation's linearization point and its commit are the same 8-byte store,
// persisted before the latch is released; so no other thread sees an effect that a crash could
// undo. docs/durability/cceh.md has the cases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/cceh.h>
#include <perdix/types.h>

#include "index/cceh/layout.h"
#include "index/cceh/pair_writer.h"
#include "index/cceh/recovery.h"
#include "index/cceh/search.h"
#include "index/cceh/shape.h"
#include "index/cceh/smo.h"
#include "index/common/pair_count.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::cceh {

using pool::BlockVisitor;

/// The table. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordTable : public WordEngine<WordTable<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle.
  explicit WordTable(pool::IndexHandle handle, const CcehOptions& options = {})
      : WordTable(std::move(handle), shape_from(options), options) {}

  /// If it is created, with any shape: tests want many splits of few keys.
  WordTable(pool::IndexHandle handle, const Shape& shape, const CcehOptions& options = {});

  /// Frees all blocks of a table that is being dropped and clears its root. Restartable: after a
  /// crash it goes on where it was. No other thread uses the table.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;

  // The caller holds a guard as long as it uses the strings that words refer to.
  [[gnu::always_inline]] inline std::optional<Word> find_word(Key key) const {
    return search_.find(key);
  }
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
    search_.find(keys, out);
  }

  void for_each(const PairSink<K>& show) const final;

  /// Cost: the first call that runs without concurrent writers counts the whole table; later calls
  /// cost nothing.
  std::uint64_t size() const final;

  /// Cost: visits the whole table.
  IndexStats stats() const override;
  CheckReport check() const override;

  void for_each_block(const BlockVisitor& visit) const override;

  /// Frees what the log no longer needs, and segments without pairs.
  bool reclaim_space() noexcept override;

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }
  const ValueCodec& values() const { return search_.segments().values(); }

 private:
  /// A write of a pair. `expected`: the value that it may replace, null if it may be any.
  struct Write {
    Key key;
    NewValue value;
    Mode mode;
    const NewValue* expected;
  };

  bool try_write(const Write& write);
  std::optional<bool> write_segment(const Write& write, KeyHash hash);
  std::optional<bool> write_new(LockedSegment& locked, const Write& write, KeyHash hash,
                                const FoundSlots& slots);
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || values().equal(value, *expected);
  }

  pool::IndexHandle handle_;  // keeps the pool open
  Root& root_;
  PairCount pairs_;
  SegmentSearch<K> search_;
  PairWriter<K> writer_;
  SegmentStructure<K> structure_;
  double recovery_seconds_ = 0;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTable<std::uint64_t>;
extern template class WordTable<std::string>;

}  // namespace perdix::detail::index::cceh
