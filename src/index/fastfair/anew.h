// Leaves that are rewritten (Zhao et al. 2024, section 3.2): all pairs of a leaf and of its buffer
// go into a new leaf, or into two if one has no room for them. New leaves are written once and in
// sequence. Then the new leaf, or the left one of the two, takes the place of the old one.
// Rewriting does all of this.
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

#include <mutex>
#include <span>

#include "index/fastfair/buffer_shape.h"
#include "index/fastfair/smo.h"

namespace perdix::detail::index::fastfair {

/// `Buffers` are those of the leaves (index/common/buffered.h).
template <class K, class Buffers>
class Rewriting {
 public:
  using Key = View<K>;

  /// All outlive this.
  Rewriting(Descent<K>& descent, Splitting<K>& splitting, Buffers& buffers)
      : descent_(descent),
        nodes_(descent.nodes()),
        pool_(nodes_.pool()),
        splitting_(splitting),
        buffers_(buffers) {}

  /// Rewrites the leaf of a key with the pairs of its buffer. If there is no space for new leaves
  /// but room in the old one, merges in place. Returns false, and has changed nothing, if the
  /// caller must try again. Throws out_of_space and bad_alloc, and has changed nothing.
  bool write_anew(Key key) {
    Node* right = nullptr;
    {
      Surroundings at;
      if (!lock_surroundings(key, at)) return false;
      Node& leaf = *at.leaf.node;
      auto* const buffer = buffers_.of(nodes_.offset(leaf));
      if (buffer == nullptr || buffer->empty_chain()) return true;  // another thread has merged it
      try {
        if (!replace_leaf(at, right)) return false;
      } catch (const Error& error) {
        if (error.code() != Errc::out_of_space || !buffers_.merge_in_place(at.leaf, *buffer)) throw;
        return true;
      }
      buffers_.leave(*buffer);
    }
    if (right != nullptr) splitting_.install(*right);
    return true;
  }

 private:
  /// A leaf that is rewritten, the leaf before it and the node above. The latter two are null if
  /// there is no such node.
  struct Surroundings {
    Seen leaf, left, parent;
    LatchSet latches;
  };

  /// Locks the leaf of a key and the nodes that lead to it. Returns false if another thread changes
  /// one of them. Does not wait while it holds a latch.
  bool lock_surroundings(Key key, Surroundings& at) const {
    at.leaf = descent_.seek({key}, 0);
    const Word word = pm::load(at.leaf.node->low);
    const Key low = nodes_.view(word);
    if (word != 0) at.left = descent_.seek({low, true}, 0);
    at.parent = descent_.seek({low}, 1);
    for (const Seen* seen : {&at.parent, &at.leaf, &at.left}) {
      if (seen->node != nullptr && !at.latches.try_upgrade(*seen->latch, seen->version))
        return false;
    }
    return true;
  }

  /// Puts one or two new leaves in the place of a locked one. `right` becomes the second of two.
  /// Returns false, and has changed nothing, if the caller must try again.
  bool replace_leaf(Surroundings& at, Node*& right) {
    Node& leaf = *at.leaf.node;
    // If there is no level above, another thread might add one: grow_root().
    std::unique_lock<util::SpinLock> lock;
    if (at.parent.node == nullptr) {
      lock = splitting_.hold_root();
      if (meta_of(nodes_.root()).level > 0) return false;
    }
    const Run run = all_pairs(nodes_.keys(), leaf, buffers_.sorted(nodes_.offset(leaf), Key{}));
    alloc::Session session = pool_.allocator().session();
    pm::Offset made = pm::kNull, next = pm::load(leaf.next);
    const std::span<const Entry> all(run.entries.data(), run.size);
    if (run.size <= nodes_.fanout()) {
      made = make_leaf(session, pm::load(leaf.low), all, next);
    } else {
      const unsigned kept = split_point(leaf, run);
      const Key separator =
          shortest_separator(nodes_.view(all[kept - 1].key), nodes_.view(all[kept].key));
      next = make_leaf(session, nodes_.keys().write(session, separator), all.subspan(kept), next);
      made = make_leaf(session, pm::load(leaf.low), all.first(kept), next);
    }
    session.free(nodes_.offset(leaf));
    auto* const path = descent_.path();
    if (path != nullptr) path->remove(leaf);
    pm::on_step("fastfair: a leaf is about to be written anew");
    const bool linked = link_anew(session, at, made);
    if (linked && run.size > nodes_.fanout()) right = &nodes_.at(next);
    if (path == nullptr) return linked;
    // What leads to the leaf, or to those in its place, is locked: they stay.
    if (linked) mark_as_gone(pm(), leaf);
    path->add(linked ? nodes_.at(made) : leaf);
    if (right != nullptr) path->add(*right);
    return linked;
  }

