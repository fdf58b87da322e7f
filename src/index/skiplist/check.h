// Verification of every invariant that layout.h states (L1-L8), of the cached path (P1, P2) and of
// the write buffers (B1, B2), and the list of all blocks that a list reaches. All chains from
// before the restart are adopted, and no other thread changes the list. The caller holds an
// epoch::Guard.
#pragma once

#include <unordered_set>
#include <utility>

#include "index/common/problems.h"
#include "index/skiplist/buffers.h"
#include "index/skiplist/owned.h"
#include "index/skiplist/ways.h"
#include "pool/open_index.h"

namespace perdix::detail::index::skiplist {

template <class K>
class ListChecker {
 public:
  /// All outlive this. `buffers` may be null.
  ListChecker(const Ways<K>& ways, const ValueCodec& values, const RangeBuffers<K>* buffers)
      : ways_(ways), nodes_(ways.nodes()), values_(values), buffers_(buffers) {}

  /// Adds to the report what it finds, block by block. Throws corrupt where it cannot go on.
  void check(CheckReport& report) const {
    nodes_.for_each(0, [&](const Node& node) { check_node(node, report); });
    for (unsigned level = 1; level < kMaxHeight; ++level) check_level(level, report);
    if (ways_.are_cached()) check_path(report);
    if (buffers_ != nullptr) check_buffers(report);
  }

  /// Tells of all blocks of the list.
  void walk(Owned& owned) const {
    if (buffers_ != nullptr) {
      for_each_buffer(
          [&](const Node&, const Buffer& buffer) { walk_buffer<K>(values_, &buffer, owned); });
    }
    std::uint64_t word =
        nodes_.pool().offset(&nodes_.head());  // a copy does: only a drop changes it
    skiplist::walk<K>(nodes_.pool(), word, values_, owned);
  }

 private:
  using Keys = Codec<K>;
  using Buffer = typename RangeBuffers<K>::Buffer;

  /// Calls visit(owner, buffer) for all buffers that owners have.
  template <class Visit>
  void for_each_buffer(Visit visit) const {
    const auto visit_owner = [&](const Node& owner) {
      if (const Buffer* const buffer = buffers_->of(owner)) visit(owner, *buffer);
    };
    visit_owner(nodes_.head());
    nodes_.for_each(kTall - 1, visit_owner);
  }

  /// A node by itself: L5, L6.
  void check_node(const Node& node, CheckReport& report) const {
    Problems problems(report);
    const pm::Offset offset = nodes_.pool().offset(&node);
    problems.expect(!is_erased(node), "node {:#x} is marked as erased (L5)", offset);
    if (!sound_pair(nodes_.keys(), values_, node.key, node.value)) {
      problems.expect(false, "node {:#x} refers to a string that is not there (L6)", offset);
      return;
    }
    problems.expect(Keys::hash16_of_word(node.key) == Keys::hash16(nodes_.key_of(node)),
                    "node {:#x}: its key has another one's tag", offset);
    problems.expect(!is_hollow(node) || buffers_ != nullptr,
                    "node {:#x} is hollow in a list without a log (L7)", offset);
    if (!is_hollow(node)) ++report.pairs;
  }

  /// The nodes of a level are nodes of the level below: L3.
  void check_level(unsigned level, CheckReport& report) const {
    Problems problems(report);
    const Node* below = &nodes_.head();
    nodes_.for_each(level, [&](const Node& node) {
      while (below != nullptr && below != &node) below = nodes_.next_of(*below, level - 1);
      problems.expect(below != nullptr, "node {:#x} is in level {} and not in the one below (L3)",
                      nodes_.pool().offset(&node), level);
      if (below == nullptr) below = &node;
    });
    problems.expect(load_link(nodes_.head(), level).node == pm::kNull || level < nodes_.levels(),
                    "level {} is not searched", level);
  }

  /// The cached path leads to tall nodes of the list, and to all of them if it says so (P1, P2).
  void check_path(CheckReport& report) const {
    ways_.wait_for_filling();
    std::unordered_set<const Node*> tall;
    nodes_.for_each(kTall - 1, [&](const Node& node) { tall.insert(&node); });
    const auto [lacking, foreign] = ways_.faults(tall);
    Problems problems(report);
    problems.expect(lacking == 0, "the cached path lacks {} nodes (P2)", lacking);
    problems.expect(foreign == 0, "the cached path leads to {} nodes that are not there (P1)",
                    foreign);
  }

  /// All buffers are those of owners (L8).
  void check_buffers(CheckReport& report) const {
    std::size_t found = 0;
    for_each_buffer([&](const Node& owner, const Buffer& buffer) {
      ++found;
      check_buffer(owner, buffer, report);
    });
    Problems(report).expect(found == buffers_->buffers().in_use(),
                            "{} write buffers are in use, {} nodes have one (L8)",
                            buffers_->buffers().in_use(), found);
    buffers_->buffers().log().check(report);
  }

  /// The buffer of an owner says what the log does, and has keys of its range that have no node.
  void check_buffer(const Node& owner, const Buffer& buffer, CheckReport& report) const {
    Problems problems(report);
    const pm::Offset offset = nodes_.pool().offset(&owner);
    const Node* const end = buffers_->ranges().end_of(owner);
    for (unsigned i = 0; i < buffer.size(); ++i) {
      if (!sound_pair(nodes_.keys(), values_, buffer.key(i), buffer.value(i))) {
        problems.expect(false, "node {:#x}: its buffer refers to a string that is not there",
                        offset);
        return;
      }
      const View<K> key = nodes_.keys().view(buffer.key(i));
      ++report.pairs;
      problems.expect((&owner == &nodes_.head() || nodes_.key_of(owner) < key) &&
                          (end == nullptr || key < nodes_.key_of(*end)),
                      "node {:#x}: its buffer has a key of another range (B2)", offset);
      problems.expect(!nodes_.has_key(nodes_.descend_from_head({key}).next, HashedKey<K>(key)),
                      "node {:#x}: its buffer has a key that has a node (B2)", offset);
    }
    problems.expect(buffer.owner == offset / pm::kLineSize,
                    "node {:#x}: its buffer is another one's (B1)", offset);
    problems.expect(buffers_->buffers().agrees_with_chain(buffer),
                    "node {:#x}: the log and the write buffer disagree (B1)", offset);
  }

  const Ways<K>& ways_;
  const Nodes<K>& nodes_;
  const ValueCodec& values_;
  const RangeBuffers<K>* const buffers_;
};

}  // namespace perdix::detail::index::skiplist
