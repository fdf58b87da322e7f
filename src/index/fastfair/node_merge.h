// Structure modifications that make the tree shrink: two sparse neighbours below one parent become
// one, and a root with a single child gives way to it.
//
// The right one of two neighbours goes, never the first child of a parent, so low bounds are
// constant. First the parent loses the entry of the right node, which is then found by `next` only,
// as after a split. Then its entries move, and the left node's `next` skips it: see relink(). The
// parent's latch is held all the time, so no thread puts the entry back in between. A crash in
// between leaves a node without an entry, and the next thread that meets it adds the entry.
#pragma once

#include <mutex>
#include <new>

#include "alloc/session.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

/// Merges the leaf of a key with its neighbours, if it pays, then the nodes above. The erase that
/// calls this is done: what goes wrong is for others. What needs memory that there is not is made
/// up for later.
template <class K>
void WordTree<K>::merge_around(Key key) {
  try {
    for (unsigned level = 0; merge_level(key, level); ++level) {
    }
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
    merges_missed_.fetch_add(1, std::memory_order_relaxed);
  }
}

/// Does the merges that were missed, in rounds over all leaves until a round misses none. Reads
/// only a few leaves: each erase calls this as long as merges are due. One thread at a time does
/// so; others go on. In a Guard.
template <class K>
void WordTree<K>::make_up_for_merges() {
  constexpr unsigned kLeavesAtOnce = 4;
  const std::unique_lock lock(round_lock_, std::try_to_lock);
  if (!lock) return;
  try {
    for (unsigned i = 0; i < kLeavesAtOnce && merges_due(); ++i) make_up_around_next_leaf();
  } catch (const Error&) {  // left to the caller that needs the leaf
  } catch (const std::bad_alloc&) {
  }
}

template <class K>
void WordTree<K>::make_up_around_next_leaf() {
  if (round_from_ == K{}) missed_before_round_ = merges_missed_.load(std::memory_order_relaxed);
  const Seen leaf = seek({round_from_}, 0);
  const unsigned count = pairs_of(*leaf.node);
  const Node* next = after(*leaf.node);
  const K following = next == nullptr ? K{} : K(low_of(*next));
  if (!leaf.valid()) return;
  if (count <= fanout_ / 4) merge_around(round_from_);
  round_from_ = following;
  if (next == nullptr) merges_made_up_.store(missed_before_round_, std::memory_order_relaxed);
}

/// Merges the node of a level that holds the key with its neighbours. True if the parent has become
/// sparse by that.
template <class K>
bool WordTree<K>::merge_level(Key key, unsigned level) {
  if (buffers_ != nullptr && level == 0 && log().resuming()) {  // buffers.h, B4
    merges_missed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  Locked parent;
  if (!lock_node(parent, key, level + 1)) {
    collapse();
    return false;
  }
  Node& node = *parent.node;
  mend(pm(), node);
  unsigned at = rank(node, {key});
  bool merged = false;
  if (at > 0 && merge_pair(node, at - 1, parent.latches)) {
    merged = true;
    --at;
  }
  if (at < meta_of(node).count && merge_pair(node, at, parent.latches)) merged = true;
  return merged && sparse(meta_of(node).count);
}

/// Whether one of two neighbours is empty, or both are sparse, and one node can hold them.
template <class K>
bool WordTree<K>::mergeable(const Node& left, const Node& right) const {
  if (pm::load(left.next) != pool_.offset(&right)) return false;  // one without an entry between
  const unsigned level = meta_of(left).level;
  const unsigned count = pairs_of(left), right_count = pairs_of(right);
  const unsigned joined = count + right_count + (level > 0 ? 1 : 0);
  return joined <= fanout_ / 2 || (joined <= fanout_ && (count == 0 || right_count == 0));
}

/// Two locked leaves are to become one: merges their buffers into them, and the right one loses its
/// buffer. False if another opening has left more than there is room for.
template <class K>
bool WordTree<K>::take_buffers(Node& left, Node& right) const {
  if (buffers_ == nullptr || meta_of(left).level > 0) return true;
  for (Node* node : {&left, &right}) {
    Buffer* const buffer = buffer_of(*node);
    if (buffer != nullptr && !merge_in_place(*node, *buffer)) return false;
  }
  if (Buffer* const buffer = buffer_of(right)) buffers_->take_from_leaf(*buffer);
  return true;
}

/// Merges the children on both sides of a locked parent's entry, if it pays and no other thread has
/// their latches. Otherwise the merge waits for the next operation that leaves one of them sparse.
template <class K>
bool WordTree<K>::merge_pair(Node& parent, unsigned at, LatchSet& latches) {
  Node& left = child(parent, at);
  Node& right = child(parent, at + 1);
  if (!mergeable(left, right)) return false;
  for (const Node* node : {&left, &right}) {
    if (!latches.try_add(latches_.of(pool_.offset(node)))) return false;
  }
  mend(pm(), left);
  mend(pm(), right);
  if (!mergeable(left, right) || !take_buffers(left, right)) return false;
  alloc::Session session = pool_.allocator().session();
  session.free(pool_.offset(&right));
  if (meta_of(left).level == 0) Keys::free(session, pm::load(right.low));
  const bool in_path = path_ != nullptr && meta_of(left).level == 0;
  if (in_path) path_->remove(right);
  // From here on nothing fails.
  remove_entry(pm(), parent, at);  // durable before the node can be freed that it leads to

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
  relink(std::move(session), left, pm::load(right.next), filled);
  if (in_path) mark_as_gone(right);
  return true;
}

/// Takes roots away that have one child only.
template <class K>
void WordTree<K>::collapse() {
  const std::lock_guard lock(root_lock_);
  for (;;) {
    Node& top = root();
    if (meta_of(top).level == 0) return;
    LatchSet latches;
    if (!latches.try_add(latches_.of(pool_.offset(&top)))) return;  // the next one can do it
    if (meta_of(top).count > 0 || pm::load(top.next) != pm::kNull) return;
    const pm::Offset below = pool_.offset(&child(top, 0));
    alloc::Session session = pool_.allocator().session();
    session.free(pool_.offset(&top));
    session.commit_when(root_, ~std::uint64_t{0}, below);
    session.log();
    pm().publish(root_, below);  // the commit
    session.finish();
  }
}

}  // namespace perdix::detail::index::fastfair
