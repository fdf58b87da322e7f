// The skip list, the engine (Pugh, CACM 1990): an ordered list of nodes with towers of links, which
// lies in PM as a whole. Level 0 decides which pairs exist; the other levels only lead to it.
// Nothing is rebuilt on open, so opening takes the same time however large the list is.
//
//   skiplist.cc      the calls of an index, which choose between a list with write buffers and one
//                    without; opening; what an index says of itself
//   recovery.h       what happens on open: creation
//   owned.h          which blocks a list owns; a drop frees them
//
// What it consists of, from below:
//
//   node.h           fields of a node; how high nodes are
//   nodes.h          the nodes, their latches, and the search along them
//   ways.h           where a search begins: the head, or where the cached path leads
//   lookups.h        lookups, one by one and in batches; iteration
//   towers.h         how a node is added to its levels and removed
//   node_writer.h    writes and erases of pairs that have nodes
//   check.h          verification of the invariants of all parts (layout.h has L1-L8)
//
// and with write buffers (index/common/buffered.h):
//
//   ranges.h         what tall nodes divide the list into
//   runs.h           how sorted pairs are added to a range
//   buffers.h        the buffers of ranges, and their merging
//   range_lookups.h  as lookups.h, range by range
//   range_writer.h   as node_writer.h, range by range
//
// There is no smo.h: a list has no node with several pairs that could be split or merged. What
// changes its structure is an insert or an erase (towers.h).
//
// Concurrency: nodes have latches in DRAM (index/common/latches.h), by their key, so that the latch
// of a node is known before there is one. A node's latch guards its value and its links. A thread
// that inserts or erases a node holds its latch and those of the nodes before it on all of its
// levels, from before the commit until all links are durable. Readers take no latch (lookups.h). A
// node that is not marked as erased is in the list.
//
// Durability: an operation's linearization point and its commit are the same 8-byte store,
// persisted before the latches are released; so no other thread sees an effect that a crash could
// undo. docs/durability/skiplist.md has the cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/papers/skiplist.h>
#include <perdix/types.h>

#include "index/common/batch.h"
#include "index/common/codec.h"
#include "index/common/hash_seed.h"
#include "index/common/last_pairs.h"
#include "index/common/pair_count.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/skiplist/buffers.h"
#include "index/skiplist/node_writer.h"
#include "index/skiplist/range_writer.h"
#include "index/skiplist/towers.h"
#include "index/skiplist/ways.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::skiplist {

inline constexpr std::string_view kEngineName = "skiplist";

using pool::BlockVisitor;

/// The list. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordList : public OrderedWordEngine<WordList<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle.
  explicit WordList(pool::IndexHandle handle, const SkipListOptions& options = {})
      : WordList(std::move(handle), options, draw_hash_seed()) {}

  /// With the seed of the hashes that decide on the heights of nodes: tests choose keys by them.
  WordList(pool::IndexHandle handle, const SkipListOptions& options, std::uint64_t seed);

  /// Frees all blocks of a list that is being dropped and clears its root. Restartable: after a
  /// crash it goes on where it was. No other thread uses the list.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;

  // The caller holds a guard as long as it uses the strings that words refer to.
  std::optional<Word> find_word(Key key) const;
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;
  void find_last(Key key, bool strictly, LastPairs& last) const;

  void scan(Key from, std::size_t limit, const PairSink<K>& show) const final;

  /// Cost: the first call that runs without concurrent writers counts the whole list; later calls
  /// cost nothing.
  std::uint64_t size() const final;

  /// Cost: visits the whole list.
  IndexStats stats() const override;
  CheckReport check() const override;

  void for_each_block(const BlockVisitor& visit) const override;
  bool reclaim_space() noexcept override;

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }
  const Codec<K>& keys() const { return ways_.nodes().keys(); }
  const ValueCodec& values() const { return values_; }

 private:
  void open_buffers(const SkipListOptions& options);
  void require_resumed() const {
    if (buffers_ != nullptr) buffers_->buffers().require_resumed();
  }
  bool try_write(const PairWrite<K>& write);
  RangeWriter<K> range_writer() { return {*buffers_, writer_, towers_, pairs_}; }
  template <class Add>
  bool collect(SeenNode& at, K& position, std::size_t limit, Add add) const;
  template <class Visit>
  void for_each_pair(Visit visit) const;

  pool::IndexHandle handle_;  // keeps the pool open
  const ValueCodec values_;
  Ways<K> ways_;
  PairCount pairs_;
  Towers<K> towers_;
  NodeWriter<K> writer_;
  double recovery_seconds_ = 0;
  // Null if the index never had any. Behind all that its thread uses.
  std::unique_ptr<RangeBuffers<K>> buffers_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordList<std::uint64_t>;
extern template class WordList<std::string>;

}  // namespace perdix::detail::index::skiplist
