#include "index/sptree/check.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "index/common/problems.h"
#include "index/sptree/owned.h"
#include "index/sptree/replay.h"

namespace perdix::detail::index::sptree {

/// Checks the pairs of one node, in the leaf and in the buffer: L3-L6, M2 and B2.
template <class K>
void Checker<K>::check_pairs(const Node& node, CheckReport& report) const {
  Problems problems(report);
  const pm::Offset offset = parts_.pool.offset(node.leaf());
  std::vector<Key> seen;
  const auto check_pair = [&](Word key_word, Word value_word, const std::string& place) {
    ++report.pairs;
    if (!sound_pair(parts_.leaves.keys(), parts_.leaves.values(), key_word, value_word)) {
      problems.expect(false, "leaf {:#x}: {} refers to a string that is not there (L6)", offset,
                      place);
      return;
    }
    const Key key = parts_.leaves.keys().view(key_word);
    seen.push_back(key);
    problems.expect(!(key < NodeBounds::view(node.low)) && node.covers(key),
                    "leaf {:#x}: the key in {} is out of the leaf's range (L3)", offset, place);
    problems.expect(Keys::hash16_of_word(key_word) == Keys::hash16(key),
                    "leaf {:#x}: {} has another key's hash", offset, place);
    const Found found = parts_.buffers.find(node, key, Keys::hash16(key));
    problems.expect(found.present() && found.value == value_word,
                    "leaf {:#x}: the filter denies the key in {} (M2)", offset, place);
  };
  for (const unsigned slot : node.slots()) {
    const Pair& pair = pair_at(*node.leaf(), slot);
    check_pair(pair.key, pair.value, fmt::format("slot {}", slot));
  }
  const Buffer* buffer = parts_.buffers.of(node);
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
    check_pair(buffer->key(i), buffer->value(i), fmt::format("buffered pair {}", i));
  std::sort(seen.begin(), seen.end());
  problems.expect(std::adjacent_find(seen.begin(), seen.end()) == seen.end(),
                  "leaf {:#x}: a key is there twice (L5)", offset);
}

/// Checks that the log says the same as the node's buffer: B1, B3 and L7.
template <class K>
void Checker<K>::check_buffer(const Node& node, CheckReport& report) const {
  Problems problems(report);
  const Buffer* buffer = parts_.buffers.of(node);
  if (buffer == nullptr) return;
  const pm::Offset offset = parts_.pool.offset(node.leaf());
  const wal::Owner owner = parts_.buffers.owner_of(node);
  problems.expect(buffer->node.load() == &node && buffer->owner.load() == owner,
                  "leaf {:#x}: its write buffer belongs to another leaf", offset);
  problems.expect((node.slots() & buffer->erased_slots()).empty(),
                  "leaf {:#x}: a pair is there and erased (B3)", offset);
  const Replay chain =
      replay(*parts_.buffers.log(), owner, buffer->head.load(), *node.leaf(), [&](Word word) {
        const Key key = parts_.leaves.keys().view(word);
        return !(key < NodeBounds::view(node.low)) && node.covers(key);
      });
  std::vector<std::pair<Word, Word>> logged = chain.pairs, held;
  for (unsigned i = 0; i < buffer->size(); ++i) held.emplace_back(buffer->key(i), buffer->value(i));
  std::sort(logged.begin(), logged.end());
  std::sort(held.begin(), held.end());
  problems.expect(logged == held && chain.erased == buffer->erased_slots(),
                  "leaf {:#x}: the log and the write buffer disagree (B1)", offset);
  problems.expect(!chain.stale, "leaf {:#x}: its chain should have ended (L7)", offset);
}

/// Checks one node and its link to the next: L1, L2, L6 and M1, M2.
template <class K>
void Checker<K>::check_node(const Node& node, CheckReport& report) const {
  Problems problems(report);
  const Leaf& leaf = *node.leaf();
  const pm::Offset offset = parts_.pool.offset(&leaf);
  const Node* next = parts_.nodes.next_of(node);
  problems.expect(leaf.magic == kLeafMagic, "leaf {:#x} has no magic number", offset);
  problems.expect(
      successor_of(leaf) == (next == nullptr ? pm::kNull : parts_.pool.offset(next->leaf())),
      "leaf {:#x}: DRAM and PM disagree on the next leaf (L2)", offset);
  problems.expect(slots_of(leaf) == parts_.buffers.taken_slots(node),
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
  if (!parts_.leaves.keys().sound(leaf.low)) {
    problems.expect(false, "leaf {:#x}: its low bound is not there (L6)", offset);
    return;
  }
  problems.expect(parts_.leaves.keys().view(leaf.low) == NodeBounds::view(node.low),
                  "leaf {:#x}: DRAM and PM disagree on the low bound (M1)", offset);
}

/// Checks the backup: L8, and its own invariants. Both it and the list ascend. The top layer is not
/// asked: it may lag behind.
template <class K>
void Checker<K>::check_backup(CheckReport& report) const {
  Problems problems(report);
  const CheckReport own = parts_.backup->tree().check();
  for (const std::string& problem : own.problems)
    problems.expect(false, "backup of the top layer: {}", problem);
  const Node* node = parts_.top.head();
  parts_.backup->tree().scan(Key{}, [&](Key low, std::uint64_t offset) {
    while (node != nullptr && NodeBounds::view(node->low) < low) node = parts_.nodes.next_of(*node);
    problems.expect(node != nullptr && NodeBounds::view(node->low) == low &&
                        parts_.pool.offset(node->leaf()) == offset,
                    "the backup leads to {:#x}, where the leaf that it means is not (L8)", offset);
    return true;
  });
}

/// Checks that the top layer leads to nodes of the list only, and to all of them but those that it
/// is known to lack (T1).
template <class K>
void Checker<K>::check_top(CheckReport& report) const {
  Problems problems(report);
  const Node* node = parts_.nodes.next_of(*parts_.top.head());
  std::uint64_t missing = 0;
  parts_.top.for_each([&](const Node* listed) {
    for (; node != nullptr && NodeBounds::view(node->low) < NodeBounds::view(listed->low);
         node = parts_.nodes.next_of(*node)) {
      ++missing;
    }
    problems.expect(node == listed, "the top layer leads to leaf {:#x}, which is not in the list",
                    parts_.pool.offset(listed->leaf()));
    if (node == listed) node = parts_.nodes.next_of(*node);
    return true;
  });
  for (; node != nullptr; node = parts_.nodes.next_of(*node)) ++missing;
  problems.expect(missing == parts_.top.missing(), "the top layer misses {} leaves (T1)", missing);
}

template <class K>
CheckReport Checker<K>::check() const {
  CheckReport report;
  Problems problems(report);
  problems.expect(parts_.pool.offset(parts_.top.head()->leaf()) == pm::load(root_.first),
                  "the root does not lead to the first leaf (L1)");
  if (parts_.buffers.log() != nullptr) parts_.buffers.log()->check(report);
  check_backup(report);
  check_top(report);
  problems.expect(parts_.top.head()->leaf()->low == 0, "the first leaf has a low bound (L1)");
  for (const Node* node = parts_.top.head(); node != nullptr; node = parts_.nodes.next_of(*node)) {
    check_node(*node, report);
    check_pairs(*node, report);
    check_buffer(*node, report);
    problems.expect(parts_.leaf_orders.sound_if_kept(*node),
                    "leaf {:#x}: the order that scans keep is wrong (O1)",
                    parts_.pool.offset(node->leaf()));
  }
  const auto counted = static_cast<std::uint64_t>(parts_.leaves.pairs());
  problems.expect(report.pairs == counted, "{} pairs are counted, {} are there", counted,
                  report.pairs);
  audit(parts_.pool.allocator(), report, "L6", [&](Owned& owned) { walk(owned); });
  return report;
}

template <class K>
void Checker<K>::walk(Owned& owned) const {
  const Node* node = parts_.top.head();
  const auto walk_buffered = [&](Leaf& leaf) {
    if (node == nullptr || node->leaf() != &leaf)
      throw_bad_leaf(parts_.pool, parts_.pool.offset(&leaf), "is not the next one in DRAM");
    const Buffer* const buffer = parts_.buffers.of(*node);
    walk_buffer<K>(parts_.leaves.values(), buffer, owned);
    const SlotSet slots = node->slots();
    node = parts_.nodes.next_of(*node);
    return slots;
  };
  std::uint64_t word = parts_.pool.offset(&root_);  // a copy does: only a drop changes it
  sptree::walk<K>(parts_.pool, word, parts_.leaves.values(), walk_buffered, owned);
}

template class Checker<std::uint64_t>;
template class Checker<std::string>;

}  // namespace perdix::detail::index::sptree
