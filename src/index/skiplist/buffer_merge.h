// How the pairs of a buffer are added to the list: as a batch, for which one range is locked.
//
//   1. Pairs that no node of the list separates are a run. A run gets nodes that lead from one to
//      the next, on levels 0 and 1. The link before the run commits all of them.
//   2. The chain gets its END.
//   3. Tall nodes among them are added to their other levels, the last node first. Each of them
//      divides the range, whose buffer is empty by then.
//
// A crash before step 2 leaves pairs in both the list and the chain. They are removed from the
// chain when it is adopted. A crash before step 3 leaves tall nodes that are on two levels only, as
// L4 allows.
//
// If there is no space for a run, the pairs of the runs before it are removed from the chain, and
// the others stay in the buffer.
#pragma once

#include <algorithm>

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// The merge of a hollow owner needs the latch of the range before, too.
template <class K>
template <class End>
bool WordList<K>::Homes::merge_in_place(const Seen& owner, WriteBuffer<Shape>& buffer,
                                        End end) const {
  if (is_hollow(*owner.node)) return false;
  LowNodes low;
  list.move_to_list(*owner.node, buffer, low);
  end();
  list.raise_all(low);
  return true;
}

/// Of a hollow owner. Nothing else is written anew: in a list no pair has to make room for another
/// one, so each is written out of place.
template <class K>
void WordList<K>::Homes::rewrite(Locked& range, WriteBuffer<Shape>&, bool) const {
  const Key key = list.key_of(*range.node);
  range.latches.release();
  list.remove_hollow(key);
}

/// Step 1 of a merge. The tall nodes that it makes are added to `low`.
template <class K>
void WordList<K>::move_to_list(Node& owner, Buffer& buffer, LowNodes& low) const {
  const auto run = buffers_->sorted(pool_.offset(&owner), Key{});
  const std::span<const Pair> pairs(run.pairs.data(), run.size);
  unsigned moved = 0;
  try {
    while (moved < run.size) moved += insert_run(owner, pairs.subspan(moved), low);
  } catch (...) {
    for (unsigned i = 0; i < moved; ++i) remove_from_chain(buffer, pairs[i].key);
    throw;
  }
}

/// Removes a key from a buffer and its chain whose node is in the list, durably.
template <class K>
void WordList<K>::remove_from_chain(Buffer& buffer, Word key) const {
  unsigned i = 0;
  while (buffer.key(i) != key) ++i;
  buffers_->forget(buffer, i);
}

/// Inserts a run: the first of the pairs, and those behind it that come before the next node of the
/// list, but no more than one commit can link. Returns how many.
template <class K>
unsigned WordList<K>::insert_run(Node& owner, std::span<const Pair> pairs, LowNodes& low) const {
  Path path;
  path.levels = kTall - 1;
  descend(owner, {keys_.view(pairs[0].key)}, path.levels,
          [&](unsigned level, const Neighbours& at) { path.at[level] = at; });
  const Node* const behind = path.at[0].next;
  alloc::Session session = pool_.allocator().session();
  NewNodes made;
  unsigned highest = levels();
  while (made.count < std::min<std::size_t>(pairs.size(), alloc::kMaxBlocks)) {
    const Key key = keys_.view(pairs[made.count].key);
    if (made.count > 0 && behind != nullptr && !(key < key_of(*behind))) break;
    const unsigned height = std::min({wanted_height(key), highest + 1, kMaxHeight});
    highest = std::max(highest, height);
    made.heights[made.count] = height;
    made.nodes[made.count++] = pool_.template at<Node>(session.reserve(node_bytes(height)));
  }
  link_run(session, path, *made.nodes[0], fill_run(path, pairs, made));
  const unsigned most = *std::max_element(made.heights.begin(), made.heights.begin() + made.count);
  // Only where the head is the owner can a level be new, and its latch is held then.
  if (const unsigned linked = std::min(most, kTall - 1); linked > levels())
    levels_.store(linked, std::memory_order_release);
  for (unsigned i = 0; i < made.count; ++i) {
    if (made.heights[i] >= kTall) low.nodes[low.count++] = made.nodes[i];
  }
  return made.count;
}

/// Writes the nodes of a run, each with links to the next. Returns the first one that has level 1,
/// null if none has.
template <class K>
Node* WordList<K>::fill_run(const Path& path, std::span<const Pair> pairs,
                            const NewNodes& made) const {
  std::array<pm::Offset, kTall - 1> next = {offset_of(path.at[0].next), offset_of(path.at[1].next)};
  Node* second = nullptr;
  for (unsigned i = made.count; i-- > 0;) {
    Node& node = *made.nodes[i];
    fill_node(node, made.heights[i], pairs[i],
              [&](unsigned level) { return level < next.size() ? next[level] : pm::kNull; });
    next[0] = pool_.offset(&node);
    if (made.heights[i] == 1) continue;
    next[1] = pool_.offset(&node);
    second = &node;
  }
  return second;
}

