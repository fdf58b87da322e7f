// The structure modifications of the list: how a node is added to its levels and removed from them.
//
//   trace() (search.h), lock_tower(), is_unchanged(), then insert_node() or remove_node()
//
// Level 0 is the commit. A node is added to level 0 first and then to the levels above, upwards. It
// is removed from the highest level first and from level 0 last. Each level is durable before the
// next one is changed, so at every moment a node is in all levels below one that it is in (L3).
// Otherwise a search that comes down in a node could go on from it on a level that it is not in,
// and what is erased there would stay in that level.
//
// All latches are held throughout: those of the nodes before it, and its own.
#pragma once

#include <array>

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// Takes the latches of the nodes before a node on its levels, and its own.
template <class K>
void WordList<K>::lock_tower(TowerLatches& latches, const Path& path, unsigned height,
                             Latch& own) const {
  std::array<Latch*, kMaxHeight + 1> all;
  unsigned count = 0;
  all[count++] = &own;
  for (unsigned level = 0; level < height; ++level) {
    if (level > 0 && path.at[level].before == path.at[level - 1].before) continue;
    all[count++] = &latch_of(*path.at[level].before);
  }
  latches.lock_all(std::span(all).first(count));
}

/// Whether the nodes before a node are in the list and their links are as the path has them. The
/// caller holds their latches.
template <class K>
bool WordList<K>::is_unchanged(const Path& path, unsigned height, Erased& erased) const {
  for (unsigned level = 0; level < height; ++level) {
    const Neighbours& at = path.at[level];
    if (is_gone(*at.before, erased)) return false;
    if (load_link(*at.before, level).node != offset_of(at.next)) return false;
  }
  return true;
}

/// Writes a whole node, which is in no level yet, and flushes it. link_of(level): the offset of the
/// node to which it leads there.
template <class K>
template <class LinkOf>
void WordList<K>::fill_node(Node& node, unsigned height, Pair pair, LinkOf link_of) const {
  std::array<std::uint64_t, offsetof(Node, first) / sizeof(std::uint64_t) + kMaxHeight> words;
  unsigned used = 0;
  for (const std::uint64_t word : {Meta{.height = height}.pack(), pair.key, pair.value})
    words[used++] = word;
  for (unsigned level = 0; level < height; ++level) words[used++] = Link{link_of(level)}.pack();
  pm().copy(&node, words.data(), used * sizeof words[0]);
  pm().flush(&node, used * sizeof words[0]);  // durable before the commit
}

/// Adds a node of a key between the neighbours of a path. Throws out_of_space and bad_alloc, and
/// has changed nothing.
template <class K>
void WordList<K>::insert_node(const Path& path, unsigned height, Key key, NewValue value) {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset node = session.reserve(node_bytes(height));
  const Word key_word = keys_.write(session, key, Keys::hash16(key));
  const Pair pair{key_word, codec_.write(session, value)};
  fill_node(*pool_.template at<Node>(node), height, pair,
            [&](unsigned level) { return offset_of(path.at[level].next); });
  const std::uint64_t link = Link{node}.pack();
  if (pm().commits_as_one()) {
    pm::Changes changes;
    for (unsigned level = 0; level < height; ++level) changes.set(link_before(path, level), link);
    session.commit_as_one(changes.all());
  } else {
    // The node and its strings are durable before the commit.
    session.commit_then(pm::set_word(link_before(path, 0), link),
                        [&] { link_tower(path, height, node); });
  }
  pairs_.add();
  // One thread at a time does so: the head is the node before on the new levels, and locked.
  if (height > levels()) levels_.store(height, std::memory_order_release);
  if (height >= kTall && path_ != nullptr) path_->add(*pool_.template at<Node>(node));
}

/// Adds a node that is durable on level 0 to the levels above. The highest one is flushed only:
/// commit_then() fences before the latches are released. So no node that is added behind this one
/// on a level is durable there without it.
template <class K>
void WordList<K>::link_tower(const Path& path, unsigned height, pm::Offset node) const {
  for (unsigned level = 1; level < height; ++level) {
    if (level > 1) pm().fence();  // L3: the level below comes first
    std::uint64_t& link = link_before(path, level);
    pm().store(link, Link{node}.pack());
    pm().flush(&link, sizeof link);
    pm::on_step("skiplist: a node is on one level more");
  }
}

/// On how many levels the node is to which a path has led.
template <class K>
unsigned WordList<K>::linked_levels(const Path& path, unsigned height) const {
  unsigned linked = 0;
  while (linked < std::min(height, path.levels) && path.at[linked].next == path.at[0].next)
    ++linked;
  return linked;
}

/// Removes the node to which a path has led from its `linked` levels, and frees it. Its block is
/// freed after the node has left all levels in PM, and after it was marked for readers that are at
/// it.
template <class K>
void WordList<K>::remove_node(const Path& path, unsigned linked) const {
  Node& node = *path.at[0].next;
  alloc::Session session = pool_.allocator().session();
  session.free(pool_.offset(&node));
  Keys::free(session, pm::load(node.key));
  codec_.free(session, pm::load(node.value));
  const Link behind = load_link(node, 0);
  if (path_ != nullptr && height_of(node) >= kTall) path_->remove(node);
  // From here on nothing fails. The mark need not be durable: after a crash no link leads to the
  // node.
  const auto mark = [&] { pm().store(node.first, Link{behind.node, true}.pack()); };
  if (pm().commits_as_one()) {
    pm::Changes changes;
    for (unsigned level = linked; level-- > 0;)
      changes.set(link_before(path, level), load_link(node, level).pack());
    session.commit_as_one(changes.all(), mark);
  } else {
    unlink_tower(path, linked);
    session.commit(pm::set_word(link_before(path, 0), behind.pack()), mark);
  }
}

/// Removes a node from the levels above level 0. The lowest of them is flushed only: the commit
/// fences first.
template <class K>
void WordList<K>::unlink_tower(const Path& path, unsigned linked) const {
  const Node& node = *path.at[0].next;
  for (unsigned level = linked; --level > 0;) {
    std::uint64_t& link = link_before(path, level);
    // Durable before the level below is changed.
    pm().store(link, load_link(node, level).pack());
    pm().flush(&link, sizeof link);
    if (level > 1) pm().fence();  // L3: the level below goes later
    pm::on_step("skiplist: a node is on one level less");
  }
}

}  // namespace perdix::detail::index::skiplist
