// Ordered reads: leaf by leaf along `next`, each leaf with its buffer as it was at one moment.
//
// The lines of the next leaf are asked for before those of a leaf are read: to wait for memory
// takes most of the time of a scan.
#pragma once

#include "index/common/batch.h"
#include "index/common/last_pairs.h"
#include "index/common/word_index.h"
#include "index/fastfair/buffers.h"

namespace perdix::detail::index::fastfair {

/// Reads in the order of keys. Small, and made for one call. Thread-safe.
template <class K>
class LeafReader {
 public:
  using Key = View<K>;
  using Target = fastfair::Target<K>;

  /// All outlive this.
  LeafReader(const Descent<K>& descent, const LeafBuffers<K>& buffers, const ValueCodec& values)
      : descent_(descent), nodes_(descent.nodes()), buffers_(buffers), values_(values) {}

  /// The pairs of one leaf, read under one version, and its right neighbour.
  struct Snapshot : Run {
    Seen following;
  };

  void scan(Key from, std::size_t limit, const PairSink<K>& show) const {
    Seen leaf;
    scan_by_batches<ScanBatch, K>(nodes_.pool(), from, limit, show,
                                  [&](ScanBatch& batch, K& position, std::size_t left) {
                                    return read_batch(batch, leaf, position, left);
                                  });
  }

  /// As OrderedWordEngine wants it: leaf by leaf to the left, until one has such a key.
  void find_last(Key key, bool strictly, LastPairs& last) const {
    for (Target target{key, strictly};;) {
      const Seen leaf = descent_.seek(target, 0);
      if (!buffers_.ready(leaf)) continue;
      collect_last(*leaf.node, target, last);
      if (!leaf.valid()) continue;
      if (!last.empty()) return;
      const Word low = pm::load(leaf.node->low);
      if (low == 0) return;  // the first leaf (F1)
      // Nothing in this leaf, so the last key of the one before.
      target = {nodes_.view(low), true};
    }
  }

  /// Calls visit(entry) for the pairs of all leaves, each leaf as it was at one moment. Pairs that
  /// no writer touches during the call are shown once, also if leaves split and merge.
  template <class Visit>
  void for_each_leaf(Visit visit) const {
    const epoch::Guard guard;
    Snapshot snapshot;
    for (Seen leaf = descent_.approach({Key{}}, 0); leaf.node != nullptr;
         leaf = snapshot.following) {
      const Key from = nodes_.low_of(*leaf.node);  // of one that is gone, too: in this guard
      while (!take_snapshot(leaf, from, snapshot)) leaf = descent_.seek({from}, 0);
      visit(*leaf.node, snapshot);
    }
  }

 private:
  /// The pairs of some leaves.
  static constexpr unsigned kBatchPairs = Codec<K>::kInline ? 256 : 128;
  using ScanBatch = Batch<K, kBatchPairs>;
  static_assert(kBatchPairs >= kMaxPairs);

  /// Calls add(entry) for the leaf's pairs with key >= from, until there are more than `limit`. If
  /// there are not, sets `following` to the leaf's right neighbour. False if the leaf changed
  /// during the call.
  template <class Add>
  bool collect(const Seen& leaf, Key from, std::size_t limit, Seen& following, Add add) const {
    if (buffers_.get() != nullptr) [[unlikely]]
      return collect_with_buffer(leaf, from, limit, following, add);
    const Node& node = *leaf.node;
    const pm::Offset next_node = pm::load(node.next);
    const unsigned count = meta_of(node).count;
    unsigned i = nodes_.rank(node, {from, true});
    if (count - i <= limit && next_node != pm::kNull) nodes_.prefetch(next_node);
    std::size_t added = 0;
    for (Entry entry = i < count ? load_entry(node, i) : Entry{}; i < count && added <= limit;) {
      const Entry next = ++i < count ? load_entry(node, i) : Entry{};
      if (i == count || next.key != entry.key) {  // of two equal keys the right one (F3)
        add(entry);
        ++added;
      }
      entry = next;
    }
    if (added > limit) return leaf.valid();
    Node* right = nodes_.after(node);
    following = right == nullptr ? Seen{} : nodes_.look(*right);
    return leaf.valid();
  }