/// Links a run, durably: the link of level 0 before it is the commit. `first` and `second` are the
/// first nodes of levels 0 and 1; `second` may be null.
template <class K>
void WordList<K>::link_run(alloc::Session& session, const Path& path, Node& first,
                           Node* second) const {
  const std::uint64_t link = Link{pool_.offset(&first)}.pack();
  const std::uint64_t link_above = Link{offset_of(second)}.pack();
  if (pm().commits_as_one()) {
    pm::Changes changes;
    changes.set(link_before(path, 0), link);
    if (second != nullptr) changes.set(link_before(path, 1), link_above);
    return session.commit_as_one(changes.all());
  }
  // The nodes are durable before the commit, and on level 0 before they are on level 1.
  session.commit_then(pm::set_word(link_before(path, 0), link), [&] {
    if (second == nullptr) return;
    std::uint64_t& above = link_before(path, 1);
    pm().store(above, link_above);
    pm().flush(&above, sizeof above);  // durable when commit_then() returns
    pm::on_step("skiplist: a run is on one level more");
  });
}

/// Adds tall nodes of a locked range to their upper levels, the last node first. So those that are
/// still to be added stay in the range whose latch is held, until each is an owner itself.
template <class K>
void WordList<K>::raise_all(const LowNodes& low) const {
  for (unsigned i = low.count; i-- > 0;) raise(*low.nodes[i]);
}

/// Adds one tall node to its upper levels.
template <class K>
void WordList<K>::raise(Node& node) const {
  const unsigned height = height_of(node);
  Erased erased;
  for (;;) {
    const Path path = trace(key_of(node), true, height);
    TowerLatches latches;
    lock_tower(latches, path, height, latch_of(node));
    if (is_unchanged(path, height, erased)) return link_upper_levels(path, height, node);
    pm::on_step("skiplist: a raise begins again");
  }
}

/// Adds a node to the levels above those that a merge links. Each level is durable before the next
/// one is changed (L3), and all are before the latches are released (as in link_tower()).
template <class K>
void WordList<K>::link_upper_levels(const Path& path, unsigned height, Node& node) const {
  constexpr unsigned kFirst = kTall - 1;
  const std::uint64_t link = Link{pool_.offset(&node)}.pack();
  const auto next = [&](unsigned level) { return Link{offset_of(path.at[level].next)}.pack(); };
  if (pm().commits_as_one()) {
    pm::Changes changes;
    for (unsigned level = kFirst; level < height; ++level) {
      changes.set(link_word(node, level), next(level));
      changes.set(link_before(path, level), link);
    }
    pm().commit(changes.all());
  } else {
    for (unsigned level = kFirst; level < height; ++level)
      pm().store(link_word(node, level), next(level));
    pm().flush(&link_word(node, kFirst), (height - kFirst) * sizeof link);  // fenced below
    for (unsigned level = kFirst; level < height; ++level) {
      pm().fence();  // its links, and the level below
      std::uint64_t& before = link_before(path, level);
      pm().store(before, link);
      pm().flush(&before, sizeof before);  // fenced by the next level, or below
      pm::on_step("skiplist: a node is raised by a level");
    }
    pm().fence();  // before the latches are released
  }
  if (height > levels()) levels_.store(height, std::memory_order_release);
  if (path_ != nullptr) path_->add(node);
}

/// Removes the hollow owner of a key, if it still is one, and merges its buffer first. Throws
/// out_of_space as a merge does, but not if the buffer is empty. The caller holds no latch.
template <class K>
void WordList<K>::remove_hollow(Key key) const {
  for (;;) {
    LatchSet held;
    const std::optional<Node*> owner = lock_with_before(held, key);
    if (!owner.has_value()) {
      pm::on_step("skiplist: a hollow node has changed");
      continue;
    }
    if (*owner == nullptr || !is_hollow(**owner)) return;
    LowNodes low;
    if (Buffer* const buffer = buffer_of(**owner)) {
      move_to_list(**owner, *buffer, low);
      buffers_->leave(*buffer);  // before the node leaves its levels: B4
    }
    pm::on_step("skiplist: a hollow node goes");
    remove_by_key(key);
    return raise_all(low);
  }
}

/// Removes the hollow node of a key from the list. The caller holds the latch of its range and, if
/// it is an owner, of the range before.
template <class K>
void WordList<K>::remove_by_key(Key key) const {
  Erased erased;
  while (!erase_node(key, nullptr, erased)) pm::on_step("skiplist: an erase begins again");
}

}  // namespace perdix::detail::index::skiplist
