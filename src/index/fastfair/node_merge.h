// Structure modifications that make the tree shrink, which FAIR lacks: two sparse neighbours below
// one parent become one, and a root with a single child is replaced by the child.
//
// after_erase() merges around an erase that has left a sparse leaf. Merges that were left out, for
// want of memory or while the log was resumed, are made up for by later erases.
//
// Of two neighbours the right one is removed, never the first child of a parent, so low bounds are
// constant. First the parent loses the entry of the right node, which is then found by `next` only,
// as after a split. Then the entries of the right node move to the left one, whose `next` skips it:
// commit_both(). The parent's latch is held throughout, so no thread adds the entry again
// meanwhile. A crash in between leaves a node without an entry, and the next thread that meets it
// adds the entry.
#pragma once

#include <atomic>
#include <mutex>
#include <new>

#include "index/fastfair/buffers.h"
#include "index/fastfair/smo.h"

namespace perdix::detail::index::fastfair {

template <class K>
class Merging {
 public:
  using Key = View<K>;

  /// All outlive this.
  Merging(Descent<K>& descent, Splitting<K>& splitting, LeafBuffers<K>& buffers)
      : descent_(descent),
        nodes_(descent.nodes()),
        splitting_(splitting),
        buffers_(buffers),
        fanout_(nodes_.fanout()) {}

  /// Merges after the erase of a key that leaves its leaf, with its buffer, `left` pairs. The
  /// caller holds a guard and no latch.
  void after_erase(Key key, unsigned left) {
    if (sparse(left)) merge_around(key);
    if (due()) [[unlikely]]
      make_up();
  }

 private:
  bool sparse(unsigned count) const { return count == 0 || count == fanout_ / 4; }
  bool due() const {
    return missed_.load(std::memory_order_relaxed) != made_up_.load(std::memory_order_relaxed) &&
           !buffers_.resuming();
  }

