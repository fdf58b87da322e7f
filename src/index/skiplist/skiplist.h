// The skip list, the engine (Pugh, CACM 1990): an ordered list of nodes with towers of links, which
// lies in PM as a whole. Level 0 decides which pairs exist; the other levels only lead to it.
// Nothing is rebuilt on open, so opening takes the same time however large the list is.
//
//   node.h          fields of a node; how high nodes are
//   search.h        the way to a node; point lookups
//   shortcut.h      the cached path: ways to nodes that do not go through the upper levels
//   get_many.h      batches of lookups
//   skiplist.cc     put, insert, update, erase; instantiates all
//   tower.h         how a node is added to its levels and removed
//   scan.h          ordered iteration
//   ranges.h        lookups and iteration in a list with write buffers, by ranges of tall nodes
//   buffers.h       tall nodes with write buffers (index/common/buffered.h)
//   buffer_merge.h  how the pairs of a buffer are added to the list
//   recovery.h      what happens on open: creation
//   destroy.h       frees all of an index that is dropped
//   check.h         verification of the invariants of layout.h (L1-L8); statistics
//
// There is no smo.h: a list has no node with several pairs that could be split or merged. What
// changes its structure is an insert or an erase (tower.h).
//
// Concurrency: nodes have latches in DRAM (index/common/latches.h), by their key, so that the latch
// of a node is known before there is one. A node's latch guards its value and its links. A thread
// that inserts or erases a node holds its latch and those of the nodes before it on all of its
// levels, from before the commit until all links are durable. Readers take no latch. They follow
// any links. At the end they wait until the latch of the one node is free on which their answer
// depends: the node of the key, whose version they validate, or, if there is none, the last node
// before it. A node that is not marked as erased is in the list.
//
// Durability: an operation's linearization point and its commit are the same 8-byte store,
// persisted before the latches are released; so no other thread sees an effect that a crash could
// undo. docs/durability/skiplist.md has the cases.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/papers/skiplist.h>
#include <perdix/types.h>

