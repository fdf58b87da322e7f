// Leaves that are rewritten (Zhao et al. 2024, section 3.2): all pairs of a leaf and of its buffer
// go into a new leaf, or into two if one has no room for them. New leaves are written once and in
// sequence. Then the new leaf, or the left one of the two, takes the place of the old one.
// write_anew() does all of this.
//
// Two words lead to a leaf: `next` of the leaf before it, and the entry above. One is the commit,
// the other is covered by the allocator's record (redo). A leaf has neither if it is the root: then
// the root word is the commit. It has one of them if it is the first leaf, or if it was split off
// and has no entry yet. Of two new leaves the right one gets its entry later, as after any split.
//
// All nodes that lead to the leaf are locked from before the commit until it is durable. So readers
// meet the old leaf or the new one, and a new one only if no crash can take it back. Readers wait
// only for the old leaf's latch, not while the new leaves are filled.
//
// The new leaves have new numbers (F7), so after a crash the chain of the old leaf belongs to no
// leaf.
#pragma once

#include <array>
#include <mutex>

#include "alloc/session.h"
#include "index/common/separator.h"
#include "index/fastfair/fastfair.h"
#include "pool/checked.h"

namespace perdix::detail::index::fastfair {

/// Locks the leaf of a key and the nodes that lead to it. Returns false if another thread changes
/// one of them. Does not wait while it holds a latch.
template <class K>
bool WordTree<K>::lock_surroundings(Key key, Surroundings& at) const {
  at.leaf = seek({key}, 0);
  const Word word = pm::load(at.leaf.node->low);
  const Key low = keys_.view(word);
  if (word != 0) at.left = seek({low, true}, 0);
  at.parent = seek({low}, 1);
  for (const Seen* seen : {&at.parent, &at.leaf, &at.left}) {
    if (seen->node != nullptr && !at.latches.try_upgrade(*seen->latch, seen->version)) return false;
  }
  return true;
}

/// Rewrites the leaf of a key with the pairs of its buffer. If there is no space for new leaves but
/// room in the old one, merges in place. Returns false, and has changed nothing, if the caller must
/// try again. Throws out_of_space and bad_alloc, and has changed nothing.
template <class K>
bool WordTree<K>::write_anew(Key key) const {
  Node* right = nullptr;
  {
    Surroundings at;
    if (!lock_surroundings(key, at)) return false;
    Node& leaf = *at.leaf.node;
    Buffer* const buffer = buffer_of(leaf);
    if (buffer == nullptr || buffer->empty_chain()) return true;  // another thread has merged it
    try {
      if (!replace_leaf(at, right)) return false;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space || !buffers_->merge_in_place(at.leaf, *buffer)) throw;
      return true;
    }
    buffers_->leave(*buffer);
  }
  if (right != nullptr) install(*right);
  return true;
}

/// Puts one or two new leaves in the place of a locked one. `right` becomes the second of two.
/// Returns false, and has changed nothing, if the caller must try again.
template <class K>
bool WordTree<K>::replace_leaf(Surroundings& at, Node*& right) const {
  Node& leaf = *at.leaf.node;
  // If there is no level above, another thread might add one: grow_root().
  std::unique_lock<util::SpinLock> lock;
  if (at.parent.node == nullptr) {
    lock = std::unique_lock(root_lock_);
    if (meta_of(root()).level > 0) return false;
  }
  const Run run = all_pairs(leaf);
  alloc::Session session = pool_.allocator().session();
  pm::Offset made = pm::kNull, next = pm::load(leaf.next);
  const std::span<const Entry> all(run.entries.data(), run.size);
  if (run.size <= fanout_) {
    made = make_leaf(session, pm::load(leaf.low), all, next);
  } else {
    const unsigned kept = split_point(leaf, run);
    const Key separator =
        shortest_separator(keys_.view(all[kept - 1].key), keys_.view(all[kept].key));
    next = make_leaf(session, keys_.write(session, separator), all.subspan(kept), next);
    made = make_leaf(session, pm::load(leaf.low), all.first(kept), next);
  }
  session.free(pool_.offset(&leaf));
  if (path_ != nullptr) path_->remove(leaf);
  pm::on_step("fastfair: a leaf is about to be written anew");
  const bool linked = link_anew(session, at, made);
  if (linked && run.size > fanout_) right = &node_at(next);
  if (path_ != nullptr) add_to_path_again(leaf, linked ? node_at(made) : leaf, right);
  return linked;
}

/// Adds what is in the place of a leaf to the cached path, from which the leaf was removed: `made`,
/// which is the leaf itself if it was not replaced, and `right`, if not null. Both stay while what
/// leads to them is locked.
template <class K>
void WordTree<K>::add_to_path_again(Node& old, Node& made, Node* right) const {
  if (&made != &old) mark_as_gone(old);
  path_->add(made);
  if (right != nullptr) path_->add(*right);
}

