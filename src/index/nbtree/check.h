// Verification of every invariant that layout.h (N1-N9) and leaf.h state. First all leaves become
// warm.
//
// No other thread changes the index meanwhile.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/codec.h"
#include "index/common/problems.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/owned.h"
#include "index/nbtree/upkeep.h"
#include "pm/access.h"

namespace perdix::detail::index::nbtree {

template <class K>
class TreeCheck {
 public:
  TreeCheck(pool::PoolCore& pool, const EntryProtocol<K>& entries, Upkeep<K>& upkeep)
      : pool_(pool), entries_(entries), keys_(entries.keys()), upkeep_(upkeep) {}

  CheckReport check() const;
  /// All leaves are warm, and the caller is in an epoch::Guard.
  void walk(Owned& owned) const;

 private:
  using Key = View<K>;
  using Keys = Codec<K>;
  using Layout = EntryLayout<K>;

  void check_signposts(CheckReport& report) const;
  void check_leaf(const Position<K>& at, CheckReport& report) const;
  void check_entries(const Position<K>& at, const Leaf<K>& leaf, CheckReport& report) const;

  pool::PoolCore& pool_;
  const EntryProtocol<K>& entries_;
  const Keys& keys_;
  Upkeep<K>& upkeep_;
};

/// Checks the entries of one leaf: N3, N4, N6, and what DRAM knows of them.
template <class K>
void TreeCheck<K>::check_entries(const Position<K>& at, const Leaf<K>& leaf,
                                 CheckReport& report) const {
  Problems problems(report);
  const pm::Offset offset = pool_.offset(&leaf.block());
  const std::uint64_t visible = leaf.visible_slots();
  const Key low = at.low();
  std::vector<Key> seen;
  for (unsigned i = 0; i < leaf.capacity(); ++i) {
    const Entry& entry = leaf.block().entries[i];
    const Word word = pm::load(entry.key), value = pm::load(entry.value);
    const bool shown = (visible >> i & 1) != 0;
    const bool free = leaf.is_free(i);
    problems.expect((word == kEmpty) == free, "block {:#x}: slot {} is free in DRAM or in PM only",
                    offset, i);
    problems.expect((Layout::state(word) != State::special) == shown,
                    "block {:#x}: DRAM and PM disagree on slot {}", offset, i);
    if (Layout::state(word) == State::special) continue;
    problems.expect(Layout::state(word) == State::live || leaf.closing(),
                    "block {:#x}: slot {} is frozen or pending, but the leaf is not closing",
                    offset, i);
    ++report.pairs;
    const Word key_word = Layout::key(word, low);
    if (!sound_pair(keys_, entries_.values(), key_word, value)) {
      problems.expect(false, "block {:#x}: slot {} refers to a string that is not there (N6)",
                      offset, i);
      continue;
    }
    const Key key = keys_.view(key_word);
    seen.push_back(key);
    problems.expect(!(key < low) && leaf.covers(key),
                    "block {:#x}: the key in slot {} is out of its range (N3)", offset, i);
    problems.expect(Keys::hash16_of_word(key_word) == Keys::hash16(key),
                    "block {:#x}: slot {} has another key's hash", offset, i);
    const Lookup found = entries_.find(leaf, key, Keys::hash16(key));
    problems.expect(found.slot == static_cast<int>(i),
                    "block {:#x}: the key in slot {} is not "
                    "found there",
                    offset, i);
  }
  problems.expect(upkeep_.scanner.order_sound(leaf, low),
                  "block {:#x}: the order that scans keep is wrong (O1)", offset);
  std::sort(seen.begin(), seen.end());
  problems.expect(std::adjacent_find(seen.begin(), seen.end()) == seen.end(),
                  "block {:#x}: a key is there twice (N4)", offset);
}

/// Checks one position, its leaf and its link to the next: N2, N3, N6.
template <class K>
void TreeCheck<K>::check_leaf(const Position<K>& at, CheckReport& report) const {
  Problems problems(report);
  const Leaf<K>& leaf = *at.leaf.load();
  const Anchor& anchor = at.anchor();
  const pm::Offset offset = pool_.offset(&leaf.block());
  problems.expect(pm::load(anchor.block) == offset, "block {:#x}: its anchor leads elsewhere (N2)",
                  offset);
  problems.expect(pm::load(leaf.block().meta) == Meta{leaf.capacity()}.pack(),
                  "block {:#x}: DRAM and PM disagree on its capacity", offset);
  // A leaf that a crash has left frozen is closing, and replaced when it is written to.
  problems.expect(leaf.smo() == nullptr && !leaf.to_be_absorbed(),
                  "block {:#x}: its replacement is not complete", offset);
  problems.expect(!leaf.has_unpersisted(), "block {:#x}: it has unpersisted changes", offset);
  const pm::Offset next = leaf.next() == nullptr ? pm::kNull : pool_.offset(&leaf.next()->anchor());
  problems.expect(pm::load(leaf.block().next) == next,
                  "block {:#x}: DRAM and PM disagree on what follows (N2)", offset);
  const Key low = at.low(), end = leaf.end();
  if (leaf.next() != nullptr) {
    problems.expect(low < end && end == leaf.next()->low(),
                    "block {:#x}: its successor's bound is not above its own (N2)", offset);
    problems.expect(Layout::region(low) == Layout::region(end) || Layout::begins_region(end),
                    "block {:#x}: its range crosses a quarter of all keys (N3)", offset);
  }
  if (!keys_.sound(pm::load(anchor.low))) {
    problems.expect(false, "block {:#x}: its low bound is not there (N6)", offset);
    return;
  }
  problems.expect(keys_.view(pm::load(anchor.low)) == low,
                  "block {:#x}: DRAM and PM disagree on the low bound", offset);
}

/// Checks the tree of the signposts by itself (N9).
template <class K>
void TreeCheck<K>::check_signposts(CheckReport& report) const {
  Problems problems(report);
  const auto* tree = upkeep_.signposts.tree();
  if (tree == nullptr) return;
  for (const std::string& problem : tree->check().problems)
    problems.expect(false, "signposts: {}", problem);
}

template <class K>
CheckReport TreeCheck<K>::check() const {
  upkeep_.resumer.require_resumed();
  upkeep_.signposts.finish();
  CheckReport report;
  Problems problems(report);
  check_signposts(report);
  const epoch::Guard guard;
  const unsigned occupied = upkeep_.ledger.occupied(Ledger::Purpose::operation) +
                            upkeep_.ledger.occupied(Ledger::Purpose::modification);
  problems.expect(occupied == 0, "{} stripes of the ledger can't be used (N7)", occupied);
  const Position<K>* const first = upkeep_.positions.first();
  problems.expect(pm::load(upkeep_.root.first) == pool_.offset(&first->anchor()),
                  "the root does not lead to the first anchor (N1)");
  problems.expect(pm::load(first->anchor().low) == 0, "the first anchor has a low bound (N1)");
  for (const Position<K>* at = first; at != nullptr; at = at->leaf.load()->next()) {
    if (at->leaf.load() == nullptr) {
      problems.expect(false, "the list leads to a leaf that was joined with another one");
      break;
    }
    check_leaf(*at, report);
    check_entries(*at, *at->leaf.load(), report);
    const auto [found, leaf] = upkeep_.top.floor(at->low());
    problems.expect(found == at, "the layers above miss block {:#x}",
                    pool_.offset(&at->leaf.load()->block()));
    problems.expect(leaf == nullptr || leaf == at->leaf.load(),
                    "the layers above lead to a leaf that block {:#x} has replaced",
                    pool_.offset(&at->leaf.load()->block()));
  }
  const auto counted = static_cast<std::uint64_t>(upkeep_.counts.pairs.sum());
  problems.expect(report.pairs == counted, "{} pairs are counted, {} are there", counted,
                  report.pairs);
  audit(pool_.allocator(), report, "N6", [&](Owned& owned) { walk(owned); });
  return report;
}

template <class K>
void TreeCheck<K>::walk(Owned& owned) const {
  std::uint64_t word = pool_.offset(&upkeep_.root);  // a copy does: only a drop changes it
  nbtree::walk<K>(pool_, word, entries_.values(), upkeep_.ledger, owned);
}

}  // namespace perdix::detail::index::nbtree