  /// How many pairs of a run go into the left one of two new leaves: half of them. But if the leaf
  /// is the last one and all keys of its buffer are behind its own, as many as a leaf has room for,
  /// so that ascending loads fill leaves completely.
  unsigned split_point(const Node& leaf, const Run& run) const {
    const unsigned count = meta_of(leaf).count;
    const bool append = pm::load(leaf.next) == pm::kNull && count > 0 &&
                        run.entries[count - 1].key == pm::load(leaf.entries[count - 1].key);
    return append ? nodes_.fanout() : run.size / 2;
  }

  /// Makes a leaf with these pairs. Durable with the session's commit.
  pm::Offset make_leaf(alloc::Session& session, Word low, std::span<const Entry> entries,
                       pm::Offset next) {
    alignas(kNodeAlignment) Node made{};
    made.meta = Meta{static_cast<unsigned>(entries.size()), 0}.pack();
    made.next = next;
    made.low = low;
    number_of(made) = buffers_.draw_number();
    std::copy(entries.begin(), entries.end(), made.entries.begin());
    const pm::Offset offset = session.reserve(sizeof(Node));
    pm().stream(pool_.template at<Node>(offset), &made, sizeof made);
    return offset;
  }

  /// The word of the parent that leads to the leaf; null if there is none. Throws corrupt.
  std::uint64_t* entry_of(const Surroundings& at) const {
    if (at.parent.node == nullptr) return nullptr;
    Node& parent = *at.parent.node;
    const Word low = pm::load(at.leaf.node->low);
    const unsigned reached = nodes_.rank_from_right(parent, {nodes_.view(low)});
    Entry* const entry = reached == 0 ? nullptr : &parent.entries[reached - 1];
    if (pm::load(entry == nullptr ? parent.low : entry->key) != low) return nullptr;
    std::uint64_t& child = entry == nullptr ? parent.leftmost : entry->value;
    const pm::Offset offset = nodes_.offset(*at.leaf.node);
    if (pm::load(child) != offset) pool::throw_corrupt(pool_, kNode, offset);
    return &child;
  }

  /// Commits a session by making what leads to a leaf lead to a new one. Returns false, and has
  /// changed nothing, if the caller must try again.
  bool link_anew(alloc::Session& session, Surroundings& at, pm::Offset made) {
    std::uint64_t* const entry = entry_of(at);
    std::uint64_t* const before = at.left.node == nullptr ? nullptr : &at.left.node->next;
    if (before != nullptr && entry != nullptr) {
      commit_both(pm(), session, pm::set_word(*before, made), pm::set_word(*entry, made));
      return true;
    }
    std::uint64_t* const only = before != nullptr ? before : entry;
    // Other threads find a new root before it is durable; its latch keeps them from changing it.
    if (only == nullptr && !at.latches.try_add(nodes_.latches().of(made))) return false;
    session.commit(pm::set_word(only != nullptr ? *only : nodes_.root_word(), made));
    return true;
  }

  const pm::Persister& pm() const { return nodes_.pm(); }

  Descent<K>& descent_;
  const Nodes<K>& nodes_;
  pool::PoolCore& pool_;
  Splitting<K>& splitting_;
  Buffers& buffers_;
};

}  // namespace perdix::detail::index::fastfair
