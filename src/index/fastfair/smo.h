// Structure modifications that make the tree grow (FAIR, paper §4): split a full node, give the new
// one an entry above, and put a new root on top; and what takes a root with a single child away.
// node_merge.h has those that make the tree shrink.
//
// A split commits by one publish of the left node's `next`. The left node's count must change with
// it, so it is covered by the allocator's record (redo). The entry above is added separately: until
// it is there the new node is found by `next`. So neither a crash nor a delay between the two does
// harm, and a thread that arrives by `next` adds the entry: install().
//
// The root word changes under the root lock only, whose holder waits for no latch. Thread-safe.
#pragma once

#include <array>
#include <mutex>
#include <new>

#include "alloc/session.h"
#include "index/common/separator.h"
#include "index/fastfair/search.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::fastfair {

/// Commits a session by two stores that are one change: `first` is the commit, and the record makes
/// `second` good.
inline void commit_both(const pm::Persister& pm, alloc::Session& session, const pm::Change& first,
                        const pm::Change& second) {
  if (pm.commits_as_one()) return session.commit_as_one(std::array{first, second});
  session.commit_when(*first.word, first.mask, first.value);
  session.redo(*second.word, second.value);
  session.log();
  pm.publish(*first.word, first.value);  // the commit; what it links is durable since log()
  pm.store(*second.word, second.value);
  // finish() fences; until then the record's redo stands in.
  pm.flush(second.word, sizeof second.value);
  session.finish();
}

template <class K>
class Splitting {
 public:
  using Key = View<K>;

  /// `descent` outlives this.
  explicit Splitting(Descent<K>& descent)
      : descent_(descent),
        nodes_(descent.nodes()),
        pool_(nodes_.pool()),
        root_(nodes_.root_word()) {}

