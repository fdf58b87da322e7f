// Verification of every invariant that layout.h states (F1-F7).
//
// All chains of the log are adopted, no thread fills the cached path, and no other thread changes
// the tree. The caller holds an epoch::Guard.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "index/common/problems.h"
#include "index/fastfair/buffers.h"

namespace perdix::detail::index::fastfair {

template <class K>
class TreeChecker {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  /// All outlive this. `head`: null if there is none. `report` gets what is found.
  TreeChecker(const Descent<K>& descent, const LeafBuffers<K>& buffers, const ValueCodec& values,
              const Head* head, CheckReport& report)
      : descent_(descent),
        nodes_(descent.nodes()),
        buffers_(buffers),
        values_(values),
        head_(head),
        report_(report),
        problems_(report) {}

  void check() {
    for (const Node* first = &nodes_.root();; first = &nodes_.child(*first, 0)) {
      for (const Node* node = first; node != nullptr; node = nodes_.after(*node)) {
        check_node(*node, node == first);
      }
      if (meta_of(*first).level == 0) break;
      check_children(*first);
    }
    check_numbers();
    check_path();
  }

 private:
  /// Checks F3 and the words of one entry that counts, of a node or of its buffer; `previous` is
  /// the one before it, if any.
  bool check_entry(const Node& node, unsigned i, const Entry& entry, std::optional<Key>& previous) {
    const pm::Offset offset = nodes_.offset(node);
    const bool leaf = meta_of(node).level == 0;
    if (leaf ? !sound_pair(nodes_.keys(), values_, entry.key, entry.value)
             : !nodes_.keys().sound(entry.key)) {
      problems_.expect(false, "node {:#x}: entry {} refers to a string that is not there (F6)",
                       offset, i);
      return false;
    }
    const Key key = nodes_.view(entry.key);
    const Node* next = nodes_.after(node);
    problems_.expect(
        !(key < nodes_.low_of(node)) && (next == nullptr || key < nodes_.low_of(*next)),
        "node {:#x}: the key of entry {} is out of the node's range (F3)", offset, i);
    problems_.expect(!previous || *previous < key,
                     "node {:#x}: the key of entry {} is not above the one before (F3)", offset, i);
    previous = key;
    if (!leaf) return true;
    problems_.expect(Keys::hash16_of_word(entry.key) == Keys::hash16(key),
                     "node {:#x}: entry {} has another key's hash", offset, i);
    ++report_.pairs;
    return true;
  }

  /// Checks one node by itself: F2, F3, F6. `first` of its level: F1.
  void check_node(const Node& node, bool first) {
    const pm::Offset offset = nodes_.offset(node);
    const auto [count, level] = meta_of(node);
    problems_.expect(first == (node.low == 0),
                     "node {:#x}: only the first has the least bound (F1)", offset);
    problems_.expect(level == 0 || node.leftmost != pm::kNull,
                     "node {:#x}: inner nodes have a leftmost child (F4)", offset);
    if (!nodes_.keys().sound(node.low)) {
      problems_.expect(false, "node {:#x}: its low bound is not there (F6)", offset);
      return;
    }
    std::optional<Key> previous;
    for (unsigned i = 0; i < count; ++i) {
      if (!is_copy(node, i) && !check_entry(node, i, node.entries[i], previous)) return;
    }
    if (level == 0) check_buffer(node);
  }

  /// The buffer of a leaf says what the log does, and has keys that the leaf has not (buffers.h).
  void check_buffer(const Node& leaf) {
    const auto* buffer = buffers_.of(leaf);
    if (buffer == nullptr) return;
    const pm::Offset offset = nodes_.offset(leaf);
    const auto run = buffers_.sorted(leaf, Key{});
    std::optional<Key> previous;
    for (unsigned i = 0; i < run.size; ++i) {
      const Entry& entry = run.pairs[i];
      if (!check_entry(leaf, i, entry, previous)) return;
      const Key key = nodes_.view(entry.key);
      problems_.expect(!nodes_.holds(leaf, nodes_.rank(leaf, {key}), key, Keys::hash16(key)),
                       "leaf {:#x}: its buffer has a key that it has, too (B2)", offset);
    }
    problems_.expect(buffer->owner == number_of(leaf),
                     "leaf {:#x}: its buffer is another one's (B1)", offset);
    problems_.expect(buffers_->agrees_with_chain(*buffer),
                     "leaf {:#x}: the log and the write buffer disagree (B1)", offset);
  }

  /// The numbers of leaves (F7).
  void check_numbers() {
    std::vector<std::uint64_t> numbers;
    nodes_.for_each([&](const Node& node) {
      if (meta_of(node).level == 0 && number_of(node) != 0) numbers.push_back(number_of(node));
    });
    std::sort(numbers.begin(), numbers.end());
    problems_.expect(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end(),
                     "two leaves have one number (F7)");
    const std::uint64_t most = head_ == nullptr ? 0 : pm::load(head_->numbers);
    problems_.expect(numbers.empty() || numbers.back() <= most,
                     "a leaf has a number that was not drawn (F7)");
    if (buffers_.get() != nullptr) buffers_->log().check(report_);
  }

  /// Checks that the children of a level are nodes of the level below, in its order, and have the
  /// bounds that lead to them: F4, F5.
  void check_children(const Node& first) {
    const Node* below = &nodes_.child(first, 0);
    for (const Node* node = &first; node != nullptr; node = nodes_.after(*node)) {
      for (unsigned rank = 0; rank <= meta_of(*node).count; ++rank) {
        if (rank > 0 && is_copy(*node, rank - 1)) continue;
        const Node& expected = nodes_.child(*node, rank);
        const Word low = rank == 0 ? node->low : node->entries[rank - 1].key;
        problems_.expect(rank == 0 || low != node->low,
                         "node {:#x}: child {} begins where the node does (F4)",
                         nodes_.offset(*node), rank);
        problems_.expect(expected.low == low,
                         "node {:#x}: child {} has another low bound than its entry (F4)",
                         nodes_.offset(*node), rank);
        while (below != nullptr && below != &expected) below = nodes_.after(*below);
        if (below == nullptr) {
          problems_.expect(false,
                           "node {:#x}: child {} is not in its place in the level below (F5)",
                           nodes_.offset(*node), rank);
          return;
        }
      }
    }
  }

  /// The cached path leads to leaves, and to all of them if it says so (P1, P2).
  void check_path() {
    if (descent_.path() == nullptr) return;
    std::unordered_set<const Node*> leaves;
    for (const Node* leaf = descent_.approach({Key{}}, 0).node; leaf != nullptr;
         leaf = nodes_.after(*leaf))
      leaves.insert(leaf);
    const auto [lacking, foreign] = descent_.path()->faults(leaves);
    problems_.expect(lacking == 0, "the cached path lacks {} leaves (P2)", lacking);
    problems_.expect(foreign == 0, "the cached path leads to {} nodes that are no leaves (P1)",
                     foreign);
  }

  const Descent<K>& descent_;
  const Nodes<K>& nodes_;
  const LeafBuffers<K>& buffers_;
  const ValueCodec& values_;
  const Head* const head_;
  CheckReport& report_;
  Problems problems_;
};

}  // namespace perdix::detail::index::fastfair
