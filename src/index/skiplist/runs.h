// How sorted pairs are added to a range whose latch is held, and which has none of their keys:
//
//   1. insert(): pairs that no node of the list separates are a run. A run gets nodes that lead
//      from one to the next, on levels 0 and 1. The link before the run commits all of them.
//   2. raise_all(): tall nodes among them are added to their other levels, the last node first. So
//      those that are still to be added stay in the range whose latch is held, until each is an
//      owner itself.
//
// A crash before step 2 leaves tall nodes that are on two levels only, as L4 allows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "alloc/session.h"
#include "index/skiplist/towers.h"
#include "pm/persist.h"

namespace perdix::detail::index::skiplist {

/// Of a buffer (Zhao et al. 2024, section 3.1).
inline constexpr unsigned kMaxPairs = 16;

/// Tall nodes that are in levels 0 and 1 only, until raise_all().
struct LowNodes {
  std::array<Node*, kMaxPairs> nodes;
  unsigned count = 0;
};

template <class K>
class Runs {
 public:
  /// Both outlive this.
  Runs(Nodes<K>& nodes, Towers<K>& towers) : nodes_(nodes), towers_(towers) {}

  /// Inserts a run: the first of the pairs, and those behind it that come before the next node of
  /// the list, but no more than one commit can link. Returns how many. Adds the tall nodes to
  /// `low`.
  unsigned insert(Node& owner, std::span<const Pair> pairs, LowNodes& low) {
    Path path;
    path.levels = kTall - 1;
    nodes_.descend(owner, {nodes_.keys().view(pairs[0].key)}, path.levels,
                   [&](unsigned level, const Neighbours& at) { path.at[level] = at; });
    alloc::Session session = nodes_.pool().allocator().session();
    const NewNodes made = reserve(session, path.at[0].next, pairs);
    link(session, path, *made.nodes[0], fill(path, pairs, made));
    const auto heights = std::span(made.heights).first(made.count);
    // Only where the head is the owner can a level be new, and its latch is held then.
    nodes_.add_levels(std::min(*std::max_element(heights.begin(), heights.end()), kTall - 1));
    for (unsigned i = 0; i < made.count; ++i) {
      if (made.heights[i] >= kTall) low.nodes[low.count++] = made.nodes[i];
    }
    return made.count;
  }

  void raise_all(const LowNodes& low) {
    for (unsigned i = low.count; i-- > 0;) towers_.raise(*low.nodes[i]);
  }

 private:
  /// Nodes of a run, which one commit links.
  struct NewNodes {
    std::array<Node*, alloc::kMaxBlocks> nodes;
    std::array<unsigned, alloc::kMaxBlocks> heights;
    unsigned count = 0;
  };

  /// Reserves the nodes of a run, which comes before `behind`.
  NewNodes reserve(alloc::Session& session, const Node* behind, std::span<const Pair> pairs) const {
    NewNodes made;
    unsigned highest = nodes_.levels();
    while (made.count < std::min<std::size_t>(pairs.size(), alloc::kMaxBlocks)) {
      const View<K> key = nodes_.keys().view(pairs[made.count].key);
      if (made.count > 0 && behind != nullptr && !(key < nodes_.key_of(*behind))) break;
      const unsigned height = std::min({towers_.wanted_height(key), highest + 1, kMaxHeight});
      highest = std::max(highest, height);
      made.heights[made.count] = height;
      made.nodes[made.count++] =
          nodes_.pool().template at<Node>(session.reserve(node_bytes(height)));
    }
    return made;
  }

  /// Writes the nodes of a run, each with links to the next. Returns the first one that has level
  /// 1, null if none has.
  Node* fill(const Path& path, std::span<const Pair> pairs, const NewNodes& made) const {
    std::array<pm::Offset, kTall - 1> next = {nodes_.offset_of(path.at[0].next),
                                              nodes_.offset_of(path.at[1].next)};
    Node* second = nullptr;
    for (unsigned i = made.count; i-- > 0;) {
      Node& node = *made.nodes[i];
      towers_.fill(node, made.heights[i], pairs[i],
                   [&](unsigned level) { return level < next.size() ? next[level] : pm::kNull; });
      next[0] = nodes_.pool().offset(&node);
      if (made.heights[i] == 1) continue;
      next[1] = nodes_.pool().offset(&node);
      second = &node;
    }
    return second;
  }

  /// Links a run, durably: the link of level 0 before it is the commit. `first` and `second` are
  /// the first nodes of levels 0 and 1; `second` may be null.
  void link(alloc::Session& session, const Path& path, Node& first, Node* second) {
    const pm::Persister& pm = nodes_.pm();
    const std::uint64_t link = Link{nodes_.pool().offset(&first)}.pack();
    const std::uint64_t link_above = Link{nodes_.offset_of(second)}.pack();
    if (pm.commits_as_one()) {
      pm::Changes changes;
      changes.set(path.link_before(0), link);
      if (second != nullptr) changes.set(path.link_before(1), link_above);
      return session.commit_as_one(changes.all());
    }
    // The nodes are durable before the commit, and on level 0 before they are on level 1.
    session.commit_then(pm::set_word(path.link_before(0), link), [&] {
      if (second == nullptr) return;
      std::uint64_t& above = path.link_before(1);
      pm.store(above, link_above);
      pm.flush(&above, sizeof above);  // durable when commit_then() returns
      pm::on_step("skiplist: a run is on one level more");
    });
  }

  Nodes<K>& nodes_;
  Towers<K>& towers_;
};

}  // namespace perdix::detail::index::skiplist
