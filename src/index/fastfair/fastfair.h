// FAST&FAIR, the engine (Hwang et al., FAST 2018): a B+-tree that lies in PM as a whole. Nothing is
// rebuilt on open, so opening takes the same time however large the tree is.
//
//   fastfair.cc     lookups, put, insert, update, erase; opening; what a tree says of itself
//   recovery.h      where an index begins, and its first leaf
//   owned.h         which blocks a tree owns; a drop frees them
//
// What it consists of, each with its invariants:
//
//   shift.h         FAST: how an entry is added to a node and removed
//   nodes.h         the nodes of layout.h: what one says, and which others it leads to
//   search.h        the way to a node, from the root or by the cached path
//   leaf_store.h    pairs in PM: changes of one leaf
//   smo.h           FAIR, the structure modifications: split, the entry above, the new root
//   node_merge.h    those that FAIR lacks: sparse nodes are merged and freed
//   buffers.h       leaves with write buffers (index/common/buffered.h), and their merge in place
//   anew.h          leaves that are rewritten with what their buffers hold
//   scan.h          ordered reads
//   check.h         verification of the invariants of layout.h (F1-F7)
//
// Concurrency: nodes have latches in DRAM (index/common/latches.h). Writers hold the latch of the
// node that they change; readers take none, but validate its version (search.h).
//
// Durability: an operation's linearization point and its commit are the same 8-byte store,
// persisted before the latch is released, so no thread sees an effect that a crash could undo.
// docs/durability/fastfair.md has the cases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/papers/fastfair.h>

#include "index/common/batch.h"
#include "index/common/resumption.h"
#include "index/common/typed.h"
#include "index/common/word_engine.h"
#include "index/fastfair/buffers.h"
#include "index/fastfair/leaf_store.h"
#include "index/fastfair/node_merge.h"
#include "index/fastfair/recovery.h"
#include "index/fastfair/search.h"
#include "index/fastfair/smo.h"
#include "pool/index_handle.h"

namespace perdix::detail::index {
class Owned;
}

namespace perdix::detail::index::fastfair {

inline constexpr std::string_view kEngineName = "fastfair";

using pool::BlockVisitor;

/// The tree. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordTree : public OrderedWordEngine<WordTree<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle.
  explicit WordTree(pool::IndexHandle handle, const FastFairOptions& options = {});

  /// Opens or creates the tree below any word of the pool, which is 0 if there is none yet and
  /// which only the tree changes. `fanout`: entries with which a node is full, 4 to kCapacity; less
  /// than that is for tests that want high trees of few keys. 2^latch_bits latches, of a line each.
  WordTree(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind, unsigned fanout = kCapacity,
           unsigned latch_bits = Latches::kBits, const FastFairOptions& options = {});

  /// Frees all blocks of a tree that is being dropped and clears its root. Restartable: after a
  /// crash it continues where it was. No other thread uses the tree.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;

  /// Adds a key for callers under a guard or a lock: if the pool is full it throws out_of_space
  /// rather than wait for a grace period.
  bool insert_at_once(Key key, NewValue value);

  // The caller holds a guard as long as it uses the strings that words refer to.
  std::optional<Word> find_word(Key key) const { return find_from({}, key); }
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;
  void find_last(Key key, bool strictly, LastPairs& last) const;

  void scan(Key from, std::size_t limit, const PairSink<K>& show) const final;

  /// Cost: counts the whole tree until one call runs without concurrent writers; later calls cost
  /// nothing.
  std::uint64_t size() const final;

  /// Cost: visits the whole tree.
  IndexStats stats() const override;
  CheckReport check() const override;

  void for_each_block(const BlockVisitor& visit) const override;
  bool reclaim_space() noexcept override;

  /// Tells of all blocks. Under a guard; writers are idle, and the tree is resumed.
  void walk(Owned& owned) const;

  pool::PoolCore& pool() const final { return nodes().pool(); }
  const IndexInfo& info() const final { return handle_->info(); }
  const Codec<K>& keys() const { return nodes().keys(); }
  const ValueCodec& values() const { return store_.values(); }

 private:
  using Keys = Codec<K>;

  /// A write of a pair. `expected`: the value that it may replace, null if it may be any.
  struct Write {
    Key key;
    NewValue value;
    Mode mode;
    const NewValue* expected;
  };

  const Nodes<K>& nodes() const { return descent_.nodes(); }
  const pm::Persister& pm() const { return nodes().pm(); }

  template <bool kBuffered>
  std::optional<Word> find_among(Seen leaf, Key key) const;
  std::optional<Word> find_from(Seen leaf, Key key) const;
  bool look_into_buffer(const Seen& leaf, Key key, std::optional<Word>& value) const;
  void find_by_path(std::span<const Key> keys, std::span<std::optional<Word>> out) const;

  void lock_leaf(Locked& leaf, Key key, Node** stray) const;
  bool try_write(const Write& write);
  std::optional<bool> write_leaf(const Write& write, Node*& stray);
  std::optional<bool> write_buffered(Locked& leaf, const Write& write, Node*& stray);
  std::optional<bool> write_in_place(Node& node, const Write& write, Node*& stray);

  void open_path(const FastFairOptions& options);

  std::optional<pool::IndexHandle> handle_;  // keeps the pool open
  Descent<K> descent_;
  Head* const head_;  // null: the index never had write buffers
  LeafStore<K> store_;
  Splitting<K> splitting_;
  double recovery_seconds_ = 0;
  // Their threads end before what they use goes away.
  Resumption filling_;  // of the cached path
  LeafBuffers<K> buffers_;
  Merging<K> merging_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTree<std::uint64_t>;
extern template class WordTree<std::string>;

/// With types, for engines that keep such a tree, and for tests.
template <class K, class V>
class Tree final : public TypedEngine<WordTree<K>, K, V> {
  using Base = TypedEngine<WordTree<K>, K, V>;

 public:
  explicit Tree(pool::IndexHandle handle, const FastFairOptions& options = {})
      : Base(std::move(handle), options) {}
  Tree(pool::PoolCore& pool, std::uint64_t& root, unsigned fanout = kCapacity,
       unsigned latch_bits = Latches::kBits, const FastFairOptions& options = {})
      : Base(pool, root, kKindOf<V>, fanout, latch_bits, options) {}
};

}  // namespace perdix::detail::index::fastfair

namespace perdix::detail::index {

// SpTree and ElfTable have such trees, too: these calls are those of fastfair.cc, which knows more.
extern template class WordEngine<fastfair::WordTree<std::uint64_t>, std::uint64_t>;
extern template class WordEngine<fastfair::WordTree<std::string>, std::string>;
extern template class OrderedWordEngine<fastfair::WordTree<std::uint64_t>, std::uint64_t>;
extern template class OrderedWordEngine<fastfair::WordTree<std::string>, std::string>;

}  // namespace perdix::detail::index
