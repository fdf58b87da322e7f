// NbTree, the engine (nbtree.txt): a B+-tree whose leaves are searched in DRAM and lie in PM, and
// whose operations wait for nobody.
//
//   entry.h      the states of an entry: the heart of the protocol
//   entry_protocol.h  how entries are read and change; which of several inserts wins
//   leaf.h       the DRAM side of a leaf
//   leaf_memory.h  where these lie
//   top.h        the layers above
//   ledger.h     blocks on their way in and out
//   nbtree.cc    point operations: get, put, insert, update, erase
//   smo.cc       structure modifications in three phases; joining sparse leaves
//   reserve.h    blocks that are put aside for them, for a full pool
//   get_many.cc  many lookups at once
//   leaf_scanner.h  ordered iteration: the pairs of a leaf in order; scan.cc
//   recovery.cc  what happens on open: creation, the layers above the leaves; destruction
//   resume.cc    the leaves' DRAM sides come back, one by one, while the index is in use
//   check.cc     verification of the invariants of layout.h and leaf.h; statistics
//
// Concurrency: nobody takes a lock of the tree. A writer that finds its leaf closed by a structure
// modification completes that and goes on at the new leaf; a reader reads a closed leaf as it is.
// Whatever was found in a leaf counts if the leaf was still at its position afterwards. What
// operations need of others and may wait for: a lane of the allocator and a stripe of the ledger,
// of which there are 64 and twice 32, and only for structure modifications and strings.
//
// Durability: a change is durable before another thread can see it, or who sees it makes it
// durable (Leaf::doubts). docs/durability/nbtree.md has the cases.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/groups.h"
#include "index/common/limits.h"
#include "index/common/neighbour.h"
#include "index/common/resumption.h"
#include "index/common/scan_orders.h"
#include "index/common/value_of.h"
#include "index/common/word.h"
#include "index/common/word_codec.h"
#include "index/nbtree/counts.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/layout.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/leaf_scanner.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/reserve.h"
#include "index/nbtree/survey.h"
#include "index/nbtree/top.h"
#include "pm/access.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "util/arena.h"
#include "util/striped_counter.h"

namespace perdix::index::nbtree {

inline constexpr std::string_view kEngineName = "nbtree";

/// Two neighbours with up to so many pairs in all are joined.
inline constexpr unsigned kJoinUpTo = 24;

template <class K, class V>
class TestTree;

/// All of the tree but what depends on the type of values, which are words here.
template <class K>
class WordTree : public pool::OpenIndex {
 public:
  using Key = View<K>;

  WordTree(const WordTree&) = delete;
  WordTree& operator=(const WordTree&) = delete;

  /// Frees all blocks of an index that is being dropped and clears its root. Restartable: after a
  /// crash it goes on where it was.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool erase(Key key) { return erase_word(key, nullptr); }
  bool contains(Key key) const {
    const epoch::Guard guard;
    return find(key).has_value();
  }

  std::uint64_t size() const;
  IndexStats stats() const override;
  CheckReport check() const override;

  /// Frees what was unlinked and waits in the ledger.
  bool reclaim_space() noexcept override;

  /// Whether a scan would find the order of the pairs in the key's leaf, and need not sort. For
  /// tests.
  bool order_kept(Key key) const {
    const epoch::Guard guard;
    return scanner_.has_order(*locate(key).leaf);
  }

  void for_each_block(const BlockVisitor& visit) const override;

  pool::PoolCore& pool() const { return handle_.pool(); }

 protected:
  using Keys = Words<K>;

  enum class Mode { put, insert, update };

  /// Opens or creates the index behind the handle. Its leaves' DRAM sides come back later
  /// (resume.cc).
  WordTree(pool::IndexHandle handle, Kind value_kind, const IndexOptions& options);
  ~WordTree() override;

  /// `expected`: the value that is replaced or removed, null if it may be any.
  bool write(Key key, const NewValue& value, Mode mode, const NewValue* expected);
  bool erase_word(Key key, const NewValue* expected);

