// Verification of every invariant that layout.h states (L1-L8), the list of all blocks that a list
// reaches, and how many pairs it has.
#pragma once

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "index/common/problems.h"
#include "index/skiplist/ranges.h"
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
  checked.expect(!is_hollow(node) || buffers_ != nullptr,
                 "node {:#x} is hollow in a list without "
                 "a log (L7)",
                 offset);
  if (!is_hollow(node)) ++checked.report.pairs;
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

/// The buffer of an owner says what the log does, and has keys of its range that have no node.
template <class K>
void WordList<K>::check_buffer(const Node& owner, Checked& checked) const {
  const Buffer* const buffer = buffer_of(owner);
  if (buffer == nullptr) return;
  const pm::Offset offset = pool_.offset(&owner);
  const Node* const end = next_of(owner, kTall - 1);
  for (unsigned i = 0; i < buffer->size(); ++i) {
    if (!keys_.sound(buffer->key(i)) || !codec_.sound(buffer->value(i))) {
      checked.expect(false, "node {:#x}: its buffer refers to a string that is not there", offset);
      return;
    }
    const Key key = keys_.view(buffer->key(i));
    checked.report.blocks += Keys::blobs(buffer->key(i)) + codec_.blobs(buffer->value(i));
    ++checked.report.pairs;
    checked.expect((&owner == &head_ || key_of(owner) < key) && (!end || key < key_of(*end)),
                   "node {:#x}: its buffer has a key of another range (B2)", offset);
    checked.expect(!has_key(descend_from_head({key}).next, key, Keys::hash16(key)),
                   "node {:#x}: its buffer has a key that has a node (B2)", offset);
  }
  checked.expect(buffer->owner == offset / pm::kLineSize,
                 "node {:#x}: its buffer is another one's (B1)", offset);
  checked.expect(buffers_->agrees_with_chain(*buffer),
                 "node {:#x}: the log and the write buffer disagree (B1)", offset);
}

/// All buffers are those of owners (L8).
template <class K>
void WordList<K>::check_buffers(Checked& checked) const {
  if (buffers_ == nullptr) return;
  std::size_t found = buffer_of(head_) != nullptr ? 1 : 0;
  check_buffer(head_, checked);
  for_each_node(kTall - 1, [&](const Node& owner) {
    if (buffer_of(owner) != nullptr) ++found;
    check_buffer(owner, checked);
  });
  checked.expect(found == buffers_->in_use(), "{} write buffers are in use, {} nodes have one (L8)",
                 buffers_->in_use(), found);
  buffers_->log().check(checked.report);
}

/// The cached path leads to tall nodes of the list, and to all of them if it says so (P1, P2).
template <class K>
void WordList<K>::check_path(Checked& checked) const {
  if (path_ == nullptr) return;
  filling_.wait_for_thread();
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
  try {
    require_resumed();
    const epoch::Guard guard;
    ++checked.report.blocks;
    checked.expect(pool_.allocator().validate_block(pool_.offset(&head_), node_bytes(kMaxHeight)),
                   "the head lies in free memory (L6)");
    for_each_node(0, [&](const Node& node) { check_node(node, checked); });
    for (unsigned level = 1; level < kMaxHeight; ++level) check_level(level, checked);
    check_path(checked);
    check_buffers(checked);
    checked.expect(checked.report.pairs == size(), "{} pairs are counted, {} are there", size(),
                   checked.report.pairs);
  } catch (const Error& error) {
    checked.expect(false, "{}", error.what());
  }
  return checked.report;
}

template <class K>
void WordList<K>::for_each_block(const BlockVisitor& visit) const {
  require_resumed();
  const epoch::Guard guard;
  visit(pool_.offset(&head_));
  const auto visit_blobs = [&](Word key, Word value) {
    if (Keys::blobs(key) != 0) visit(blob_offset(key));
    if (codec_.blobs(value) != 0) visit(blob_offset(value));
  };
  const auto visit_buffer = [&](const Node& owner) {
    const Buffer* const buffer = buffer_of(owner);
    for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
      visit_blobs(buffer->key(i), buffer->value(i));
  };
  if (buffers_ != nullptr) {
    buffers_->log().for_each_block(visit);
    visit_buffer(head_);
    for_each_node(kTall - 1, visit_buffer);
  }
  for_each_node(0, [&](const Node& node) {
    visit(pool_.offset(&node));
    visit_blobs(node.key, node.value);
  });
}

/// Calls visit(node, key, value) for all pairs; the node is null for those in buffers. Under a
/// guard.
template <class K>
template <class Visit>
void WordList<K>::for_each_pair(Visit visit) const {
  if (buffers_ == nullptr) {
    Seen at = first_from(Key{});
    return collect(at, kNoLimit,
                   [&](const Node& node, Word value) { visit(&node, pm::load(node.key), value); });
  }
  Seen at;
  K position{};
  while (collect_ranges(at, position, kNoLimit, visit)) {
  }
}

template <class K>
std::uint64_t WordList<K>::size() const {
  return pairs_.get([&] {
    const epoch::Guard guard;
    std::uint64_t pairs = 0;
    for_each_pair([&](const Node*, Word, Word) { ++pairs; });
    return pairs;
  });
}

template <class K>
IndexStats WordList<K>::stats() const {
  IndexStats stats;
  const epoch::Guard guard;
  std::uint64_t bytes = node_bytes(kMaxHeight);
  for_each_pair([&](const Node* node, Word key, Word value) {
    ++stats.pairs;
    if (node != nullptr) ++stats.leaves;
    bytes += (node == nullptr ? 0 : node_bytes(height_of(*node))) +
             static_cast<std::uint64_t>(keys_.footprint(key) + codec_.footprint(value));
  });
  stats.pm_bytes = bytes + (buffers_ == nullptr ? 0 : buffers_->log().pm_bytes());
  stats.dram_bytes = sizeof *this + latches_.bytes() + (path_ == nullptr ? 0 : path_->bytes()) +
                     (buffers_ == nullptr ? 0 : ranges_->bytes() + buffers_->dram_bytes());
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

}  // namespace perdix::detail::index::skiplist
