// Tree: searching for the greatest key below, a step at a time.
//
// A step reads one node, which the step before has asked memory for, and asks for the next one. So
// a caller that interleaves the steps of several searches waits for all their nodes at the same
// time.
//
// Why it may read without validating: a Guard keeps every node that a slot led to, a node never
// changes its kind, and slots change atomically. So a step never leaves the memory of nodes; a
// writer can only mislead it, and the caller checks what it finds.
//
// Prefixes of strings may be longer than what a node stores of them. A step takes the rest to agree
// with the key; once the search has ended, the key of the value that it found tells whether it
// does: all keys below a node share the node's prefix.
#pragma once

#include "art/node_search.h"
#include "art/tree.h"

namespace perdix::detail::art {

template <class Value, class KeyOf, class Memory>
class Tree<Value, KeyOf, Memory>::Lookahead {
 public:
  Lookahead() = default;
  Lookahead(const Tree& tree, Key key) : ref_(tree.root_.load()), rest_(key) { prefetch(ref_); }

  /// Goes on by one node; false if the search had ended.
  bool step() {
    if (!ref_.is_node()) return false;
    greatest_ ? go_to_greatest() : descend();
    prefetch(ref_);
    return true;
  }

 private:
  friend class Tree;

  Value value() const { return ref_.template value<Value>(); }

  /// Whether a value's key has those bytes of the wanted key that no node on the way stores.
  bool confirmed_by(Key found, Key wanted) const {
    if constexpr (!Prefix<Key>::kAlwaysWhole) {
      if (has_unseen_) return found.starts_with(wanted.substr(0, wanted.size() - behind_unseen_));
    }
    return true;
  }

  void descend() {
    const unsigned prefix_length = ref_.template node<Header<Key>>()->shape().prefix_length;
    if (prefix_length != 0 && !pass_prefix()) return;
    const Entry own = Traits::entry(rest_, 0);
    const Entry following = Traits::byte_or_zero(rest_, 1);
    visit<Key>(ref_, [&](const auto& node) { go_on(floor_in(node, own, following), own); });
  }

  void go_on(Floor floor, Entry own) {
    if (floor.exact) {
      above_ = ref_;
      entry_ = own;
      ref_ = floor.ref;
      rest_ = Traits::without_first(rest_, 1);
    } else if (!floor.ref.is_null()) {
      greatest_ = true;
      ref_ = floor.ref;
    } else {
      turn_back();
    }
  }

  /// Whether the key leads on, past the node's prefix; if not, the search does so without it. The
  /// part of a prefix that a node doesn't store is assumed to agree, for now.
  bool pass_prefix() {
    const Prefix<Key> prefix = ref_.template node<Header<Key>>()->prefix();
    const unsigned agreed = prefix.agree(rest_, 0);
    if (agreed == prefix.stored()) {
      if constexpr (!Prefix<Key>::kAlwaysWhole) {
        if (prefix.length() > agreed && !skip_unseen(prefix.length())) return false;
      }
      rest_ = Traits::without_first(rest_, prefix.length());
      return true;
    }
    const bool all_below = prefix.byte(agreed) < Traits::entry(rest_, agreed);
    all_below ? go_to_greatest() : turn_back();
    return false;
  }

  /// Notes that the key is to have all of a prefix that a node stores in part. If the key is
  /// shorter, the search has lost its way: the bytes that the key lacks can't agree.
  bool skip_unseen(unsigned length) {
    has_unseen_ = Traits::size(rest_) >= length;
    if (!has_unseen_) {
      ref_ = {};
      return false;
    }
    behind_unseen_ = Traits::size(rest_) - length;
    return true;
  }

  /// All keys below are greater, which the byte in the reference to the node could not tell: it is
  /// the key's as well.
  void turn_back() {
    greatest_ = true;
    ref_ = above_.is_null()
               ? Ref{}
               : visit<Key>(above_, [&](const auto& node) { return previous(node, entry_ - 1); });
  }

  /// To the last child, from where only last children follow.
  void go_to_greatest() {
    greatest_ = true;
    ref_ = visit<Key>(ref_, [](const auto& node) { return previous(node, kBeyond); });
  }

  Ref ref_{};
  Key rest_{};             // of the key, behind what led here
  Ref above_{};            // the node before
  Entry entry_ = 0;        // what led from there to here
  bool greatest_ = false;  // all that is left below is smaller than the key
  // Of keys whose prefixes may be cut:
  bool has_unseen_ = false;     // a prefix was passed that no node has the whole of
  unsigned behind_unseen_ = 0;  // bytes of the key behind the last such
};

template <class Value, class KeyOf, class Memory>
auto Tree<Value, KeyOf, Memory>::look_ahead(Key key) const -> Lookahead {
  return {*this, key};
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::guess(const Lookahead& search, Key key) const {
  const Value value = search.value();
  if (value == nullptr || !search.confirmed_by(key_of_(value), key)) return nullptr;
  return value;
}

}  // namespace perdix::detail::art
