// Verification of every invariant that layout.h (L1-L6) and mnode.h (M1-M2) state, and the list of
// all blocks that an index reaches.
#include <algorithm>
#include <vector>

#include "index/common/problems.h"
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {

/// Checks the pairs of one node: L3-L6 and M2.
template <class K, class V>
void Tree<K, V>::check_pairs(const Node& node, CheckReport& report) const {
  Problems problems(report);
  const pm::Offset offset = pool().offset(node.leaf);
  std::vector<Key> seen;
  for (std::uint64_t left = node.slots(); left != 0; left &= left - 1) {
    const int slot = std::countr_zero(left);
    const Pair& pair = node.leaf->pairs[slot];
    ++report.pairs;
    if (!keys_.sound(pair.key) || !values_.sound(pair.value)) {
      problems.expect(false, "leaf {:#x}: slot {} refers to a string that is not there (L6)",
                      offset, slot);
      continue;
    }
    report.blocks += Keys::blobs(pair.key) + Values::blobs(pair.value);
    const Key key = keys_.view(pair.key);
    seen.push_back(key);
    problems.expect(!(key < NodeBounds::view(node.low)) && node.covers(key),
                    "leaf {:#x}: the key in slot {} is out of the leaf's range (L3)", offset, slot);
    problems.expect(Keys::hash16_of_word(pair.key) == Keys::hash16(key),
                    "leaf {:#x}: slot {} has another key's hash", offset, slot);
    problems.expect((node.candidates(Keys::hash16(key)) >> slot & 1) != 0,
                    "leaf {:#x}: the filter denies the key in slot {} (M2)", offset, slot);
  }
  std::sort(seen.begin(), seen.end());
  problems.expect(std::adjacent_find(seen.begin(), seen.end()) == seen.end(),
                  "leaf {:#x}: a key is in two slots (L5)", offset);
}

/// Checks one node and its link to the next: L1, L2, L6 and M1, M2.
template <class K, class V>
void Tree<K, V>::check_node(const Node& node, CheckReport& report) const {
  Problems problems(report);
  const Leaf& leaf = *node.leaf;
  const pm::Offset offset = pool().offset(&leaf);
  const Node* next = node.next.load(std::memory_order_acquire);
  ++report.blocks;
  problems.expect(pool().allocator().validate_block(offset, sizeof(Leaf)),
                  "leaf {:#x} lies in free memory (L6)", offset);
  problems.expect(leaf.magic == kLeafMagic, "leaf {:#x} has no magic number", offset);
  problems.expect(leaf.next == (next == nullptr ? pm::kNull : pool().offset(next->leaf)),
                  "leaf {:#x}: DRAM and PM disagree on the next leaf (L2)", offset);
  problems.expect(leaf.bitmap == node.slots(),
                  "leaf {:#x}: DRAM and PM disagree on the bitmap (M2)", offset);
  const auto high = node.high.load(std::memory_order_acquire);
  if (next == nullptr) {
    problems.expect(NodeBounds::is_open(high), "leaf {:#x}: the last leaf's range ends (M1)",
                    offset);
  } else {
    problems.expect(high == NodeBounds::end_at(next->low),
                    "leaf {:#x}: its range ends where no other begins (M1)", offset);
    problems.expect(NodeBounds::view(node.low) < NodeBounds::view(next->low),
                    "leaf {:#x}: its successor's bound is not above its own (L2)", offset);
  }
  if (!keys_.sound(leaf.low)) {
    problems.expect(false, "leaf {:#x}: its low bound is not there (L6)", offset);
    return;
  }
  report.blocks += Keys::blobs(leaf.low);
  problems.expect(keys_.view(leaf.low) == NodeBounds::view(node.low),
                  "leaf {:#x}: DRAM and PM disagree on the low bound (M1)", offset);
}

template <class K, class V>
CheckReport Tree<K, V>::check() const {
  CheckReport report;
  Problems problems(report);
  const epoch::Guard guard;
  problems.expect(pool().offset(head_->leaf) == pm::load(handle_.root()),
                  "the root is not the first leaf (L1)");
  problems.expect(head_->leaf->low == 0, "the first leaf has a low bound (L1)");
  for (const Node* node = head_; node != nullptr;
       node = node->next.load(std::memory_order_acquire)) {
    check_node(*node, report);
    check_pairs(*node, report);
    problems.expect(node == head_ || top_.find(NodeBounds::view(node->low)) == node,
                    "the top layer misses leaf {:#x}", pool().offset(node->leaf));
  }
  problems.expect(report.pairs == size(), "{} pairs are counted, {} are there", size(),
                  report.pairs);
  return report;
}

template <class K, class V>
void Tree<K, V>::for_each_block(const BlockVisitor& visit) const {
  const epoch::Guard guard;
  for (const Node* node = head_; node != nullptr;
       node = node->next.load(std::memory_order_acquire)) {
    visit(pool().offset(node->leaf));
    if (Keys::blobs(node->leaf->low) != 0) visit(blob_offset(node->leaf->low));
    for (std::uint64_t left = node->slots(); left != 0; left &= left - 1) {
      const Pair& pair = node->leaf->pairs[std::countr_zero(left)];
      if (Keys::blobs(pair.key) != 0) visit(blob_offset(pair.key));
      if (Values::blobs(pair.value) != 0) visit(blob_offset(pair.value));
    }
  }
}

template CheckReport Tree<std::uint64_t, std::uint64_t>::check() const;
template CheckReport Tree<std::uint64_t, std::string>::check() const;
template CheckReport Tree<std::string, std::uint64_t>::check() const;
template CheckReport Tree<std::string, std::string>::check() const;
template void Tree<std::uint64_t, std::uint64_t>::for_each_block(const BlockVisitor&) const;
template void Tree<std::uint64_t, std::string>::for_each_block(const BlockVisitor&) const;
template void Tree<std::string, std::uint64_t>::for_each_block(const BlockVisitor&) const;
template void Tree<std::string, std::string>::for_each_block(const BlockVisitor&) const;

}  // namespace perdix::index::sptree
