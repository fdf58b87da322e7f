// FAST&FAIR, the engine (Hwang et al., FAST 2018): a B+-tree that lies in PM as a whole. Nothing is
// rebuilt on open, so opening takes the same time however large the tree is.
//
//   shift.{h,cc}  FAST: how an entry is added to a node and removed
//   search.h      the way to a node; point lookups
//   get_many.h    batches of lookups
//   fastfair.cc   put, insert, update, erase; instantiates all
//   smo.h         FAIR, the structure modifications: split, the entry above, the new root
//   node_merge.h  the structure modifications that FAIR lacks: sparse nodes are merged and freed
//   scan.h        ordered iteration
//   buffers.h     leaves with write buffers (index/common/buffered.h), and their merge in place
//   anew.h        leaves that are rewritten with what their buffers hold
//   shortcut.h    the cached path: ways to leaves that do not go through inner nodes
//   head.cc       the head, which an index with write buffers has in front of its root
//   recovery.h    what happens on open: creation
//   destroy.h     frees all of an index that is dropped
//   check.h       verification of the invariants of layout.h (F1-F7); statistics
//
// Concurrency: nodes have latches in DRAM (index/common/latches.h). Writers hold the latch of the
// node that they change; readers take none, but validate its version. Every step from node to node
// takes the next node's version before it validates the one that led there, so what was reached is
// still part of the tree as long as its version is the same. A node may have split since its parent
// was read: `next` leads on, as in a B-link tree.
//
// Durability: an operation's linearization point and its commit are the same 8-byte store,
// persisted before the latch is released, so no thread sees an effect that a crash could undo.
// docs/durability/fastfair.md has the cases.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <perdix/papers/fastfair.h>
#include <perdix/types.h>

#include "alloc/session.h"
#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/buffered.h"
#include "index/common/codec.h"
#include "index/common/latches.h"
#include "index/common/pair_count.h"
#include "index/common/path_budget.h"
#include "index/common/path_cache.h"
#include "index/common/resumption.h"
#include "index/common/typed.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/fastfair/buffer_shape.h"
#include "index/fastfair/layout.h"
#include "index/fastfair/shift.h"
#include "pool/checked.h"
#include "pool/index_handle.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::fastfair {

inline constexpr std::string_view kEngineName = "fastfair";

using pool::BlockVisitor;

inline constexpr const char* kNode = "a node";

/// The node at an offset that was read from PM. Throws corrupt if none is there.
inline Node& checked_node(const pool::PoolCore& pool, pm::Offset offset) {
  const auto valid = [](const Node& node) { return Meta::valid(pm::load(node.meta)); };
  return pool::checked<Node>(pool, offset, kNode, valid, kNodeAlignment);
}

/// The head of an index whose root word is `word`; null if it leads to a node, or nowhere.
Head* head_at(const pool::PoolCore& pool, std::uint64_t word);

/// The word that leads to the root node of an index. `buffers`: the index is to have a head, which
/// it gets unless the pool is full.
std::uint64_t& root_word(pool::PoolCore& pool, std::uint64_t& word, bool buffers);

/// The node at an offset that another one has for a child, which is one level below. Throws
/// corrupt.
inline Node& checked_child(const pool::PoolCore& pool, const Node& parent, pm::Offset offset) {
  Node& child = checked_node(pool, offset);
  if (meta_of(child).level + 1 != meta_of(parent).level) pool::throw_corrupt(pool, kNode, offset);
  return child;
}

