// The way to the middle node of a key: readers validate what they read of it, writers lock it.
//
// The top layer may lag behind: it leads to the right node or to one left of it, and `next` leads
// on. A node found this way, by a hint or by a buffer is a guess until its range was compared with
// the key under the node's version or lock. A node without `next` means that cold leaves follow,
// not that the key is in one: see Resumer::lock_before_cold_range().
//
// Two references, made for each call. Thread-safe; the caller holds an epoch::Guard.
#pragma once

#include "index/sptree/locked_node.h"
#include "index/sptree/parts.h"
#include "index/sptree/resumer.h"
#include "pm/probe.h"

namespace perdix::detail::index::sptree {

template <class K>
class Search {
 public:
  using Node = Mnode<K>;
  using Key = View<K>;

  Search(const Parts<K>& parts, Resumer<K>& resumer) : parts_(parts), resumer_(resumer) {}

  /// Calls read(node) on the node whose range covers the key until the result is consistent.
  template <class Read>
  auto read(Key key, Hash16 hash, Read read) const;

  /// Like read(), beginning at a node that doesn't begin after the key.
  template <class Read>
  auto read_from(Node* node, Key key, Read read) const;

  /// Locks the node whose range covers the key, for a write. `may_add`: of a pair that may be new.
  LockedNode<K> lock(Key key, Hash16 hash, bool may_add) const;

 private:
  using Version = typename Node::Lock::Version;
  using Buffer = typename NodeBuffers<K>::Buffer;

  template <class Read>
  auto keep_reading(Node* node, Key key, Read read) const;
  Node* go_right(Node* node, Version version, Key key, unsigned& steps) const;
  void prefetch_for_write(const Node& node, Hash16 hash, bool may_add) const;
  void prefetch_by_hint(Key key, Hash16 hash) const;
  void prefetch_node(const Node* node, Hash16 hash) const;

  const Parts<K>& parts_;
  Resumer<K>& resumer_;
};

/// Where to look on for a key behind the node's range: it was split since the top layer was asked,
/// as in a B-link tree, or the key's leaf is cold. The node itself if it has changed in between.
/// `steps` counts those to the right, from 0 on. After a few the guess was a bad one, and the
/// search is made again, validated; nodes between its result and the key's node are missing in the
/// top layer.
template <class K>
[[gnu::noinline]] auto Search<K>::go_right(Node* node, Version version, Key key,
                                           unsigned& steps) const -> Node* {
  constexpr unsigned kSplitsMeanwhile = 4;
  Node* next = parts_.nodes.next_of(*node);
  if (!node->lock.read_validate(version)) return node;
  if (next == nullptr) {
    pm::on_step("sptree: a leaf may be cold");
    resumer_.warm(key);
    return parts_.top.locate_surely(key);  // the guess that led here may be the same again
  }
  pm::on_step("sptree: go right");
  if (++steps == kSplitsMeanwhile) return parts_.top.locate_surely(key);
  if (steps > kSplitsMeanwhile) parts_.top.publish_if_missing(*next);
  return next;
}

/// What read_from() does if its first attempt failed: attempts until one is consistent.
template <class K>
template <class Read>
[[gnu::noinline]] auto Search<K>::keep_reading(Node* node, Key key, Read read) const {
  for (unsigned steps = 0;;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      pm::on_step("sptree: a reader meets a node that is gone");
      node = parts_.top.locate(key);
      continue;
    }
    if (!node->covers(key)) {
      node = go_right(node, version, key, steps);
      continue;
    }
    auto result = read(*node);
    if (node->lock.read_validate(version)) return result;
    pm::on_step("sptree: a reader meets a change");
  }
}

template <class K>
template <class Read>
auto Search<K>::read(Key key, Hash16 hash, Read read) const {
  Node* node = parts_.top.locate(key);
  node->prefetch_fingerprints(hash);  // at the same time as the first line
  return read_from(node, key, read);
}

/// The first attempt is not in the loop: a compiler would calculate before it whatever does not
/// change from pass to pass, and keep it.
template <class K>
template <class Read>
auto Search<K>::read_from(Node* node, Key key, Read read) const {
  const Version version = node->lock.read_begin();
  if (!Node::Lock::obsolete(version) && node->covers(key)) [[likely]] {
    auto result = read(*node);
    if (node->lock.read_validate(version)) [[likely]]
      return result;
  }
  return keep_reading(node, key, read);
}

template <class K>
[[gnu::flatten]] auto Search<K>::lock(Key key, Hash16 hash, bool may_add) const -> LockedNode<K> {
  prefetch_by_hint(key, hash);  // while the top layer is searched
  Node* node = parts_.top.locate(key);
  prefetch_node(node, hash);
  for (unsigned steps = 0;;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      pm::on_step("sptree: a writer meets a node that is gone");
      node = parts_.top.locate(key);
      continue;
    }
    if (!node->covers(key)) {
      node = go_right(node, version, key, steps);
      continue;
    }
    pm::on_step("sptree: lock a node");
    prefetch_for_write(*node, hash, may_add);
    if (node->lock.try_upgrade(version)) return LockedNode<K>(node);
  }
}

/// Asks for the lines that a write needs of the key's node, if there is a hint.
template <class K>
void Search<K>::prefetch_by_hint(Key key, Hash16 hash) const {
  if (const Node* node = parts_.hints.of(key)) prefetch_node(node, hash);
}

/// Asks for the lines of a node that a write needs, for its order, and for the buffer that the node
/// has unless something kept it from getting that one. Reads nothing of the node: there may be none
/// any more.
template <class K>
void Search<K>::prefetch_node(const Node* node, Hash16 hash) const {
  __builtin_prefetch(node, 1);
  node->prefetch_fingerprints(hash);
  parts_.leaf_orders.prefetch(*node);  // a write carries it over
  if (const std::uint32_t number = parts_.buffers.preferred_number(*node))
    parts_.buffers.prefetch(number);
}

/// Asks for the lines that a write goes to, so that they are on their way while the fingerprints
/// are. Those of a new pair only where the filter says that the key is new: a pair that is present
/// stays where it is, and the line of a free slot would be read for nothing.
template <class K>
void Search<K>::prefetch_for_write(const Node& node, Hash16 hash, bool may_add) const {
  if (const Buffer* buffer = parts_.buffers.of(node)) return buffer->prefetch_for_change();
  if (!may_add || node.bloom.may_contain(hash)) return;
  const Leaf& leaf = *node.leaf();
  __builtin_prefetch(&leaf, 1);
  __builtin_prefetch(&pair_at(leaf, node.free_slot_near(hash) % kLeafPairs), 1);
}

}  // namespace perdix::detail::index::sptree