  /// collect() of a tree with buffers: the pairs of leaf and buffer in one order.
  template <class Add>
  [[gnu::noinline]] bool collect_with_buffer(const Seen& leaf, Key from, std::size_t limit,
                                             Seen& following, Add add) const {
    if (!buffers_.ready(leaf)) return false;
    const Node& node = *leaf.node;
    const auto buffered = buffers_.sorted(node, from);
    const unsigned count = meta_of(node).count;
    std::size_t added = 0;
    unsigned next = 0;
    const auto add_below = [&](const Key* bound) {
      for (; next < buffered.size && added <= limit; ++next, ++added) {
        const Entry& entry = buffered.pairs[next];
        if (bound != nullptr && !(nodes_.view(entry.key) < *bound)) return;
        add(entry);
      }
    };
    for (unsigned i = nodes_.rank(node, {from, true}); i < count && added <= limit; ++i) {
      const Entry entry = load_entry(node, i);
      if (i + 1 < count && pm::load(node.entries[i + 1].key) == entry.key) continue;  // F3
      const Key key = nodes_.view(entry.key);
      add_below(&key);
      if (added > limit) break;
      add(entry);
      ++added;
    }
    add_below(nullptr);
    if (added > limit) return leaf.valid();
    Node* right = nodes_.after(node);
    following = right == nullptr ? Seen{} : nodes_.look(*right);
    return leaf.valid();
  }

  /// The pairs of one leaf with key >= from, as they were at one moment.
  bool take_snapshot(const Seen& leaf, Key from, Snapshot& into) const {
    into.size = 0;
    return collect(leaf, from, kNoLimit, into.following,
                   [&](const Entry& entry) { into.add(entry); });
  }

  /// Adds pairs with key >= position, until there are `wanted` or almost, and moves `position` to
  /// where the first leaf begins that was not looked at. False if there is none.
  ///
  /// `leaf` is the leaf of the position, or one before it that has nothing from the position on, if
  /// it is valid, and becomes the next one. So a scan that ends in its first leaf reads no other.
  /// It was found under an earlier guard, so it may be freed by now; but as long as its version is
  /// the same it is part of the tree, and if it is so under this guard, it stays readable until the
  /// guard ends.
  bool read_leaves(ScanBatch& batch, Seen& leaf, K& position, unsigned wanted) const {
    if (leaf.node == nullptr || !leaf.valid()) leaf = descent_.approach({position}, 0);
    nodes_.prefetch(nodes_.offset(*leaf.node));
    const Codec<K> keys = nodes_.keys();
    const auto add = [&](const Entry& entry) { batch.add(keys.view(entry.key), entry.value); };
    for (;;) {
      Seen following;
      const unsigned before = batch.added();
      while (!collect(leaf, position, wanted - 1 - before, following, add)) {
        batch.truncate(before);
        leaf = descent_.approach({position}, 0);
      }
      if (batch.added() == wanted) return true;
      if (following.node == nullptr) return false;
      leaf = following;
      const Key low = nodes_.low_of(*leaf.node);
      // Of a leaf before that of the position, which has nothing, the end may be further left than
      // what the batch has.
      if (batch.added() > before) batch.require_below(nodes_.pool(), low);
      if (position < low) position = low;
      if (batch.added() + 1 == wanted) return true;
    }
  }

  /// As scan_by_batches() wants it.
  bool read_batch(ScanBatch& batch, Seen& leaf, K& position, std::size_t limit) const {
    const epoch::Guard guard;
    const unsigned count = batch.worth_reading(limit);
    batch.clear();
    const bool more = read_leaves(batch, leaf, position, count + 1);
    batch.copy_pairs(nodes_.pool(), values_, count);
    nodes_.pool().require_usable();  // what was read may have been there before a sync failed
    if (batch.complete()) return more;
    if (batch.size() < count) leaf = {};  // strings had no room: the next pair may be further left
    position = batch.next_key();
    return true;
  }

  /// The last pairs of leaf and buffer with keys that the target reaches.
  void collect_last(const Node& leaf, Target target, LastPairs& last) const {
    last.clear();
    auto buffered = buffers_.sorted(leaf, Key{});
    while (buffered.size > 0 && !target.reaches(nodes_.view(buffered.pairs[buffered.size - 1].key)))
      --buffered.size;
    for (unsigned i = nodes_.rank(leaf, target); (i > 0 || buffered.size > 0) && !last.full();) {
      const Entry entry = i > 0 ? load_entry(leaf, i - 1) : Entry{};
      const Entry* other = buffered.size > 0 ? &buffered.pairs[buffered.size - 1] : nullptr;
      if (other != nullptr && (i == 0 || nodes_.view(entry.key) < nodes_.view(other->key))) {
        last.add(other->key, other->value);
        --buffered.size;
        continue;
      }
      --i;
      if (last.empty() || last.farthest().key != entry.key)  // of two equal keys the right one (F3)
        last.add(entry.key, entry.value);
    }
  }

  const Descent<K>& descent_;
  const Nodes<K>& nodes_;
  const LeafBuffers<K>& buffers_;
  const ValueCodec& values_;
};

}  // namespace perdix::detail::index::fastfair
