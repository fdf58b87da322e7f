// Verification of every invariant that layout.h states (F1-F7), the list of all blocks that a tree
// reaches, and how many pairs it has.
#pragma once

#include <unordered_set>

#include "index/common/problems.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

/// Calls visit(node) for all nodes, level by level from the top, each level from the left.
template <class K>
template <class Visit>
void WordTree<K>::for_each_node(Visit visit) const {
  for (Node* first = &root();; first = &child(*first, 0)) {
    for (Node* node = first; node != nullptr; node = after(*node)) visit(*node);
    if (meta_of(*first).level == 0) return;
  }
}

/// Checks F3 and the words of one entry that counts, of a node or of its buffer; `previous` is the
/// one before it, if any.
template <class K>
bool WordTree<K>::check_entry(const Node& node, unsigned i, const Entry& entry,
                              std::optional<Key>& previous, CheckReport& report) const {
  Problems problems(report);
  const pm::Offset offset = pool_.offset(&node);
  const bool leaf = meta_of(node).level == 0;
  if (!keys_.sound(entry.key) || (leaf && !codec_.sound(entry.value))) {
    problems.expect(false, "node {:#x}: entry {} refers to a string that is not there (F6)", offset,
                    i);
    return false;
  }
  const Key key = keys_.view(entry.key);
  const Node* next = after(node);
  problems.expect(!(key < low_of(node)) && (next == nullptr || key < low_of(*next)),
                  "node {:#x}: the key of entry {} is out of the node's range (F3)", offset, i);
  problems.expect(!previous || *previous < key,
                  "node {:#x}: the key of entry {} is not above the one before (F3)", offset, i);
  previous = key;
  if (!leaf) return true;
  problems.expect(Keys::hash16_of_word(entry.key) == Keys::hash16(key),
                  "node {:#x}: entry {} has another key's hash", offset, i);
  report.blocks += Keys::blobs(entry.key) + codec_.blobs(entry.value);
  ++report.pairs;
  return true;
}

/// Checks one node by itself: F2, F3, F6. `first` of its level: F1.
template <class K>
void WordTree<K>::check_node(const Node& node, bool first, CheckReport& report) const {
  Problems problems(report);
  const pm::Offset offset = pool_.offset(&node);
  const auto [count, level] = meta_of(node);
  ++report.blocks;
  problems.expect(pool_.allocator().validate_block(offset, sizeof(Node)),
                  "node {:#x} lies in free memory (F6)", offset);
  problems.expect(first == (node.low == 0), "node {:#x}: only the first has the least bound (F1)",
                  offset);
  problems.expect(level == 0 || node.leftmost != pm::kNull,
                  "node {:#x}: inner nodes have a leftmost child (F4)", offset);
  if (!keys_.sound(node.low)) {
    problems.expect(false, "node {:#x}: its low bound is not there (F6)", offset);
    return;
  }
  if (level == 0) report.blocks += Keys::blobs(node.low);
  std::optional<Key> previous;
  for (unsigned i = 0; i < count; ++i) {
    if (!is_copy(node, i) && !check_entry(node, i, node.entries[i], previous, report)) return;
  }
  if (level == 0) check_buffer(node, report);
}

/// The buffer of a leaf says what the log does, and has keys that the leaf has not (buffers.h).
template <class K>
void WordTree<K>::check_buffer(const Node& leaf, CheckReport& report) const {
  const Buffer* buffer = buffer_of(leaf);
  if (buffer == nullptr) return;
  Problems problems(report);
  const pm::Offset offset = pool_.offset(&leaf);
  const auto run = sort_buffered(leaf, Key{});
  std::optional<Key> previous;
  for (unsigned i = 0; i < run.size; ++i) {
    const Entry& entry = run.pairs[i];
    if (!check_entry(leaf, i, entry, previous, report)) return;
    const Key key = keys_.view(entry.key);
    problems.expect(!holds(leaf, rank(leaf, {key}), key, Keys::hash16(key)),
                    "leaf {:#x}: its buffer has a key that it has, too (B2)", offset);
  }
  problems.expect(buffer->owner == number_of(leaf), "leaf {:#x}: its buffer is another one's (B1)",
                  offset);
  problems.expect(buffers_->agrees_with_chain(*buffer),
                  "leaf {:#x}: the log and the write buffer disagree (B1)", offset);
}

/// The numbers of leaves (F7).
template <class K>
void WordTree<K>::check_numbers(CheckReport& report) const {
  Problems problems(report);
  std::vector<std::uint64_t> numbers;
  for_each_node([&](const Node& node) {
    if (meta_of(node).level == 0 && number_of(node) != 0) numbers.push_back(number_of(node));
  });
  std::sort(numbers.begin(), numbers.end());
  problems.expect(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end(),
                  "two leaves have one number (F7)");
  const std::uint64_t most = head_ == nullptr ? 0 : pm::load(head_->numbers);
  problems.expect(numbers.empty() || numbers.back() <= most,
                  "a leaf has a number that was not drawn (F7)");
  if (head_ == nullptr) return;
  ++report.blocks;
  problems.expect(pool_.allocator().validate_block(pool_.offset(head_), sizeof(Head)),
                  "the head lies in free memory (F6)");
  if (buffers_ != nullptr) buffers_->log().check(report);
}