/// The node's right neighbour, or nullptr. It is of the same level and has a greater low bound, so
/// that a damaged list cannot lead round in a circle. Throws corrupt.
template <class K>
Node* right_neighbour(const pool::PoolCore& pool, const Codec<K>& keys, const Node& node);

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

  pool::PoolCore& pool() const final { return pool_; }
  const IndexInfo& info() const final { return handle_->info(); }
  const Codec<K>& keys() const { return keys_; }
  const ValueCodec& values() const { return codec_; }

 private:
  using Keys = Codec<K>;

  /// A write of a pair. `expected`: the value that it may replace, null if it may be any.
  struct Write {
    Key key;
    NewValue value;
    Mode mode;
    const NewValue* expected;
  };

  /// The target of a search: the last key that is at or below `key`, or only below it.
  struct Target {
    Key key;
    bool strictly_below = false;

    bool reaches(Key other) const { return strictly_below ? other < key : !(key < other); }
  };

  /// A node with its latch's version, from before anything was read of it.
  struct Seen {
    Node* node = nullptr;
    Latch* latch = nullptr;
    std::uint64_t version = 0;

    bool valid() const { return latch->read_validate(version); }
  };

  /// A node whose latch is held.
  using Locked = LockedHome<Seen>;

  /// The leaf that holds the key, or would, or one at the left of it.
  Seen leaf_at_or_before(Key key) const { return approach({key}, 0); }
  Key low_of(const Node& node) const { return keys_.view(pm::load(node.low)); }

  // search.h
  void collect_last(const Node& leaf, Target target, LastPairs& last) const;
  Node& node_at(pm::Offset offset) const { return checked_node(pool_, offset); }
  Node& root() const { return node_at(pm::load(root_)); }
  Seen look(Node& node) const;
  unsigned rank(const Node& node, Target target) const;
  unsigned rank_from_right(const Node& node, Target target) const;
  bool holds(const Node& node, unsigned rank, Key key, Hash16 hash) const;
  Node& child(const Node& node, unsigned rank) const;
  Node* after(const Node& node) const { return right_neighbour<K>(pool_, keys_, node); }
  Node* right_of(const Node& node, Target target) const;
  Seen start() const;
  Seen step(const Seen& at, Target target, Node** stray = nullptr) const;
  Seen descend(Target target, unsigned level, Node** stray) const;
  Seen approach(Target target, unsigned level, Node** stray = nullptr) const;
  Seen seek(Target target, unsigned level, Node** stray = nullptr) const;
  bool lock_node(Locked& locked, Key key, unsigned level, Node** stray = nullptr) const;
  template <bool kBuffered>
  std::optional<Word> find_among(Seen leaf, Key key) const;
  std::optional<Word> find_from(Seen leaf, Key key) const;

  // shortcut.h
  /// Gives the cached path the key of a leaf.
  struct LowOf {
    Keys keys;
    Key operator()(const Node* leaf) const { return keys.view(pm::load(leaf->low)); }
  };
  using Path = PathCache<Node, LowOf>;

  void open_path(const FastFairOptions& options);
  Seen shortcut(Target target) const;
  Seen validated(Node* leaf, Target target) const;
  void add_to_path(const Seen& leaf) const;
  Seen approach_by_path(Target target, Node** stray) const;
  bool fill_some(K& position) const;
  void mark_as_gone(Node& leaf) const;
  void find_by_path(std::span<const Key> keys, std::span<std::optional<Word>> out) const;

  // fastfair.cc
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || codec_.equal(value, *expected);
  }
  bool value_is(const Node& leaf, unsigned at, const NewValue* expected) const {
    return value_is(pm::load(leaf.entries[at].value), expected);
  }
  bool try_write(const Write& write);
  std::optional<bool> write_leaf(const Write& write, Node*& stray);
  std::optional<bool> write_in_place(Node& node, const Write& write, Node*& stray);
  bool all_inline() const { return Keys::kInline && codec_.is_inline(); }
  void add(Node& leaf, unsigned at, Key key, NewValue value);
  void replace(Node& leaf, unsigned at, NewValue value);
  void remove(Node& leaf, unsigned at);

  // smo.h
  Node* split(Node& node, Key key) const;
  void commit_next_and_count(alloc::Session session, Node& left, pm::Offset next,
                             unsigned count) const;
  void install(Node& stray) const;
  bool try_install(Node& stray) const;
  bool is_linked(Node& from, const Node& node) const;
  bool grow_root(Node& right) const;

  // node_merge.h
  void merge_around(Key key);
  bool merge_level(Key key, unsigned level);
  bool merge_pair(Node& parent, unsigned at, LatchSet& latches);
  bool mergeable(const Node& left, const Node& right) const;
  bool merge_both_buffers(Node& left, Node& right) const;
  bool merges_due() const {
    return merges_missed_.load(std::memory_order_relaxed) !=
               merges_made_up_.load(std::memory_order_relaxed) &&
           (buffers_ == nullptr || !buffers_->log().resuming());
  }
  void make_up_for_merges();
  void make_up_around_next_leaf();
  bool sparse(unsigned count) const { return count == 0 || count == fanout_ / 4; }
  void collapse();

  // scan.h
  struct ScanBatch;
  template <class Add>
  bool collect(const Seen& leaf, Key from, std::size_t limit, Seen& following, Add add) const;
  bool read_batch(ScanBatch& batch, Seen& leaf, K& position, std::size_t limit) const;
  /// The pairs of one leaf, read under one version, and its right neighbour.
  struct Snapshot {
    std::array<Entry, kMaxPairs> entries;
    unsigned size = 0;
    Seen following;
  };
  bool take_snapshot(const Seen& leaf, Key from, Snapshot& into) const;

  // buffers.h
  /// What leaves are to their write buffers (index/common/buffered.h).
  struct Homes {
    using KeyType = K;
    using Shape = BufferShape;
    using Seen = typename WordTree::Seen;
    using Pair = Entry;
    static constexpr const char* kLogName = "the log of a leaf";
    static constexpr bool kMoves = true;
    static constexpr bool kMergeTakesSpace = false;

    const WordTree& tree;

    unsigned capacity() const { return buffered_pairs(tree.fanout_); }
    pm::Offset place(const Seen& leaf) const { return tree.pool_.offset(leaf.node); }
    std::uint64_t& number_word(const Seen& leaf) const { return number_of(*leaf.node); }
    wal::Owner number(const Seen& leaf) const { return pm::load(number_of(*leaf.node)); }
    std::uint64_t note(const Seen& leaf) const { return pm::load(leaf.node->low); }
    Hash16 tag(Word key) const { return Keys::hash16_of_word(key); }
    Seen at(pm::Offset place, std::uint64_t) const { return tree.held(tree.node_at(place)); }
    Seen route(wal::Owner, std::uint64_t low) const { return tree.seek({tree.keys_.view(low)}, 0); }
    bool owns(const Seen& leaf, wal::Owner owner) const { return number(leaf) == owner; }
    bool has_word(const Seen& leaf, Word key) const;
    template <class End>
    bool merge_in_place(const Seen& leaf, const WriteBuffer<Shape>& buffer, End end) const;
    void rewrite(Locked& leaf, WriteBuffer<Shape>& buffer, bool full) const;
  };
  using Buffers = Buffered<Homes>;
  using Buffer = typename Buffers::Buffer;

  /// Pairs of a leaf and its buffer, in the order of their keys.
  struct Run {
    std::array<Entry, kMaxPairs> entries;
    unsigned size = 0;

    void add(Entry entry) { entries[size++] = entry; }
  };

  Buffer* buffer_of(const Node& leaf) const {
    return buffers_ == nullptr ? nullptr : buffers_->of(pool_.offset(&leaf));
  }
  typename Buffers::Found find_buffered(const Node& leaf, Key key, Hash16 hash) const {
    if (buffers_ == nullptr) return {};
    return buffers_->find(pool_.offset(&leaf), key, hash);
  }
  /// The pairs of a leaf's buffer with key >= from.
  typename Buffers::Run sort_buffered(const Node& leaf, Key from) const {
    if (buffers_ != nullptr) return buffers_->sorted(pool_.offset(&leaf), from);
    typename Buffers::Run none;  // not Run(), which would zero all pairs
    return none;
  }
  /// Pairs of a leaf and of its buffer; of an inner node, entries.
  unsigned pairs_of(const Node& node) const {
    const Buffer* buffer = buffer_of(node);
    return meta_of(node).count + (buffer == nullptr ? 0 : buffer->size());
  }
  bool ready(const Seen& leaf) const {
    if (buffers_ == nullptr) [[likely]]
      return true;
    return buffers_->ready(leaf);
  }
  /// A node whose latch is held already.
  Seen held(Node& node) const { return {&node, &latches_.of(pool_.offset(&node))}; }
  bool look_into_buffer(const Seen& leaf, Key key, std::optional<Word>& value) const;
  template <class Add>
  bool collect_with_buffer(const Seen& leaf, Key from, std::size_t limit, Seen& following,
                           Add add) const;
  std::optional<bool> write_buffered(Locked& leaf, const Write& write, Node*& stray);
  pm::Changes changes_to(Node& leaf, const Run& run) const;
  void require_resumed() const {
    if (buffers_ != nullptr) buffers_->require_resumed();
  }
  void open_buffers(const FastFairOptions& options);

  // anew.h
  /// A leaf that is rewritten, the leaf before it and the node above. The latter two are null if
  /// there is no such node.
  struct Surroundings {
    Seen leaf, left, parent;
    LatchSet latches;
  };
  bool lock_surroundings(Key key, Surroundings& at) const;
  bool write_anew(Key key) const;
  bool replace_leaf(Surroundings& at, Node*& right) const;
  Run all_pairs(const Node& leaf) const;
  unsigned split_point(const Node& leaf, const Run& run) const;
  pm::Offset make_leaf(alloc::Session& session, Word low, std::span<const Entry> entries,
                       pm::Offset next) const;
  std::uint64_t* entry_of(const Surroundings& at) const;
  void add_to_path_again(Node& old, Node& made, Node* right) const;
  bool link_anew(alloc::Session& session, Surroundings& at, pm::Offset made) const;
  void commit_anew(alloc::Session& session, std::uint64_t& word, std::uint64_t* second,
                   pm::Offset made) const;

  // recovery.h
  void create();

  // check.h
  template <class Visit>
  void for_each_node(Visit visit) const;
  template <class Visit>
  void for_each_leaf(Visit visit) const;
  bool check_entry(const Node& node, unsigned i, const Entry& entry, std::optional<Key>& previous,
                   CheckReport& report) const;
  void check_node(const Node& node, bool first, CheckReport& report) const;
  void check_buffer(const Node& leaf, CheckReport& report) const;
  void check_numbers(CheckReport& report) const;
  void check_children(const Node& first, CheckReport& report) const;
  void check_path(CheckReport& report) const;

  const pm::Persister& pm() const { return pool_.pm(); }

  std::optional<pool::IndexHandle> handle_;  // keeps the pool open
  pool::PoolCore& pool_;
  std::uint64_t& root_;
  Head* const head_;  // null: the index never had write buffers
  const unsigned fanout_;
  Keys keys_;
  ValueCodec codec_;
  Latches latches_;
  mutable util::SpinLock root_lock_;  // for changes of the root word; its holder waits for no latch
  double recovery_seconds_ = 0;

  // Merges that were left out for want of memory, or while the log was resumed.
  std::atomic<std::uint64_t> merges_missed_{0};
  std::atomic<std::uint64_t> merges_made_up_{0};  // how many were made up
  std::mutex round_lock_;                         // guards what follows
  K round_from_{};                                // where the round goes on
  std::uint64_t missed_before_round_ = 0;

  PairCount pairs_;

  std::unique_ptr<Path> path_;  // null if the technique has none
  mutable Resumption filling_;  // of the path
  // Null if the index never had any. Behind all that its thread uses.
  std::unique_ptr<Buffers> buffers_;
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