  /// Merges the leaf of a key with its neighbours, if they are sparse, and then the nodes above.
  /// The erase that calls this is done, so no error is reported. A merge that lacks memory is
  /// counted, and made up for later.
  void merge_around(Key key) {
    try {
      for (unsigned level = 0; merge_level(key, level); ++level) {
      }
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {
      missed_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  /// Does the merges that were left out, in rounds over all leaves until a round leaves none out. A
  /// call reads a few leaves only: each erase calls this while merges are due. One thread at a time
  /// does so; for others the call does nothing. The caller holds a Guard.
  void make_up() {
    constexpr unsigned kLeavesAtOnce = 4;
    const std::unique_lock lock(round_lock_, std::try_to_lock);
    if (!lock) return;
    try {
      for (unsigned i = 0; i < kLeavesAtOnce && due(); ++i) make_up_around_next_leaf();
    } catch (const Error&) {  // a call that needs the leaf reports it
    } catch (const std::bad_alloc&) {
    }
  }

  void make_up_around_next_leaf() {
    if (round_from_ == K{}) missed_before_round_ = missed_.load(std::memory_order_relaxed);
    const Seen leaf = descent_.seek({round_from_}, 0);
    const unsigned count = buffers_.pairs_of(*leaf.node);
    const Node* next = nodes_.after(*leaf.node);
    const K following = next == nullptr ? K{} : K(nodes_.low_of(*next));
    if (!leaf.valid()) return;
    if (count <= fanout_ / 4) merge_around(round_from_);
    round_from_ = following;
    if (next == nullptr) made_up_.store(missed_before_round_, std::memory_order_relaxed);
  }

  /// Merges the node of a level that holds the key with its neighbours. Returns true if that has
  /// made the parent sparse.
  bool merge_level(Key key, unsigned level) {
    if (level == 0 && buffers_.resuming()) {  // buffers.h, B4
      missed_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    Locked parent;
    if (!descent_.lock(parent, key, level + 1)) {
      splitting_.collapse();
      return false;
    }
    Node& node = *parent.node;
    remove_copies(pm(), node);
    unsigned at = nodes_.rank(node, {key});
    bool merged = false;
    if (at > 0 && merge_pair(node, at - 1, parent.latches)) {
      merged = true;
      --at;
    }
    if (at < meta_of(node).count && merge_pair(node, at, parent.latches)) merged = true;
    return merged && sparse(meta_of(node).count);
  }

  /// Merges the children on both sides of entry `at` of a locked parent. Returns false, and has
  /// merged nothing, if they are not sparse or another thread holds a latch of theirs. In the
  /// latter case the next operation that leaves one of them sparse tries again.
  bool merge_pair(Node& parent, unsigned at, LatchSet& latches) {
    Node& left = nodes_.child(parent, at);
    Node& right = nodes_.child(parent, at + 1);
    if (!mergeable(left, right)) return false;
    for (const Node* node : {&left, &right}) {
      if (!latches.try_add(nodes_.latch_of(*node))) return false;
    }
    remove_copies(pm(), left);
    remove_copies(pm(), right);
    if (!mergeable(left, right) || !merge_both_buffers(left, right)) return false;
    alloc::Session session = nodes_.pool().allocator().session();
    session.free(nodes_.offset(right));
    if (meta_of(left).level == 0) Codec<K>::free(session, pm::load(right.low));
    const bool in_path = descent_.path() != nullptr && meta_of(left).level == 0;
    if (in_path) descent_.path()->remove(right);
    // From here on nothing fails.
    remove_entry(pm(), parent,
                 at);  // durable before the right node, to which it leads, can be freed

    const unsigned count = meta_of(left).count;
    unsigned filled = count;
    if (meta_of(left).level > 0) {
      store_entry(pm(), left, filled++, {pm::load(right.low), pm::load(right.leftmost)});
    }
    for (unsigned i = 0; i < meta_of(right).count; ++i) {
      store_entry(pm(), left, filled++, load_entry(right, i));
    }
    // Behind the last entry, and flushed only: log() fences before `count` can include them.
    pm().flush(left.entries.data() + count, (filled - count) * sizeof(Entry));
    commit_both(pm(), session, pm::set_word(left.next, pm::load(right.next)),
                pm::set_word(left.meta, meta_with(left, filled)));
    if (in_path) mark_as_gone(pm(), right);
    return true;
  }

  /// Whether one of two neighbours is empty, or both are sparse, and one node can hold them.
  bool mergeable(const Node& left, const Node& right) const {
    if (pm::load(left.next) != nodes_.offset(right)) return false;  // one without an entry between
    const unsigned level = meta_of(left).level;
    const unsigned count = buffers_.pairs_of(left), right_count = buffers_.pairs_of(right);
    const unsigned joined = count + right_count + (level > 0 ? 1 : 0);
    return joined <= fanout_ / 2 || (joined <= fanout_ && (count == 0 || right_count == 0));
  }

  /// Prepares two locked nodes for a merge. If they are leaves, merges their buffers into them, and
  /// takes that of the right one. Returns false if a buffer that an earlier opening has filled
  /// holds more than its leaf has room for.
  bool merge_both_buffers(Node& left, Node& right) {
    if (buffers_.get() == nullptr || meta_of(left).level > 0) return true;
    for (Node* node : {&left, &right}) {
      auto* const buffer = buffers_.of(*node);
      if (buffer != nullptr && !buffers_->merge_in_place(nodes_.held(*node), *buffer)) return false;
    }
    buffers_->take_from(nodes_.offset(right));
    return true;
  }

  const pm::Persister& pm() const { return nodes_.pm(); }

  Descent<K>& descent_;
  const Nodes<K>& nodes_;
  Splitting<K>& splitting_;
  LeafBuffers<K>& buffers_;
  const unsigned fanout_;

  std::atomic<std::uint64_t> missed_{0};   // merges that were left out
  std::atomic<std::uint64_t> made_up_{0};  // how many were made up
  std::mutex round_lock_;                  // guards what follows
  K round_from_{};                         // where the round goes on
  std::uint64_t missed_before_round_ = 0;
};

}  // namespace perdix::detail::index::fastfair