/// Checks that the children of a level are nodes of the level below, in its order, and have the
/// bounds that lead to them: F4, F5.
template <class K>
void WordTree<K>::check_children(const Node& first, CheckReport& report) const {
  Problems problems(report);
  const Node* below = &child(first, 0);
  for (const Node* node = &first; node != nullptr; node = after(*node)) {
    for (unsigned rank = 0; rank <= meta_of(*node).count; ++rank) {
      if (rank > 0 && is_copy(*node, rank - 1)) continue;
      const Node& expected = child(*node, rank);
      const Word low = rank == 0 ? node->low : node->entries[rank - 1].key;
      problems.expect(rank == 0 || low != node->low,
                      "node {:#x}: child {} begins where the node does (F4)", pool_.offset(node),
                      rank);
      problems.expect(expected.low == low,
                      "node {:#x}: child {} has another low bound than its entry (F4)",
                      pool_.offset(node), rank);
      while (below != nullptr && below != &expected) below = after(*below);
      if (below == nullptr) {
        problems.expect(false, "node {:#x}: child {} is not in its place in the level below (F5)",
                        pool_.offset(node), rank);
        return;
      }
    }
  }
}

template <class K>
CheckReport WordTree<K>::check() const {
  CheckReport report;
  Problems problems(report);
  try {
    require_resumed();
    const epoch::Guard guard;
    for (const Node* first = &root();; first = &child(*first, 0)) {
      for (const Node* node = first; node != nullptr; node = after(*node)) {
        check_node(*node, node == first, report);
      }
      if (meta_of(*first).level == 0) break;
      check_children(*first, report);
    }
    check_numbers(report);
    check_path(report);
    problems.expect(report.pairs == size(), "{} pairs are counted, {} are there", size(),
                    report.pairs);
  } catch (const Error& error) {
    problems.expect(false, "{}", error.what());
  }
  return report;
}

/// The cached path leads to leaves, and to all of them if it says so (P1, P2).
template <class K>
void WordTree<K>::check_path(CheckReport& report) const {
  if (path_ == nullptr) return;
  Problems problems(report);
  filling_.wait_for_thread();
  std::unordered_set<const Node*> leaves;
  for (const Node* leaf = approach({Key{}}, 0).node; leaf != nullptr; leaf = after(*leaf))
    leaves.insert(leaf);
  const auto [lacking, foreign] = path_->faults(leaves);
  problems.expect(lacking == 0, "the cached path lacks {} leaves (P2)", lacking);
  problems.expect(foreign == 0, "the cached path leads to {} nodes that are no leaves (P1)",
                  foreign);
}

template <class K>
void WordTree<K>::for_each_block(const BlockVisitor& visit) const {
  require_resumed();
  const epoch::Guard guard;
  if (head_ != nullptr) visit(pool_.offset(head_));
  if (buffers_ != nullptr) buffers_->log().for_each_block(visit);
  for_each_node([&](const Node& node) {
    visit(pool_.offset(&node));
    if (meta_of(node).level > 0) return;  // the strings of inner nodes belong to leaves (F4)
    if (Keys::blobs(node.low) != 0) visit(blob_offset(node.low));
    const Run run = all_pairs(node);
    for (unsigned i = 0; i < run.size; ++i) {
      const Entry& entry = run.entries[i];
      if (Keys::blobs(entry.key) != 0) visit(blob_offset(entry.key));
      if (codec_.blobs(entry.value) != 0) visit(blob_offset(entry.value));
    }
  });
}

/// Calls visit(entry) for the pairs of all leaves, each leaf as it was at one moment. Pairs that no
/// writer touches during the call are shown once, also if leaves split and merge.
template <class K>
template <class Visit>
void WordTree<K>::for_each_leaf(Visit visit) const {
  const epoch::Guard guard;
  Snapshot snapshot;
  for (Seen leaf = approach({Key{}}, 0); leaf.node != nullptr; leaf = snapshot.following) {
    const Key from = low_of(*leaf.node);  // of one that is gone, too: in this guard
    while (!take_snapshot(leaf, from, snapshot)) leaf = seek({from}, 0);
    visit(*leaf.node, snapshot);
  }
}

template <class K>
std::uint64_t WordTree<K>::size() const {
  return pairs_.get([&] {
    std::uint64_t pairs = 0;
    for_each_leaf([&](const Node&, const Snapshot& snapshot) { pairs += snapshot.size; });
    return pairs;
  });
}

template <class K>
IndexStats WordTree<K>::stats() const {
  IndexStats stats;
  std::int64_t blob_bytes = 0;
  for_each_leaf([&](const Node& leaf, const Snapshot& snapshot) {
    ++stats.leaves;
    stats.pairs += snapshot.size;
    blob_bytes += keys_.footprint(pm::load(leaf.low));
    for (unsigned i = 0; i < snapshot.size; ++i) {
      const Entry& entry = snapshot.entries[i];
      blob_bytes += keys_.footprint(entry.key) + codec_.footprint(entry.value);
    }
  });
  const epoch::Guard guard;  // nodes that are merged away during the call stay what they are
  std::uint64_t nodes = 0;
  for_each_node([&](const Node&) { ++nodes; });
  stats.pm_bytes = nodes * sizeof(Node) + static_cast<std::uint64_t>(blob_bytes) +
                   (head_ == nullptr ? 0 : sizeof(Head)) +
                   (buffers_ == nullptr ? 0 : buffers_->log().pm_bytes());
  stats.dram_bytes = sizeof *this + latches_.bytes() + (path_ == nullptr ? 0 : path_->bytes()) +
                     (buffers_ == nullptr ? 0 : buffers_->dram_bytes());
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

}  // namespace perdix::detail::index::fastfair
