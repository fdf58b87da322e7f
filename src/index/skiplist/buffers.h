// The write buffers of ranges: the homes of index/common/buffered.h, whose invariants are B1 to B3
// here, too. New pairs of a range go into the buffer of its owner. Technique::b and Technique::bo
// do not differ here: in a list no pair has to make room for another one, so each is written out of
// place.
//   B4. The number of a chain's owner is the place of the node, in lines. A node that has a chain
//       is in level kTall - 1, and stays there until the chain has ended. So a chain always belongs
//       to an existing node, though places are used again.
//
// A merge locks one range. It inserts the pairs of the buffer as runs (runs.h), gives the chain its
// END, and raises the tall nodes among them. Each of these divides the range, whose buffer is empty
// by then. A crash before the END leaves pairs in both the list and the chain. They are removed
// from the chain when it is adopted. If there is no space for a run, the pairs of the runs before
// it are removed from the chain, and the others stay in the buffer.
//
// A merge needs space, and an erase may not. So an owner that is erased while its buffer has pairs
// becomes hollow (L7), by one store of its first word, and leaves the list when the buffer has been
// merged.
//
// A thread that changes a range holds its latch from the search on to the end. Latches of ranges
// come before those of nodes. A thread that waits for one has no latch, or locks two together in
// the order of their addresses.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <perdix/types.h>

#include "index/common/buffered.h"
#include "index/common/pair_count.h"
#include "index/skiplist/node_writer.h"
#include "index/skiplist/ranges.h"
#include "index/skiplist/runs.h"

namespace perdix::detail::index::skiplist {

struct BufferShape {
  using Node = Home;
  using Slots = NoSlots;

  static constexpr unsigned kPairs = kMaxPairs;
  static constexpr unsigned kSlots = 0;
  static constexpr unsigned kNumberBits = 22;

  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

/// A range whose latch is held, by its owner.
using LockedRange = LockedHome<SeenNode>;

template <class K>
class RangeBuffers {
  struct Homes;

 public:
  using Key = View<K>;
  using Keys = Codec<K>;
  using Buffers = Buffered<Homes>;
  using Buffer = typename Buffers::Buffer;

  /// Parts of the list, which outlive this.
  struct Parts {
    Ways<K>& ways;
    Towers<K>& towers;
    NodeWriter<K>& writer;
    const ValueCodec& values;
    PairCount& pairs;
  };

  /// Opens the log at an offset.
  RangeBuffers(const Parts& parts, pm::Offset log, std::uint64_t budget)
      : writer_(parts.writer),
        ranges_(parts.ways, budget),
        runs_(parts.ways.nodes(), parts.towers),
        buffers_(Homes{*this},
                 {parts.ways.nodes().pool(), parts.ways.nodes().keys(), parts.values,
                  ranges_.latches(), parts.pairs},
                 Technique::b) {
    buffers_.open(log, budget, nullptr);
  }

  const Ranges<K>& ranges() const { return ranges_; }
  const Nodes<K>& nodes() const { return ranges_.nodes(); }
  Buffers& buffers() { return buffers_; }
  const Buffers& buffers() const { return buffers_; }
  std::uint64_t dram_bytes() const { return ranges_.latches().bytes() + buffers_.dram_bytes(); }

  // --- Ranges with their buffers ---

  Buffer* of(const Node& owner) const { return buffers_.of(nodes().pool().offset(&owner)); }
  typename Buffers::Found find(const Node& owner, const HashedKey<K>& key) const {
    return buffers_.find(nodes().pool().offset(&owner), key.key, key.hash);
  }

  /// The owner of the range with the last key that the bound may reach. Its chain is adopted.
  SeenNode owner_of(Bound<K> bound) {
    Erased erased;
    for (;;) {
      const SeenNode seen = ranges_.owner_of(bound, erased);
      if (seen.node != nullptr && buffers_.ready(seen)) return seen;
      pm::on_step("skiplist: a range has changed");
    }
  }

  /// Locks the range of a key. Returns false if the range has changed since it was found.
  bool lock(LockedRange& range, Key key) { return range.try_lock(owner_of({key, true})); }

  /// Locks the range of a key that itself has a tall node, and the range before, and returns the
  /// node. Returns null if the key has no tall node, and nullopt if a range has changed since the
  /// search.
  std::optional<Node*> lock_with_before(LatchSet& held, const HashedKey<K>& key) {
    const SeenNode owner = owner_of({key.key, true});
    if (!ranges_.is_own(*owner.node, key))
      return owner.valid() ? std::optional<Node*>(nullptr) : std::nullopt;
    const SeenNode before = owner_of({key.key, false});
    std::array latches = {owner.latch, before.latch};
    held.lock_all(latches);
    if (!owner.latch->taken_at(owner.version) || !before.latch->taken_at(before.version))
      return std::nullopt;
    return owner.node;
  }

  // --- Hollow nodes ---