/// The pairs of a leaf and of its buffer, in the order of their keys.
template <class K>
auto WordTree<K>::all_pairs(const Node& leaf) const -> Run {
  const auto buffered = sort_buffered(leaf, Key{});
  Run run;
  unsigned next = 0;
  for (unsigned i = 0; i < meta_of(leaf).count; ++i) {
    if (is_copy(leaf, i)) continue;
    const Entry entry = load_entry(leaf, i);
    const Key key = keys_.view(entry.key);
    while (next < buffered.size && keys_.view(buffered.pairs[next].key) < key)
      run.add(buffered.pairs[next++]);
    run.add(entry);
  }
  while (next < buffered.size) run.add(buffered.pairs[next++]);
  return run;
}

/// How many pairs of a run go into the left one of two new leaves: half of them. But if the leaf is
/// the last one and all keys of its buffer are behind its own, as many as a leaf has room for, so
/// that ascending loads fill leaves completely.
template <class K>
unsigned WordTree<K>::split_point(const Node& leaf, const Run& run) const {
  const unsigned count = meta_of(leaf).count;
  const bool append = pm::load(leaf.next) == pm::kNull && count > 0 &&
                      run.entries[count - 1].key == pm::load(leaf.entries[count - 1].key);
  return append ? fanout_ : run.size / 2;
}

/// Makes a leaf with these pairs. Durable with the session's commit.
template <class K>
pm::Offset WordTree<K>::make_leaf(alloc::Session& session, Word low, std::span<const Entry> entries,
                                  pm::Offset next) const {
  alignas(kNodeAlignment) Node made{};
  made.meta = Meta{static_cast<unsigned>(entries.size()), 0}.pack();
  made.next = next;
  made.low = low;
  number_of(made) = buffers_->draw_number();
  std::copy(entries.begin(), entries.end(), made.entries.begin());
  const pm::Offset offset = session.reserve(sizeof(Node));
  pm().stream(pool_.template at<Node>(offset), &made, sizeof made);
  return offset;
}

/// The word of the parent that leads to the leaf; null if there is none. Throws corrupt.
template <class K>
std::uint64_t* WordTree<K>::entry_of(const Surroundings& at) const {
  if (at.parent.node == nullptr) return nullptr;
  Node& parent = *at.parent.node;
  const Word low = pm::load(at.leaf.node->low);
  const unsigned reached = rank_from_right(parent, {keys_.view(low)});
  Entry* const entry = reached == 0 ? nullptr : &parent.entries[reached - 1];
  if (pm::load(entry == nullptr ? parent.low : entry->key) != low) return nullptr;
  std::uint64_t& child = entry == nullptr ? parent.leftmost : entry->value;
  const pm::Offset offset = pool_.offset(at.leaf.node);
  if (pm::load(child) != offset) pool::throw_corrupt(pool_, kNode, offset);
  return &child;
}

/// Commits a session by making what leads to a leaf lead to a new one. Returns false, and has
/// changed nothing, if the caller must try again.
template <class K>
bool WordTree<K>::link_anew(alloc::Session& session, Surroundings& at, pm::Offset made) const {
  std::uint64_t* const entry = entry_of(at);
  std::uint64_t* const before = at.left.node == nullptr ? nullptr : &at.left.node->next;
  if (before == nullptr && entry == nullptr) {
    // Other threads find a new root before it is durable; its latch keeps them from changing it.
    if (!at.latches.try_add(latches_.of(made))) return false;
    commit_anew(session, root_, nullptr, made);
  } else if (before == nullptr) {
    commit_anew(session, *entry, nullptr, made);
  } else {
    commit_anew(session, *before, entry, made);
  }
  return true;
}

/// Commits a session by storing the offset of a new leaf in `word` and, as one change, in `second`,
/// if that is not null.
template <class K>
void WordTree<K>::commit_anew(alloc::Session& session, std::uint64_t& word, std::uint64_t* second,
                              pm::Offset made) const {
  if (pm().commits_as_one()) {
    const std::array changes = {pm::set_word(word, made),
                                pm::set_word(second == nullptr ? word : *second, made)};
    return session.commit_as_one(std::span(changes).first(second == nullptr ? 1 : 2));
  }
  if (second == nullptr) return session.commit(pm::set_word(word, made));
  session.commit_when(word, ~std::uint64_t{0}, made);
  session.redo(*second, made);
  session.log();             // the new leaves are durable before anything leads to them
  pm().publish(word, made);  // the commit
  pm().store(*second, made);
  // finish() fences; until then the record's redo stands in.
  pm().flush(second, sizeof made);
  session.finish();
}

}  // namespace perdix::detail::index::fastfair
