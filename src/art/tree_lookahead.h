// Tree: searching for the greatest key below, a step at a time.
//
// A step reads one node, which the step before has asked memory for, and asks for the next one. So
// a caller that takes turns with the steps of several searches waits for all their nodes at once.
//
// Why it may read without validating: a Guard keeps every node that a slot led to, a node never
// changes its kind, and slots change atomically. So a step never leaves the memory of nodes; a
// writer can only mislead it, and the caller checks what it finds.
#pragma once

#include "art/node_search.h"
#include "art/tree.h"

namespace perdix::art {

template <class Value, class KeyOf, class Memory>
class Tree<Value, KeyOf, Memory>::Lookahead {
 public:
  Lookahead() = default;
  explicit Lookahead(const Tree& tree) : key_of_(&tree.key_of_), ref_(tree.root_.load()) {
    prefetch(ref_);
  }

  /// Goes on by one node or value; false if the search had ended.
  bool step(Key key) {
    if (ref_.is_node()) {
      greatest_ ? go_to_greatest(ref_, kBeyond) : descend(key);
      return true;
    }
    if (greatest_ || ref_.is_null()) return false;
    greatest_ = true;  // all that follows is smaller
    if (key < (*key_of_)(value())) turn_back();
    return true;
  }

  /// Where the search ended; nullptr if no key seemed to be below.
  Value value() const { return ref_.template value<Value>(); }

 private:
  void descend(Key key) {
    const Entry own = pass_prefix(key);
    if (greatest_) return;
    const Ref node = ref_;
    const Floor floor = visit<Key>(node, [&](const auto& n) { return floor_in(n, own); });
    if (floor.ref.is_null()) return turn_back();  // also of the root: nothing is below then
    if (!floor.exact) greatest_ = true;
    if (floor.exact && floor.more) {
      turn_ = node;
      turn_entry_ = own;
    }
    ref_ = floor.ref;
    ++depth_;
    prefetch(ref_);
  }

  /// The key's entry after the node's prefix. If there is none, or the prefix differs from the key,
  /// the search goes on with the greatest key below this node or before it. What a node doesn't
  /// store of its prefix is taken to agree.
  Entry pass_prefix(Key key) {
    const auto& head = *ref_.template node<Header<Key>>();
    if (head.shape().prefix_length != 0 && may_lead_on(key, depth_)) {
      const Prefix<Key> prefix = head.prefix();
      const unsigned agreed = prefix.agree(key, depth_);
      if (agreed < prefix.stored() && may_lead_on(key, depth_ + agreed)) {
        const bool all_below = prefix.byte(agreed) < Traits::entry(key, depth_ + agreed);
        all_below ? go_to_greatest(ref_, kBeyond) : turn_back();
        return kEnd;
      }
      depth_ += prefix.length();
    }
    if (may_lead_on(key, depth_)) return Traits::entry(key, depth_);
    turn_back();
    return kEnd;
  }

  /// False only if a writer's half-made change led deeper than the key is long.
  static bool may_lead_on(Key key, unsigned depth) {
    return Traits::kMayEnd || depth < Traits::size(key);
  }

  void turn_back() {
    if (turn_.is_null()) {
      greatest_ = true;
      ref_ = Ref{};
    } else {
      go_to_greatest(turn_, turn_entry_ - 1);
    }
  }

  /// To the last child of the node at or before the entry, from where only last children follow.
  void go_to_greatest(Ref node, Entry entry) {
    greatest_ = true;
    ref_ = visit<Key>(node, [&](const auto& n) { return previous(n, entry); });
    prefetch(ref_);
  }

  const KeyOf* key_of_ = nullptr;
  Ref ref_{};
  Ref turn_{};  // the last node passed with a child before the key's own
  Entry turn_entry_ = 0;
  unsigned depth_ = 0;
  bool greatest_ = false;  // all that is left below is smaller than the key
};

template <class Value, class KeyOf, class Memory>
auto Tree<Value, KeyOf, Memory>::look_ahead() const -> Lookahead {
  return Lookahead(*this);
}

}  // namespace perdix::art