  /// Splits a full node, which is locked and without copies, so that `key` finds room in it or in
  /// its new right neighbour. Returns the neighbour. The upper half of the entries moves. But if
  /// `key` is behind all entries of the last node of a level, as few as possible move, so that
  /// ascending loads fill nodes completely. `draw_number()`: that of a new leaf (F7).
  template <class DrawNumber>
  Node* split(Node& node, Key key, DrawNumber draw_number) {
    const auto [count, level] = meta_of(node);
    const auto key_at = [&](unsigned i) { return nodes_.key_at(node, i); };
    const bool append = pm::load(node.next) == pm::kNull && key_at(count - 1) < key;
    // Of an inner node, entry `kept` becomes the new node's low bound and leftmost child.
    const unsigned kept = !append ? count / 2 : level == 0 ? count : count - 1;
    const unsigned first = level == 0 ? kept : kept + 1;
    const unsigned moved = count - first;

    alloc::Session session = pool_.allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Node));
    Node& right = *pool_.template at<Node>(offset);
    if (level == 0) {
      const Key separator = shortest_separator(key_at(kept - 1), append ? key : key_at(kept));
      pm().store(right.low, nodes_.keys().write(session, separator));
      pm().store(number_of(right), draw_number());
    } else {
      pm().store(right.low, pm::load(node.entries[kept].key));
      pm().store(right.leftmost, pm::load(node.entries[kept].value));
    }
    pm().store(right.meta, Meta{moved, level}.pack());
    pm().store(right.next, pm::load(node.next));
    pm().copy(right.entries.data(), node.entries.data() + first, moved * sizeof(Entry));
    // Flushed only: log() fences before the new node can be linked. Entries behind `count` mean
    // nothing.
    pm().flush(&right, offsetof(Node, entries) + moved * sizeof(Entry));
    commit_both(pm(), session, pm::set_word(node.next, offset),
                pm::set_word(node.meta, meta_with(node, kept)));
    // The new leaf cannot be merged away meanwhile: its left neighbour is locked.
    if (level == 0 && descent_.path() != nullptr) descent_.path()->add(right);
    return &right;
  }

  /// Gives a node that was found by `next` its entry in the level above, if it still has none. The
  /// caller holds no latch and has done its write, so no error is reported. If there is no space or
  /// memory to split the level above, a later write that meets the node tries again.
  void install(Node& stray) {
    try {
      while (!try_install(stray)) {
      }
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {
    }
  }

  /// Removes roots that have one child only.
  void collapse() {
    const std::lock_guard lock(root_lock_);
    for (;;) {
      Node& top = nodes_.root();
      if (meta_of(top).level == 0) return;
      LatchSet latches;
      if (!latches.try_add(nodes_.latch_of(top))) return;  // a later erase tries again
      if (meta_of(top).count > 0 || pm::load(top.next) != pm::kNull) return;
      const pm::Offset below = nodes_.offset(nodes_.child(top, 0));
      alloc::Session session = pool_.allocator().session();
      session.free(nodes_.offset(top));
      session.commit_when(root_, ~std::uint64_t{0}, below);
      session.log();
      pm().publish(root_, below);  // the commit
      session.finish();
    }
  }

  /// Keeps the root what it is.
  [[nodiscard]] std::unique_lock<util::SpinLock> hold_root() {
    return std::unique_lock(root_lock_);
  }

 private:
  /// One attempt of install(). Returns false if the level above had to be changed first.
  bool try_install(Node& stray) {
    const Word word = pm::load(stray.low);
    const Key low = nodes_.view(word);
    Node* split_off = nullptr;
    pm::on_step("fastfair: a node is about to get its entry");
    {
      Locked parent;
      if (!descent_.lock(parent, low, meta_of(stray).level + 1)) return grow_root(stray);
      Node& node = *parent.node;
      const unsigned after = nodes_.rank_from_right(node, {low});
      // It has an entry. Or it is the first child: another thread gave it an entry, which a split
      // has made the leftmost child.
      if (pm::load(after > 0 ? node.entries[after - 1].key : node.low) == word) return true;
      // Nodes below this one are merged only under its latch, which is held, so the stray stays.
      if (!is_linked(nodes_.child(node, after), stray)) return true;
      if (meta_of(node).count < nodes_.fanout()) {
        insert_entry(pm(), node, after, {word, nodes_.offset(stray)});
        return true;
      }
      if (remove_copies(pm(), node)) return false;
      split_off = split(node, low, [] { return 0; });
    }
    install(*split_off);
    return false;
  }

  /// Whether a node is reached from `from`, a node of its level, so that it was not merged away.
  bool is_linked(Node& from, const Node& node) const {
    Node* at = &from;
    while (at != nullptr && at != &node) at = nodes_.right_of(*at, {nodes_.low_of(node)});
    return at == &node;
  }

  /// Puts a new root above the root and its right neighbour. Returns false if another thread has
  /// done so, and true if there is nothing to do, or nothing that can be done now.
  bool grow_root(Node& right) {
    const std::lock_guard lock(root_lock_);
    Node& left = nodes_.root();
    const unsigned level = meta_of(left).level;
    if (level > meta_of(right).level) return false;
    // Nodes of the root's level are not merged, since nothing lies above them.
    if (!is_linked(left, right)) return true;

    alloc::Session session = pool_.allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Node));
    // Other threads find the new root as soon as it is stored, before that is durable. What they
    // linked to it would leak in a crash, so they must wait for its latch. If the latch is held for
    // another node, a later write adds the root.
    LatchSet latches;
    if (!latches.try_add(nodes_.latches().of(offset))) return true;
    Node& top = *pool_.template at<Node>(offset);
    pm().store(top.meta, Meta{1, level + 1}.pack());
    pm().store(top.next, pm::kNull);
    pm().store(top.low, 0);
    pm().store(top.leftmost, nodes_.offset(left));
    store_entry(pm(), top, 0, {pm::load(right.low), nodes_.offset(right)});
    pm().flush(&top, offsetof(Node, entries) + sizeof(Entry));  // log() fences
    session.commit_when(root_, ~std::uint64_t{0}, offset);
    session.log();
    pm().store(root_, offset);          // the commit
    pm().flush(&root_, sizeof offset);  // finish() fences, before the latch is released
    session.finish();
    return true;
  }

  const pm::Persister& pm() const { return nodes_.pm(); }

  Descent<K>& descent_;
  const Nodes<K>& nodes_;
  pool::PoolCore& pool_;
  std::uint64_t& root_;
  util::SpinLock root_lock_;
};

}  // namespace perdix::detail::index::fastfair