  // The caller holds a guard, as long as it uses what words refer to.
  std::optional<Word> find(Key key) const;
  void find_group(std::span<const Key> keys, std::span<std::optional<Word>> out) const;
  std::optional<Entry> find_last(Key key) const;

  /// As scan_by_batches() wants it: what there is in the leaf of a position.
  template <class ScanBatch, class Values>
  bool read_batch(ScanBatch& batch, const Values& values, K& position, std::size_t limit) const;

  const Keys& keys() const { return keys_; }

 private:
  template <class, class>
  friend class TestTree;

  using Code = Codec<K>;
  using Hold = Ledger::Hold;

  bool all_inline() const { return entries_.all_inline(); }

  /// Words of the key and the value that a write brings along, and the blocks that they own.
  struct Cargo {
    std::optional<Hold> hold;
    bool has_key = false;
    bool has_value = false;
    Word key = 0;
    Word value = 0;
  };

  /// Joins of sparse leaves that are still to be done.
  enum class Due : std::uint8_t { none, in_this_round, in_next_round };

  /// One entry of a leaf that is being replaced.
  struct Item {
    Key key;
    Word key_word;
    Word value;
    unsigned order;
  };

  /// What a structure modification makes of one leaf, or of two neighbours.
  struct Draft {
    std::array<Item, 2 * kCapacity> items;
    unsigned size = 0;
    unsigned gathered = 0;  // the size with those that do not count (N4)
    bool split = false;
    Key separator{};
    unsigned left_capacity = 0;
    unsigned right_capacity = 0;
    Position<K>* absorbed = nullptr;
    Leaf<K>* absorbed_leaf = nullptr;
    std::array<pm::Offset, 4> blocks{};  // left, right, its anchor, the blob of its low bound
    Word low = 0;                        // of the right one
    K bound{};                           // owns the separator, if it is a string

    unsigned kept() const;
    bool fits() const;
  };

  // nbtree.cc
  LeafRef<K> locate(Key key) const;
  LeafRef<K> locate_again(Key key) const;
  LeafRef<K> locate_at(typename Top<K>::Spot spot, Key key) const;
  LeafRef<K> locate_from(typename Top<K>::Spot spot, Key key) const;
  Lookup find_settled(LeafRef<K>& place, Key key, Hash16 hash) const;
  bool is(Word value, const NewValue* expected) const {
    return expected == nullptr || codec_.equal(value, *expected);
  }
  bool try_write(Key key, const NewValue& value, Mode mode, const NewValue* expected);
  bool replace(const LeafRef<K>& place, unsigned slot, const Word* only, Cargo& cargo);
  bool try_erase(Key key, const NewValue* expected);
  bool remove(const LeafRef<K>& place, unsigned slot, const Word* only, Cargo& cargo,
              unsigned& pairs);
  bool free_leftovers();
  void name_ahead(Cargo& cargo, Word value);
  void load_cargo(Cargo& cargo, const Key* key, Hash16 hash, const NewValue& value);

  InsertOutcome add(const LeafRef<K>& place, Key key, Hash16 hash, Cargo& cargo);
  void leave_behind(const LeafRef<K>& place, unsigned slot, Cargo& cargo);

  // smo.cc
  void reform(const LeafRef<K>& place, const Key* key) const;
  bool try_reform(const LeafRef<K>& place, const Key* key) const;
  void gather(const Position<K>& at, const Leaf<K>& leaf, Draft& draft) const;
  void collect_items(const LeafRef<K>& place, Draft& draft) const;
  void plan(const LeafRef<K>& place, const Key* key, Draft& draft) const;
  void name_replaced(const LeafRef<K>& place, const Draft& draft, Hold& hold) const;
  void allocate(const LeafRef<K>& place, Draft& draft, Hold& hold) const;
  template <class Change>
  bool with_blocks(const LeafRef<K>& place, const Key* key, Draft& draft,
                   const Change& change) const;
  bool install(const LeafRef<K>& place, Draft& draft, Hold& hold, Smo<K>& mine) const;
  Smo<K>* prepare(const LeafRef<K>& place, const Draft& draft) const;
  bool copy(const LeafRef<K>& place, Draft& draft, const Smo<K>& smo) const;
  void fill(Leaf<K>& leaf, const Draft& draft, unsigned begin, unsigned end) const;
  void link(const LeafRef<K>& place, const Smo<K>& smo) const;
  void finish(const LeafRef<K>& place, Smo<K>& smo) const;
  void discard(Smo<K>& smo) const;
  void retire(Smo<K>& smo) const;
  void absorb(const LeafRef<K>& place) const;
  std::optional<LeafRef<K>> left_neighbour(const Position<K>& at) const;
  void join_if_due(const LeafRef<K>& place, unsigned pairs) const;
  bool try_join(const LeafRef<K>& place) const;
  bool join(const LeafRef<K>& left, const LeafRef<K>& right) const;
  bool make_up_for_joins() const;
  void erase_makes_up_for_joins() const;
  bool may_join(const Leaf<K>& left, const Leaf<K>& right) const;
  bool begins_region(const Position<K>& at) const;