template <class K>
auto WordTree<K>::look(Node& node) const -> Seen {
  Latch& latch = latches_.of(pool_.offset(&node));
  return {&node, &latch, latch.read_begin()};
}

/// How many of the node's entries, from the first one on, the target reaches. Of equal neighbours
/// it reaches both or none, so the last one that it reaches is one that counts (F3).
template <class K>
unsigned WordTree<K>::rank(const Node& node, Target target) const {
  const unsigned count = meta_of(node).count;
  const auto reaches = [&](const Entry& entry) {
    return target.reaches(keys_.view(pm::load(entry.key)));
  };
  const auto begin = node.entries.begin(), end = begin + count;
  if constexpr (Keys::kInline) {
    // From the left, as in the paper: the next line is on its way while one is searched.
    return static_cast<unsigned>(std::find_if_not(begin, end, reaches) - begin);
  } else {
    // Each key that is compared lies in a separate blob.
    return static_cast<unsigned>(std::partition_point(begin, end, reaches) - begin);
  }
}

/// The same for a writer, which will move the entries at the right: so it reads only these.
template <class K>
unsigned WordTree<K>::rank_from_right(const Node& node, Target target) const {
  if constexpr (!Keys::kInline) return rank(node, target);
  unsigned after = meta_of(node).count;
  while (after > 0 && !target.reaches(keys_.view(pm::load(node.entries[after - 1].key)))) --after;
  return after;
}

