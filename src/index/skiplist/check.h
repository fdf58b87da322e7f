// Verification of every invariant that layout.h states (L1-L6), the list of all blocks that a list
// reaches, and how many pairs it has.
#pragma once

#include <unordered_set>

#include "index/common/problems.h"
#include "index/skiplist/scan.h"
#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// What check() has found so far.
template <class K>
struct WordList<K>::Checked {
  CheckReport report;

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    Problems(report).expect(holds, format, std::forward<Args>(args)...);
  }
};

/// Calls visit(node) for all nodes of a level but the head. Throws corrupt where keys do not ascend
/// (L2, L3).
template <class K>
template <class Visit>
void WordList<K>::for_each_node(unsigned level, Visit visit) const {
  const Node* before = &head_;
  while (const Node* node = next_of(*before, level)) {
    visit(*node);  // before its key is looked at
    require_ascending(*before, *node);
    before = node;
  }
}

/// A node by itself: L5, L6.
template <class K>
void WordList<K>::check_node(const Node& node, Checked& checked) const {
  const pm::Offset offset = pool_.offset(&node);
  ++checked.report.blocks;
  checked.expect(pool_.allocator().validate_block(offset, node_bytes(height_of(node))),
                 "node {:#x} lies in free memory (L6)", offset);
  checked.expect(!is_erased(node), "node {:#x} is marked as erased (L5)", offset);
  if (!keys_.sound(node.key) || !codec_.sound(node.value)) {
    checked.expect(false, "node {:#x} refers to a string that is not there (L6)", offset);
    return;
  }
  checked.expect(Keys::hash16_of_word(node.key) == Keys::hash16(key_of(node)),
                 "node {:#x}: its key has another one's tag", offset);
  checked.report.blocks += Keys::blobs(node.key) + codec_.blobs(node.value);
  ++checked.report.pairs;
}

/// The nodes of a level are nodes of the level below: L3.
template <class K>
void WordList<K>::check_level(unsigned level, Checked& checked) const {
  const Node* below = &head_;
  for_each_node(level, [&](const Node& node) {
    while (below != nullptr && below != &node) below = next_of(*below, level - 1);
    checked.expect(below != nullptr, "node {:#x} is in level {} and not in the one below (L3)",
                   pool_.offset(&node), level);
    if (below == nullptr) below = &node;
  });
  checked.expect(load_link(head_, level).node == pm::kNull || level < levels(),
                 "level {} is not searched", level);
}

/// The cached path leads to tall nodes of the list, and to all of them if it says so (P1, P2).
template <class K>
void WordList<K>::check_path(Checked& checked) const {
  if (path_ == nullptr) return;
  resumption_.wait_for_thread();
  std::unordered_set<const Node*> tall;
  for_each_node(kTall - 1, [&](const Node& node) { tall.insert(&node); });
  const auto [lacking, foreign] = path_->faults(tall);
  checked.expect(lacking == 0, "the cached path lacks {} nodes (P2)", lacking);
  checked.expect(foreign == 0, "the cached path leads to {} nodes that are not there (P1)",
                 foreign);
}

template <class K>
CheckReport WordList<K>::check() const {
  Checked checked;
  const epoch::Guard guard;
  try {
    ++checked.report.blocks;
    checked.expect(pool_.allocator().validate_block(pool_.offset(&head_), node_bytes(kMaxHeight)),
                   "the head lies in free memory (L6)");
    for_each_node(0, [&](const Node& node) { check_node(node, checked); });
    for (unsigned level = 1; level < kMaxHeight; ++level) check_level(level, checked);
    check_path(checked);
    checked.expect(checked.report.pairs == size(), "{} pairs are counted, {} are there", size(),
                   checked.report.pairs);
  } catch (const Error& error) {
    checked.expect(false, "{}", error.what());
  }
  return checked.report;
}

template <class K>
void WordList<K>::for_each_block(const BlockVisitor& visit) const {
  const epoch::Guard guard;
  visit(pool_.offset(&head_));
  for_each_node(0, [&](const Node& node) {
    visit(pool_.offset(&node));
    if (Keys::blobs(node.key) != 0) visit(blob_offset(node.key));
    if (codec_.blobs(node.value) != 0) visit(blob_offset(node.value));
  });
}

template <class K>
std::uint64_t WordList<K>::size() const {
  return pairs_.get([&] {
    const epoch::Guard guard;
    std::uint64_t pairs = 0;
    Seen at = first_from(Key{});
    collect(at, kNoLimit, [&](const Node&, Word) { ++pairs; });
    return pairs;
  });
}

template <class K>
IndexStats WordList<K>::stats() const {
  IndexStats stats;
  const epoch::Guard guard;
  std::uint64_t bytes = node_bytes(kMaxHeight);
  Seen at = first_from(Key{});
  collect(at, kNoLimit, [&](const Node& node, Word value) {
    ++stats.pairs;
    bytes +=
        node_bytes(height_of(node)) +
        static_cast<std::uint64_t>(keys_.footprint(pm::load(node.key)) + codec_.footprint(value));
  });
  stats.leaves = stats.pairs;
  stats.pm_bytes = bytes;
  stats.dram_bytes = sizeof *this + latches_.bytes() + (path_ == nullptr ? 0 : path_->bytes());
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

}  // namespace perdix::detail::index::skiplist