  // recovery.cc
  void create();
  void recover();

  // resume.cc
  void start_resuming(bool in_background);
  void resume(const std::stop_token& stop) const;
  void require_resumed() const;
  void settle_leftovers() const;
  Leaf<K>* warm(Position<K>& at, Position<K>* next) const;
  Leaf<K>* warm_as(Position<K>& at, Leaf<K>& leaf) const;
  void decide_leftovers(Block& block, std::span<const Word> words, const Survey& found) const;
  void prefetch_cold(const Position<K>* at) const;
  Leaf<K>* leaf_of(Position<K>& at) const {
    Leaf<K>* leaf = at.leaf.load(std::memory_order_seq_cst);
    return is_cold(leaf) ? warm(at, next_of_cold(leaf)) : leaf;
  }

  // check.cc
  void check_leaf(const Position<K>& at, CheckReport& report) const;
  void check_entries(const Position<K>& at, const Leaf<K>& leaf, CheckReport& report) const;

  const pm::Persister& pm() const { return pool().pm(); }
  Root& root() const { return *pool().template at<Root>(pm::load(handle_.root())); }

  pool::IndexHandle handle_;
  EntryProtocol<K> entries_;
  Keys keys_;
  WordCodec codec_;
  mutable LeafMemory<K> memory_;
  mutable LeafScanner<K> scanner_;
  // Before the arena goes away, what was retired must have come back to it.
  epoch::DrainFirst drain_;
  mutable Top<K> top_;
  mutable std::optional<Ledger> ledger_;
  mutable std::optional<Reserve> reserve_;
  mutable std::atomic<Due> joins_due_{Due::none};
  mutable std::atomic<bool> joins_stuck_{false};
  mutable std::atomic<unsigned> erases_since_try_{0};
  mutable util::SpinLock round_lock_;  // only tried
  mutable K round_from_{};             // where the round over all leaves is
  Position<K>* head_ = nullptr;
  mutable std::atomic<unsigned> deciding_{0};  // threads that kill entries of cold leaves
  mutable Counts counts_;
  std::uint64_t leaves_at_opening_ = 0;
  double recovery_seconds_ = 0;
  mutable std::mutex settling_;
  mutable bool settled_ = false;  // the ledger's leftovers
  mutable Resumption resumption_;
};

template <class K, class V>
class Tree final : public WordTree<K> {
 public:
  using Key = View<K>;
  using Value = View<V>;

  /// Opens or creates the index behind the handle. Its leaves' DRAM sides come back later
  /// (resume.cc).
  explicit Tree(pool::IndexHandle handle, const IndexOptions& options = {})
      : Base(std::move(handle), kKindOf<V>, options),
        values_(this->pool()),
        entry_(this->pool().open_indexes(), *this) {}

  static void destroy(pool::PoolCore& pool, std::uint64_t& root) {
    Base::destroy(pool, root, kKindOf<V>);
  }

  void put(Key key, Value value) { change(key, value, Mode::put); }
  bool insert(Key key, Value value) { return change(key, value, Mode::insert); }
  bool update(Key key, Value value) { return change(key, value, Mode::update); }

