// Leaves with write buffers: the homes of index/common/buffered.h, whose invariants are B1 to B3
// here, too. An index may have none.
//   B4. A chain begins with a note of the leaf's low bound. While the log may have chains from
//       before the restart, no leaf's low bound is freed, so the note of each chain can be read.
//
// A merge in place inserts pair by pair, each by FAST. One out of place writes a new leaf, or two:
// anew.h.
#pragma once

#include <algorithm>
#include <memory>

#include <perdix/papers/fastfair.h>

#include "index/common/buffered.h"
#include "index/common/path_budget.h"
#include "index/fastfair/anew.h"
#include "index/fastfair/leaf_store.h"

namespace perdix::detail::index::fastfair {

template <class K>
class LeafBuffers {
  /// What leaves are to their write buffers.
  struct Homes {
    using KeyType = K;
    using Shape = BufferShape;
    using Seen = fastfair::Seen;
    using Pair = Entry;
    static constexpr const char* kLogName = "the log of a leaf";
    static constexpr bool kMoves = true;
    static constexpr bool kMergeTakesSpace = false;

    LeafBuffers& all;
    const Nodes<K>& nodes;

    unsigned capacity() const { return buffered_pairs(nodes.fanout()); }
    pm::Offset place(const Seen& leaf) const { return nodes.offset(*leaf.node); }
    std::uint64_t& number_word(const Seen& leaf) const { return number_of(*leaf.node); }
    wal::Owner number(const Seen& leaf) const { return pm::load(number_of(*leaf.node)); }
    std::uint64_t note(const Seen& leaf) const { return pm::load(leaf.node->low); }
    Hash16 tag(Word key) const { return Codec<K>::hash16_of_word(key); }
    Seen at(pm::Offset place, std::uint64_t) const { return nodes.held(nodes.at(place)); }
    Seen route(wal::Owner, std::uint64_t low) const {
      return all.descent_.seek({nodes.view(low)}, 0);
    }
    bool owns(const Seen& leaf, wal::Owner owner) const { return number(leaf) == owner; }
    bool has_word(const Seen& leaf, Word key) const {
      const auto begin = leaf.node->entries.begin();
      return std::any_of(begin, begin + meta_of(*leaf.node).count,
                         [&](const Entry& entry) { return pm::load(entry.key) == key; });
    }
    template <class End>
    bool merge_in_place(const Seen& leaf, const WriteBuffer<Shape>& buffer, End end) const;
    void rewrite(Locked& leaf, WriteBuffer<Shape>& buffer, bool full) const;
  };

 public:
  using Key = View<K>;
  using Buffers = Buffered<Homes>;
  using Buffer = typename Buffers::Buffer;

  /// All outlive this.
  LeafBuffers(Descent<K>& descent, Splitting<K>& splitting, LeafStore<K>& store)
      : descent_(descent), pool_(descent.nodes().pool()), splitting_(splitting), store_(store) {}

  void open(Head* head, const FastFairOptions& options);

  /// Null if the index never had any.
  Buffers* get() { return buffers_.get(); }
  const Buffers* get() const { return buffers_.get(); }
  Buffers* operator->() { return get(); }
  const Buffers* operator->() const { return get(); }

  // --- Lookups: they count under the latch of the leaf, or if its version is validated ---

  Buffer* of(const Node& leaf) {
    return buffers_ == nullptr ? nullptr : buffers_->of(pool_.offset(&leaf));
  }
  const Buffer* of(const Node& leaf) const {
    return buffers_ == nullptr ? nullptr : buffers_->of(pool_.offset(&leaf));
  }
  typename Buffers::Found find(const Node& leaf, Key key, Hash16 hash) const {
    if (buffers_ == nullptr) return {};
    return buffers_->find(pool_.offset(&leaf), key, hash);
  }
  /// The pairs of a leaf's buffer with key >= from.
  typename Buffers::Run sorted(const Node& leaf, Key from) const {
    if (buffers_ != nullptr) return buffers_->sorted(pool_.offset(&leaf), from);
    typename Buffers::Run none;  // not Run(), which would zero all pairs
    return none;
  }
  Run all_pairs(const Node& leaf) const {
    return fastfair::all_pairs(store_.keys(), leaf, sorted(leaf, Key{}));
  }
  /// How many pairs a leaf and its buffer have; of an inner node, entries.
  unsigned pairs_of(const Node& node) const {
    const Buffer* buffer = of(node);
    return meta_of(node).count + (buffer == nullptr ? 0 : buffer->size());
  }