  /// Removes the hollow owner of a key, if it still is one, and merges its buffer first. Throws
  /// out_of_space as a merge does, but not if the buffer is empty. The caller holds no latch.
  void remove_hollow(const HashedKey<K>& key) {
    for (;;) {
      LatchSet held;
      const std::optional<Node*> owner = lock_with_before(held, key);
      if (!owner.has_value()) {
        pm::on_step("skiplist: a hollow node has changed");
        continue;
      }
      if (*owner == nullptr || !is_hollow(**owner)) return;
      LowNodes low;
      if (Buffer* const buffer = of(**owner)) {
        move_to_list(**owner, *buffer, low);
        buffers_.leave(*buffer);  // before the node leaves its levels: B4
      }
      pm::on_step("skiplist: a hollow node goes");
      remove_node(key);
      return runs_.raise_all(low);
    }
  }

  /// Removes the hollow node of a key from the list. The caller holds the latch of its range and,
  /// if it is an owner, of the range before.
  void remove_node(const HashedKey<K>& key) {
    Erased erased;
    while (!writer_.erase(key, nullptr, erased)) pm::on_step("skiplist: an erase begins again");
  }

 private:
  /// What the owners of ranges are to their write buffers (index/common/buffered.h).
  struct Homes {
    using KeyType = K;
    using Shape = BufferShape;
    using Seen = SeenNode;
    using Pair = skiplist::Pair;
    static constexpr const char* kLogName = "the log of a node";
    static constexpr bool kMoves = false;
    static constexpr bool kMergeTakesSpace = true;

    RangeBuffers& all;

    static constexpr unsigned capacity() { return BufferShape::kPairs; }
    pm::Offset place(const Seen& owner) const { return all.nodes().pool().offset(owner.node); }
    wal::Owner number(const Seen& owner) const { return place(owner) / pm::kLineSize; }
    static std::uint64_t note(const Seen&) { return 0; }
    static Hash16 tag(Word key) { return Keys::hash16_of_word(key); }
    bool has_word(const Seen& owner, Word key) const {
      const Node* const node =
          all.ranges_.find(*owner.node, HashedKey<K>(all.nodes().keys().view(key), key));
      return node != nullptr && pm::load(node->key) == key;
    }

    Seen at(pm::Offset place, std::uint64_t) const {
      return {&all.ranges_.at(place), &all.ranges_.latches().of(place)};
    }
    /// Reads nothing of the node, which may have gone when another thread has adopted the chain.
    Seen route(wal::Owner owner, std::uint64_t) const {
      const pool::PoolCore& pool = all.nodes().pool();
      const pm::Offset place = owner * pm::kLineSize;
      if (!pool.contains(place, sizeof(Node))) pool::throw_corrupt(pool, kLogName, place);
      return all.ranges_.look(*pool.template at<Node>(place));
    }
    /// No chain is stale (B4): if the node is not the owner of a range, the pool is damaged.
    bool owns(const Seen& owner, wal::Owner) const {
      if (!all.ranges_.owns(all.ranges_.at(place(owner))))
        pool::throw_corrupt(all.nodes().pool(), kLogName, place(owner));
      return true;
    }

    /// The merge of a hollow owner needs the latch of the range before, too.
    template <class End>
    bool merge_in_place(const Seen& owner, WriteBuffer<Shape>& buffer, End end) const {
      if (is_hollow(*owner.node)) return false;
      LowNodes low;
      all.move_to_list(*owner.node, buffer, low);
      end();
      all.runs_.raise_all(low);
      return true;
    }
    /// Of a hollow owner. Nothing else is written anew: each pair has a node of its own.
    void rewrite(LockedRange& range, WriteBuffer<Shape>&, bool) const {
      const HashedKey<K> key = all.nodes().hashed_key_of(*range.node);
      range.latches.release();
      all.remove_hollow(key);
    }
  };

  /// Inserts the pairs of a buffer. Adds the tall nodes that this makes to `low`.
  void move_to_list(Node& owner, Buffer& buffer, LowNodes& low) {
    const auto run = buffers_.sorted(nodes().pool().offset(&owner), Key{});
    const std::span<const Pair> pairs(run.pairs.data(), run.size);
    unsigned moved = 0;
    try {
      while (moved < run.size) moved += runs_.insert(owner, pairs.subspan(moved), low);
    } catch (...) {
      for (unsigned i = 0; i < moved; ++i) remove_from_chain(buffer, pairs[i].key);
      throw;
    }
  }

  /// Removes a key from a buffer and its chain whose node is in the list, durably.
  void remove_from_chain(Buffer& buffer, Word key) {
    unsigned i = 0;
    while (buffer.key(i) != key) ++i;
    buffers_.forget(buffer, i);
  }

  NodeWriter<K>& writer_;
  const Ranges<K> ranges_;
  Runs<K> runs_;
  Buffers buffers_;  // last: its thread uses the others
};

}  // namespace perdix::detail::index::skiplist