  /// Replace or remove the value of a key if it is `expected`.
  bool update_if(Key key, Value expected, Value value) {
    const NewValue former(expected);
    return change(key, value, Mode::update, &former);
  }
  bool erase_if(Key key, Value expected) {
    const NewValue former(expected);
    return this->erase_word(key, &former);
  }

  bool get(Key key, V& value) const {
    const epoch::Guard guard;
    const std::optional<Word> word = this->find(key);
    if (word) values_.copy(*word, value);
    return word.has_value();
  }
  std::optional<V> get(Key key) const { return value_of<V>(*this, key); }

  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    in_groups(keys, out, [this](auto some, auto values) { get_group(some, values); });
  }

  /// At most `limit` pairs.
  void scan(Key from, Visitor<K, V> visit, std::size_t limit = kNoLimit) const;
  void for_each(Visitor<K, V> visit) const { scan(Key{}, visit); }

  /// The pair of the greatest key that is not above `key`.
  std::optional<std::pair<K, V>> find_floor(Key key) const {
    const epoch::Guard guard;
    const std::optional<Entry> entry = this->find_last(key);
    if (!entry) return std::nullopt;
    return std::pair<K, V>(this->keys().own(entry->key), values_.own(entry->value));
  }

  /// The pair of the greatest key below `key`.
  std::optional<std::pair<K, V>> find_below(Key key) const {
    const auto before = predecessor(key);
    return before ? find_floor(*before) : std::nullopt;
  }

 private:
  using Base = WordTree<K>;
  using Mode = typename Base::Mode;

  bool change(Key key, Value value, Mode mode, const NewValue* expected = nullptr) {
    check_value(value);
    return this->write(key, NewValue(value), mode, expected);
  }

  void get_group(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    const epoch::Guard guard;
    std::array<std::optional<Word>, kGroup> words;
    this->find_group(keys, std::span(words).first(keys.size()));
    for (std::size_t i = 0; i < keys.size(); ++i)
      out[i] = words[i] ? std::optional<V>(values_.own(*words[i])) : std::nullopt;
  }

  Words<V> values_;
  pool::OpenIndexes::Entry entry_;  // last: made when the index is complete
};

// Inlined, as EntryProtocol::find() is, and what is rare is not: the fewer instructions a lookup
// takes, the more of the next one the processor can begin while this one waits for memory.

/// The leaf whose range has the key. The caller holds a guard.
template <class K>
[[gnu::always_inline]] inline auto WordTree<K>::locate(Key key) const -> LeafRef<K> {
  return locate_at(top_.floor(key), key);
}

/// From there to the leaf whose range has the key.
template <class K>
[[gnu::always_inline]] inline auto WordTree<K>::locate_at(typename Top<K>::Spot spot, Key key) const
    -> LeafRef<K> {
  if (spot.leaf != nullptr) [[likely]] {
    spot.leaf->prefetch();  // its two lines are waited for together
    if (!spot.leaf->closing() && spot.leaf->covers(key)) [[likely]]
      return {spot.at, spot.leaf};
  }
  return locate_from(spot, key);
}

/// The same by the position, where the leaf is not known, is closing, or is not the key's.
template <class K>
[[gnu::noinline]] auto WordTree<K>::locate_from(typename Top<K>::Spot spot, Key key) const
    -> LeafRef<K> {
  Position<K>* at = spot.at;
  for (;;) {
    Leaf<K>* leaf = leaf_of(*at);
    if (leaf == nullptr) {  // joined with its left neighbour
      pm::on_step("nbtree: a search finds a position without a leaf");
      at = top_.linked_floor(key);
      continue;
    }
    leaf->prefetch();
    if (leaf->covers(key)) {
      if (spot.leaf == nullptr) top_.renew(std::array{at});
      return {at, leaf};
    }
    Position<K>* next = leaf->next();
    if (next->leaf.load(std::memory_order_acquire) == nullptr) {
      pm::on_step("nbtree: a search completes a join");
      reform({at, leaf}, nullptr);  // somebody is at it
      continue;
    }
    pm::on_step("nbtree: a search goes right");
    at = next;
  }
}

}  // namespace perdix::index::nbtree