#include "alloc/session.h"
#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/buffered.h"
#include "index/common/codec.h"
#include "index/common/hash_seed.h"
#include "index/common/latches.h"
#include "index/common/pair_count.h"
#include "index/common/path_budget.h"
#include "index/common/path_cache.h"
#include "index/common/resumption.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/skiplist/buffer_shape.h"
#include "index/skiplist/layout.h"
#include "index/skiplist/node.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "util/seeded_hash.h"

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

  pool::PoolCore& pool() const final { return pool_; }
  const IndexInfo& info() const final { return handle_.info(); }
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

  struct Pair {
    Word key;
    Word value;
  };

  /// A node with its latch's version, from before anything was read of it.
  struct Seen {
    Node* node = nullptr;
    Latch* latch = nullptr;
    std::uint64_t version = 0;

    bool valid() const { return latch->read_validate(version); }
  };

  Key key_of(const Node& node) const { return keys_.view(pm::load(node.key)); }

  /// How far to the right a search goes: to the last key that is below `key`, or at it.
  struct Bound {
    Key key;
    bool inclusive = false;

    bool reaches(Key other) const { return inclusive ? !(key < other) : other < key; }
  };

  /// Of a bound on one level: the last node that it reaches, or the head; and the node behind that,
  /// or null.
  struct Neighbours {
    Node* before;
    Node* next;
  };

  /// The neighbours of a bound on the levels from 0 on.
  struct Path {
    unsigned levels = 0;
    std::array<Neighbours, kMaxHeight> at;  // the first `levels`
  };

  /// The node that an operation has last found erased: see is_gone().
  struct Erased {
    const Node* last = nullptr;
  };

  /// Latches of the nodes before a node, and its own.
  using TowerLatches = LatchesHeld<kMaxHeight + 1>;

  // scan.h
  struct ScanBatch;
  Seen first_from(Key from) const;
  template <class Add>
  void collect(Seen& at, std::size_t most, Add add) const;
  bool read_batch(ScanBatch& batch, Seen& at, K& position, std::size_t limit) const;
  bool read_ranges(ScanBatch& batch, Seen& at, K& position, std::size_t limit) const;

  // search.h
  void require_ascending(const Node& node, const Node& next) const {
    if (&node != &head_ && !(key_of(node) < key_of(next))) [[unlikely]]
      pool::throw_corrupt(pool_, "a node", pool_.offset(&next));
  }
  Node* next_of(const Node& node, unsigned level) const;
  pm::Offset offset_of(const Node* node) const {
    return node == nullptr ? pm::kNull : pool_.offset(node);
  }
  Latch& latch_of_key(Key key) const;
  Latch& latch_of(const Node& node) const;
  Seen look(Node& node) const { return look(node, latch_of(node)); }
  static Seen look(Node& node, Latch& latch) { return {&node, &latch, latch.read_begin()}; }
  template <class OnLevel>
  Neighbours descend(Node& from, Bound bound, unsigned levels, OnLevel on_level,
                     unsigned lowest = 0) const;
  Neighbours descend(Bound bound) const;
  Neighbours descend_from_head(Bound bound) const;
  Path trace(Key key, bool tall, unsigned at_least = 0) const;
  unsigned wanted_height(Key key) const { return height_of_hash(hash_(key)); }
  bool has_key(const Node* node, Key key, Hash16 hash) const {
    return node != nullptr && keys_.equal(pm::load(node->key), key, hash);
  }
  bool is_gone(const Node& node, Erased& erased) const;
  bool were_adjacent(const Neighbours& neighbours, Erased& erased) const;
  std::optional<Word> find_at(const Neighbours& neighbours, Key key, Hash16 hash, Erased& erased,
                              bool& valid) const;
  std::optional<Word> find_from(Neighbours neighbours, Key key, Hash16 hash) const;
  std::optional<Pair> find_last_of(Bound bound) const;
  void collect_from_tall(Bound bound, LastPairs& last) const;

  // shortcut.h
  /// Gives the cached path the key of a node.
  struct KeyOf {
    Keys keys;
    Key operator()(const Node* node) const { return keys.view(pm::load(node->key)); }
  };
  using NodePath = PathCache<Node, KeyOf>;

  void open_path(const SkipListOptions& options);
  Node* shortcut(Bound bound) const;
  Node* validated(Node* tall, Bound bound) const;
  bool add_to_path(Node& node) const;
  bool fill_some(K& position) const;

  // get_many.h
  struct Walk;
  void ask_for_next(Walk& walk) const;
  void step(Walk& walk, Key key) const;

  // skiplist.cc
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || codec_.equal(value, *expected);
  }
  bool value_is(const Node& node, const NewValue* expected) const {
    return value_is(pm::load(node.value), expected);
  }
  bool try_write(const Write& write);
  std::optional<bool> write_node(const Write& write, Erased& erased);
  std::optional<bool> replace(Node& node, const Write& write, Erased& erased) const;
  void set_value(Node& node, NewValue value) const;
  std::optional<bool> erase_node(Key key, const NewValue* expected, Erased& erased) const;

  // tower.h
  unsigned levels() const { return levels_.load(std::memory_order_acquire); }
  void lock_tower(TowerLatches& latches, const Path& path, unsigned height, Latch& own) const;
  bool is_unchanged(const Path& path, unsigned height, Erased& erased) const;
  std::uint64_t& link_before(const Path& path, unsigned level) const {
    return link_word(*path.at[level].before, level);
  }
  void insert_node(const Path& path, unsigned height, Key key, NewValue value);
  template <class LinkOf>
  void fill_node(Node& node, unsigned height, Pair pair, LinkOf link_of) const;
  void link_tower(const Path& path, unsigned height, pm::Offset node) const;
  unsigned linked_levels(const Path& path, unsigned height) const;
  void remove_node(const Path& path, unsigned linked) const;
  void unlink_tower(const Path& path, unsigned linked) const;

  // ranges.h
  /// A pair, and its node if it is one of the list.
  struct Placed {
    const Node* node = nullptr;
    Pair pair{};
  };
  static constexpr unsigned kPairsAtOnce = 64;
  /// Pairs in the order of their keys.
  struct Shown {
    std::array<Placed, kPairsAtOnce> pairs;
    unsigned size = 0;

    void add(const Node* node, Pair pair) { pairs[size++] = {node, pair}; }
  };

  Latch& range_latch(const Node& owner) const { return ranges_->of(pool_.offset(&owner)); }
  Neighbours descend_in_range(Node& owner, Bound bound) const;
  Node& last_tall(Bound bound) const;
  Seen owner_at(Node& tall, Bound bound, Erased& erased) const;
  Seen see_owner(Bound bound) const;
  bool is_own(const Node& owner, Key key) const {
    return &owner != &head_ && has_key(&owner, key, Keys::hash16(key));
  }
  Node* node_in_range(Node& owner, Key key) const;
  bool look_into_range(const Seen& owner, Key key, std::optional<Word>& value) const;
  std::optional<Word> find_in_ranges(Key key, Node* near) const;
  std::optional<Pair> last_in_list(Node& owner, Bound bound) const;
  std::optional<Pair> last_of_range(Node& owner, Bound bound) const;
  std::optional<Pair> find_last_in_ranges(Bound bound) const;
  std::optional<Key> show_range(const Seen& owner, Key from, std::size_t most, Shown& shown,
                                Seen& following) const;
  template <class Add>
  bool collect_ranges(Seen& at, K& position, std::size_t most, Add add) const;

  // buffers.h
  /// A range whose latch is held, by its owner.
  using Locked = LockedHome<Seen>;

  /// What the owners of ranges are to their write buffers (index/common/buffered.h).
  struct Homes {
    using KeyType = K;
    using Shape = BufferShape;
    using Seen = typename WordList::Seen;
    using Pair = typename WordList::Pair;
    static constexpr const char* kLogName = "the log of a node";
    static constexpr bool kMoves = false;
    static constexpr bool kMergeTakesSpace = true;

    const WordList& list;

    static constexpr unsigned capacity() { return BufferShape::kPairs; }
    pm::Offset place(const Seen& owner) const { return list.pool_.offset(owner.node); }
    wal::Owner number(const Seen& owner) const { return place(owner) / pm::kLineSize; }
    static std::uint64_t note(const Seen&) { return 0; }
    static Hash16 tag(Word key) { return Keys::hash16_of_word(key); }
    Seen at(pm::Offset place, std::uint64_t) const;
    Seen route(wal::Owner owner, std::uint64_t) const;
    bool owns(const Seen& owner, wal::Owner number) const;
    bool has_word(const Seen& owner, Word key) const;
    template <class End>
    bool merge_in_place(const Seen& owner, WriteBuffer<Shape>& buffer, End end) const;
    void rewrite(Locked& range, WriteBuffer<Shape>& buffer, bool full) const;
  };
  using Buffers = Buffered<Homes>;
  using Buffer = typename Buffers::Buffer;

  Buffer* buffer_of(const Node& owner) const { return buffers_->of(pool_.offset(&owner)); }
  typename Buffers::Found find_buffered(const Node& owner, Key key) const {
    return buffers_->find(pool_.offset(&owner), key, Keys::hash16(key));
  }
  bool lock_range(Locked& range, Key key) const;
  std::optional<Node*> lock_with_before(LatchSet& held, Key key) const;
  std::optional<bool> write_range(const Write& write, Erased& erased);
  std::optional<bool> write_to_list(Locked& range, const Write& write, Erased& erased);
  std::optional<bool> write_new(Locked& range, const Write& write, Erased& erased);
  std::optional<bool> erase_in_range(Key key, const NewValue* expected, Erased& erased) const;
  bool erase_buffered(Locked& range, const typename Buffers::Found& found,
                      const NewValue* expected) const;
  std::optional<bool> erase_owner(Locked& range, const NewValue* expected, Erased& erased) const;
  std::optional<bool> erase_bare_owner(Key key, const NewValue* expected, Erased& erased) const;
  Node& owner_at_place(pm::Offset place) const;
  void require_resumed() const {
    if (buffers_ != nullptr) buffers_->require_resumed();
  }
  void open_buffers(const SkipListOptions& options);

  // buffer_merge.h
  /// Tall nodes that a merge has put into levels 0 and 1, and that raise_all() puts into the
  /// others.
  struct LowNodes {
    std::array<Node*, BufferShape::kPairs> nodes;
    unsigned count = 0;
  };
  /// Nodes of a run, which a merge makes and one commit links.
  struct NewNodes {
    std::array<Node*, alloc::kMaxBlocks> nodes;
    std::array<unsigned, alloc::kMaxBlocks> heights;
    unsigned count = 0;
  };
  void move_to_list(Node& owner, Buffer& buffer, LowNodes& low) const;
  unsigned insert_run(Node& owner, std::span<const Pair> pairs, LowNodes& low) const;
  Node* fill_run(const Path& path, std::span<const Pair> pairs, const NewNodes& made) const;
  void link_run(alloc::Session& session, const Path& path, Node& first, Node* second) const;
  void remove_from_chain(Buffer& buffer, Word key) const;
  void raise(Node& node) const;
  void raise_all(const LowNodes& low) const;
  void link_upper_levels(const Path& path, unsigned height, Node& node) const;
  void remove_hollow(Key key) const;
  void remove_by_key(Key key) const;

  // check.h
  struct Checked;
  void check_buffer(const Node& owner, Checked& checked) const;
  void check_buffers(Checked& checked) const;
  void check_node(const Node& node, Checked& checked) const;
  void check_level(unsigned level, Checked& checked) const;
  void check_path(Checked& checked) const;
  template <class Visit>
  void for_each_node(unsigned level, Visit visit) const;
  template <class Visit>
  void for_each_pair(Visit visit) const;

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::IndexHandle handle_;  // keeps the pool open
  pool::PoolCore& pool_;
  Node& head_;
  Keys keys_;
  ValueCodec codec_;
  Latches latches_;
  const util::SeededHash hash_;  // decides on heights
  // At least as many levels as the head has links to nodes. Links that are being made under the
  // head's latch may be more.
  mutable std::atomic<unsigned> levels_;
  mutable PairCount pairs_;
  double recovery_seconds_ = 0;

  std::unique_ptr<NodePath> path_;   // null if the technique has none
  mutable Resumption filling_;       // of the path
  std::unique_ptr<Latches> ranges_;  // by the place of the owner; null without buffers
  // Null if the index never had any. Behind all that its thread uses.
  std::unique_ptr<Buffers> buffers_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordList<std::uint64_t>;
extern template class WordList<std::string>;

}  // namespace perdix::detail::index::skiplist