/// Whether the last entry that is reached has the very key.
template <class K>
bool WordTree<K>::holds(const Node& node, unsigned rank, Key key, Hash16 hash) const {
  return rank > 0 && keys_.equal(pm::load(node.entries[rank - 1].key), key, hash);
}

/// The child to which a target of that rank leads.
template <class K>
Node& WordTree<K>::child(const Node& node, unsigned rank) const {
  return checked_child(pool_, node,
                       pm::load(rank == 0 ? node.leftmost : node.entries[rank - 1].value));
}

/// The node's right neighbour if the target lies at or behind its low bound, else nullptr.
template <class K>
Node* WordTree<K>::right_of(const Node& node, Target target) const {
  const pm::Offset next = pm::load(node.next);
  if (next == pm::kNull || !target.reaches(low_of(node_at(next)))) return nullptr;
  return after(node);
}

}  // namespace perdix::detail::index::fastfair

namespace perdix::detail::index {

// SpTree and ElfTable have such trees, too: these calls are those of fastfair.cc, which knows more.
extern template class WordEngine<fastfair::WordTree<std::uint64_t>, std::uint64_t>;
extern template class WordEngine<fastfair::WordTree<std::string>, std::string>;
extern template class OrderedWordEngine<fastfair::WordTree<std::uint64_t>, std::uint64_t>;
extern template class OrderedWordEngine<fastfair::WordTree<std::string>, std::string>;

}  // namespace perdix::detail::index
