// The inspection of an adaptive radix tree, from left to right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <perdix/tips_plugin.h>

#include "plugins/art/node.h"

namespace perdix::tips::plugins::art {

template <class Keys>
class TreeInspection {
 public:
  explicit TreeInspection(Inspector& inspector) : inspector_(inspector) {}

  /// Whether all below a link is sound, with this many pairs.
  bool is_sound(Link link, std::uint64_t pairs) {
    while (link != 0) {
      const bool sound = is_leaf(link) ? inspect_leaf(leaf_at(link)) : inspect_node(node_at(link));
      if (!sound || !inspect_next(link)) return false;
    }
    return pairs_ == pairs;
  }

 private:
  struct Step {
    const Node* node;
    unsigned symbol;  // of the child that is being inspected
    unsigned seen;    // children, with that one
  };

  bool inspect_node(const Node& node) {
    if (!inspector_.readable(&node, sizeof(Node))) return false;
    if (node.kind > Kind::node256) return false;
    if (!inspector_.node(&node, bytes_of(node))) return false;
    if (!path_.empty() && node.depth <= path_.back().node->depth) return false;
    if (node.state != kFree || node.used > capacity_of(node) || node.live < 2) return false;
    path_.push_back({&node, 0, 0});
    return true;
  }

  /// Checks that neighbours first differ in the symbol of the node that parts them: then keys
  /// ascend and all below a node have the same symbols before.
  bool inspect_leaf(const Leaf& leaf) {
    if (!inspector_.node(&leaf, sizeof leaf)) return false;
    if (!inspector_.pair(leaf.key, leaf.value)) return false;
    for (std::size_t i = first_; i < path_.size(); ++i)
      if (Keys::symbol(leaf.key, path_[i].node->depth) != path_[i].symbol) return false;
    const Leaf* const previous = std::exchange(previous_, &leaf);
    ++pairs_;
    return previous == nullptr ||
           Keys::mismatch(previous->key, leaf.key) == path_[first_].node->depth;
  }

  /// Goes on to the next child of a path; 0: there is none.
  bool inspect_next(Link& link) {
    for (; !path_.empty(); path_.pop_back()) {
      Step& last = path_.back();
      const Child child = next_child(*last.node, last.seen == 0 ? 0 : last.symbol + 1);
      if ((link = child.link) != 0) {
        last.symbol = child.symbol;
        if (++last.seen > 1) first_ = path_.size() - 1;
        return true;
      }
      if (last.seen != last.node->live) return false;
    }
    link = 0;
    return true;
  }

  Inspector& inspector_;
  std::vector<Step> path_;
  std::size_t first_ =
      0;  // from this node of the path on, the next leaf is the first of each child
  const Leaf* previous_ = nullptr;
  std::uint64_t pairs_ = 0;
};

}  // namespace perdix::tips::plugins::art
