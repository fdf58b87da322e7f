// The PM accesses of inserts into FAST&FAIR as it was published (Hwang et al., FAST 2018): a
// B+-tree of 512-byte nodes with sorted records, searched from the left, shifted one record at a
// time with a flush per line, and split with sibling pointers. One thread. An insert does not look
// whether the key is there, and writes to the node's header (lock, hints) after its last flush:
// that is where the engine of this library differs.
//
// After each search in an inner node, and before each insertion, the first key of the right sibling
// is looked at, as the published implementation does because a split may be under way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "testing/meter/line_map.h"
#include "testing/meter/traces/pm.h"

namespace perdix::testing::traces {

class FastFair {
 public:
  explicit FastFair(Pm pm) : pm_(pm) { root_ = allocate(0); }

  void insert(std::uint64_t key) { store(descend(key, 0), key, 0); }

 private:
  using Id = std::uint32_t;
  static constexpr Id kNone = ~Id{0};
  static constexpr std::uint64_t kNodeBytes = 512;
  static constexpr std::uint64_t kHeaderBytes = 32;
  static constexpr std::uint64_t kRecordBytes = 16;
  static constexpr std::size_t kMaxKeys = (kNodeBytes - kHeaderBytes) / kRecordBytes - 1;

  // children has one more than keys: the first is the header's leftmost pointer.
  struct Node {
    std::uint32_t level = 0;
    Id sibling = kNone;
    std::vector<std::uint64_t> keys;
    std::vector<Id> children;
  };

  static std::uint64_t offset_of(Id node) { return node * kNodeBytes; }
  static std::uint64_t record_of(Id node, std::size_t i) {
    return offset_of(node) + kHeaderBytes + i * kRecordBytes;
  }

  Id allocate(std::uint32_t level) {
    nodes_.emplace_back().level = level;
    return static_cast<Id>(nodes_.size() - 1);
  }

  void read_header(Id node) { pm_.read(offset_of(node), kHeaderBytes); }

  void scan_records(Id node, std::size_t n) {
    for (std::size_t i = 0; i < std::min(n, kMaxKeys + 1); ++i)
      pm_.read(record_of(node, i), kRecordBytes);
  }

  void peek_at_sibling(Id node) {
    const Id sibling = nodes_[node].sibling;
    if (sibling != kNone) pm_.read(record_of(sibling, 0), kRecordBytes);
  }

  Id descend(std::uint64_t key, std::uint32_t level) {
    Id node = root_;
    while (nodes_[node].level > level) {
      const auto& keys = nodes_[node].keys;
      const auto i = static_cast<std::size_t>(std::ranges::upper_bound(keys, key) - keys.begin());
      read_header(node);
      scan_records(node, i + 1);
      peek_at_sibling(node);
      node = nodes_[node].children[i];
    }
    return node;
  }

  void store(Id node, std::uint64_t key, Id child) {
    read_header(node);
    peek_at_sibling(node);
    pm_.read(record_of(node, nodes_[node].keys.size()), kRecordBytes);
    if (nodes_[node].keys.size() < kMaxKeys) {
      insert_into(node, key, child);
    } else {
      split(node, key, child);
    }
  }

  void insert_into(Id node, std::uint64_t key, Id child) {
    Node& n = nodes_[node];
    const auto at =
        static_cast<std::size_t>(std::ranges::upper_bound(n.keys, key) - n.keys.begin());
    pm_.write(record_of(node, n.keys.size() + 1), kRecordBytes / 2);
    for (std::size_t i = n.keys.size(); i > at; --i) {
      pm_.write(record_of(node, i), kRecordBytes);
      // FAST: a line is flushed when the shift leaves it.
      if (record_of(node, i) % kLineBytes == 0) pm_.persist(record_of(node, i), kLineBytes);
    }
    pm_.write_and_persist(record_of(node, at), kRecordBytes);
    pm_.write(offset_of(node), kHeaderBytes);  // the hint of where the last record is
    n.keys.insert(n.keys.begin() + static_cast<std::ptrdiff_t>(at), key);
    if (n.level > 0)
      n.children.insert(n.children.begin() + static_cast<std::ptrdiff_t>(at) + 1, child);
  }

  void split(Id node, std::uint64_t key, Id child) {
    const Id sibling = allocate(nodes_[node].level);
    const std::uint64_t split_key = move_upper_half(node, sibling);
    pm_.write_and_persist(offset_of(sibling), kNodeBytes);
    pm_.write_and_persist(offset_of(node), kHeaderBytes);
    pm_.write_and_persist(record_of(node, nodes_[node].keys.size()), kRecordBytes);
    pm_.write_and_persist(offset_of(node), kHeaderBytes);
    insert_into(key < split_key ? node : sibling, key, child);
    if (node == root_) {
      grow(node, split_key, sibling);
    } else {
      const std::uint32_t level = nodes_[node].level + 1;
      store(descend(split_key, level), split_key, sibling);
    }
  }

  // A leaf keeps a copy of the split key, an inner node gives it away.
  std::uint64_t move_upper_half(Id node, Id sibling) {
    Node& from = nodes_[node];
    Node& to = nodes_[sibling];
    const std::ptrdiff_t middle = kMaxKeys / 2;
    const std::ptrdiff_t first = from.level == 0 ? middle : middle + 1;
    const std::uint64_t split_key = from.keys[middle];
    scan_records(node, kMaxKeys);
    to.keys.assign(from.keys.begin() + first, from.keys.end());
    from.keys.resize(middle);
    if (from.level > 0) {
      to.children.assign(from.children.begin() + first, from.children.end());
      from.children.resize(middle + 1);
    }
    to.sibling = from.sibling;
    from.sibling = sibling;
    return split_key;
  }

  void grow(Id left, std::uint64_t split_key, Id right) {
    root_ = allocate(nodes_[left].level + 1);
    nodes_[root_].keys = {split_key};
    nodes_[root_].children = {left, right};
    pm_.write_and_persist(offset_of(root_), kNodeBytes);
  }

  Pm pm_;
  std::vector<Node> nodes_;
  Id root_ = 0;
};

}  // namespace perdix::testing::traces
