// Structure modifications that make the tree shrink, which FAIR lacks: two sparse neighbours below
// one parent become one, and a root with a single child is replaced by the child.
//
//   merge_around(key)     after an erase that leaves a sparse leaf
//   make_up_for_merges()  after an erase, while merges are due that were left out
//
// Of two neighbours the right one is removed, never the first child of a parent, so low bounds are
// constant. First the parent loses the entry of the right node, which is then found by `next` only,
// as after a split. Then the entries of the right node move to the left one, whose `next` skips it:
// commit_next_and_count(). The parent's latch is held throughout, so no thread adds the entry again
// meanwhile. A crash in between leaves a node without an entry, and the next thread that meets it
// adds the entry.
#pragma once

#include <mutex>
#include <new>

#include "alloc/session.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

/// Merges the leaf of a key with its neighbours, if they are sparse, and then the nodes above. The
/// erase that calls this is done, so no error is reported. A merge that lacks memory is counted,
/// and made up for later.
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

/// Does the merges that were left out, in rounds over all leaves until a round leaves none out. A
/// call reads a few leaves only: each erase calls this while merges are due. One thread at a time
/// does so; for others the call does nothing. The caller holds a Guard.
template <class K>
void WordTree<K>::make_up_for_merges() {
  constexpr unsigned kLeavesAtOnce = 4;
  const std::unique_lock lock(round_lock_, std::try_to_lock);
  if (!lock) return;
  try {
    for (unsigned i = 0; i < kLeavesAtOnce && merges_due(); ++i) make_up_around_next_leaf();
  } catch (const Error&) {  // a call that needs the leaf reports it
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

/// Merges the node of a level that holds the key with its neighbours. Returns true if that has made
/// the parent sparse.
template <class K>
bool WordTree<K>::merge_level(Key key, unsigned level) {
  if (buffers_ != nullptr && level == 0 && buffers_->log().resuming()) {  // buffers.h, B4
    merges_missed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  Locked parent;
  if (!lock_node(parent, key, level + 1)) {
    collapse();
    return false;
  }
  Node& node = *parent.node;
  remove_copies(pm(), node);
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

/// Prepares two locked nodes for a merge. If they are leaves, merges their buffers into them, and
/// takes that of the right one. Returns false if a buffer that an earlier opening has filled holds
/// more than its leaf has room for.
template <class K>
bool WordTree<K>::merge_both_buffers(Node& left, Node& right) const {
  if (buffers_ == nullptr || meta_of(left).level > 0) return true;
  for (Node* node : {&left, &right}) {
    Buffer* const buffer = buffer_of(*node);
    if (buffer != nullptr && !buffers_->merge_in_place(held(*node), *buffer)) return false;
  }
  buffers_->take_from(pool_.offset(&right));
  return true;
}

/// Merges the children on both sides of entry `at` of a locked parent. Returns false, and has
/// merged nothing, if they are not sparse or another thread holds a latch of theirs. In the latter
/// case the next operation that leaves one of them sparse tries again.
template <class K>
bool WordTree<K>::merge_pair(Node& parent, unsigned at, LatchSet& latches) {
  Node& left = child(parent, at);
  Node& right = child(parent, at + 1);
  if (!mergeable(left, right)) return false;
  for (const Node* node : {&left, &right}) {
    if (!latches.try_add(latches_.of(pool_.offset(node)))) return false;
  }
  remove_copies(pm(), left);
  remove_copies(pm(), right);
  if (!mergeable(left, right) || !merge_both_buffers(left, right)) return false;
  alloc::Session session = pool_.allocator().session();
  session.free(pool_.offset(&right));
  if (meta_of(left).level == 0) Keys::free(session, pm::load(right.low));
  const bool in_path = path_ != nullptr && meta_of(left).level == 0;
  if (in_path) path_->remove(right);
  // From here on nothing fails.
  remove_entry(pm(), parent, at);  // durable before the right node, to which it leads, can be freed

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
  commit_next_and_count(std::move(session), left, pm::load(right.next), filled);
  if (in_path) mark_as_gone(right);
  return true;
}

/// Removes roots that have one child only.
template <class K>
void WordTree<K>::collapse() {
  const std::lock_guard lock(root_lock_);
  for (;;) {
    Node& top = root();
    if (meta_of(top).level == 0) return;
    LatchSet latches;
    if (!latches.try_add(latches_.of(pool_.offset(&top)))) return;  // a later erase tries again
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