  // --- After a restart ---

  /// Whether a leaf is as it was seen, and needs no chain.
  bool ready(const Seen& leaf) const {
    if (buffers_ == nullptr) [[likely]]
      return true;
    return buffers_->ready(leaf);
  }
  bool resuming() const { return buffers_ != nullptr && buffers_->log().resuming(); }
  void require_resumed() const {
    if (buffers_ != nullptr) buffers_->require_resumed();
  }

 private:
  Descent<K>& descent_;
  pool::PoolCore& pool_;
  Splitting<K>& splitting_;
  LeafStore<K>& store_;
  std::unique_ptr<Buffers> buffers_;
};

/// Opens the write buffers of a tree that has a log, or is to have one. `head`: null if it never
/// had any.
template <class K>
void LeafBuffers<K>::open(Head* head, const FastFairOptions& options) {
  const std::uint64_t budget = buffer_budget(options);
  if (head == nullptr || !has_log(pool_, head->log, budget != 0)) return;
  const Nodes<K>& nodes = descent_.nodes();
  const typename Buffers::Parts parts{pool_, store_.keys(), store_.values(), nodes.latches(),
                                      store_.pairs()};
  auto buffers = std::make_unique<Buffers>(Homes{*this, nodes}, parts, options.technique);
  buffers->open(pm::load(head->log), budget, &head->numbers);
  buffers_ = std::move(buffers);
  buffers_->start_resumption(options.resume_in_background);
}

/// The changes by which a leaf without copies comes to hold just these pairs.
inline pm::Changes changes_to(Node& leaf, const Run& run) {
  pm::Changes changes;
  for (unsigned i = 0; i < run.size; ++i) {
    const Entry& entry = run.entries[i];
    if (pm::load(leaf.entries[i].key) != entry.key) changes.set(leaf.entries[i].key, entry.key);
    if (pm::load(leaf.entries[i].value) != entry.value)
      changes.set(leaf.entries[i].value, entry.value);
  }
  changes.set(leaf.meta, meta_with(leaf, run.size));
  return changes;
}

/// Each pair as its insert would (the paper's in-place update), but with one fence for all where a
/// fence is a sync. Their order does not matter, since the chain has all of them until its END.
template <class K>
template <class End>
bool LeafBuffers<K>::Homes::merge_in_place(const Seen& leaf, const WriteBuffer<Shape>& buffer,
                                           End end) const {
  const pm::Persister& pm = nodes.pm();
  Node& node = *leaf.node;
  remove_copies(pm, node);
  if (meta_of(node).count + buffer.size() > nodes.fanout()) return false;
  if (pm.commits_as_one()) {
    pm.commit(changes_to(node, all.all_pairs(node)).all());
  } else {
    for (unsigned i = 0; i < buffer.size(); ++i) {
      const unsigned at = nodes.rank_from_right(node, {nodes.view(buffer.key(i))});
      insert_entry(pm, node, at, {buffer.key(i), buffer.value(i)});
    }
  }
  end();
  return true;
}

/// The new leaves have another latch, and need those of what leads to them, which a thread without
/// a latch takes.
template <class K>
void LeafBuffers<K>::Homes::rewrite(Locked& leaf, WriteBuffer<Shape>&, bool) const {
  const Key low = nodes.view(note(leaf));
  leaf.latches.release();
  Rewriting<K, Buffers> rewriting(all.descent_, all.splitting_, *all.buffers_);
  while (!rewriting.write_anew(low)) {
  }
}

}  // namespace perdix::detail::index::fastfair
