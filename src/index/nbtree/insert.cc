// How an insert comes into a leaf (nbtree.txt III-B, "log-structured insert"), and which of several
// inserts of the same new key wins: the one in the first slot.
//
// An insert is decided by one step of its key word, pending -> live or pending -> dead. It may
// become live once no slot before it can hold its key any more: a slot before it that was taken for
// a key with the same fingerprint holds another key, is dead, or is made so while it is still
// empty. A pending entry of the same key is decided first, for its owner. So nobody waits for the
// owner of a slot, and after a crash the first entry of a key is the one that counted.
#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {

/// Adds a key that was not there, with the cargo's words.
template <class K>
auto WordTree<K>::add(const Place& place, Key key, Hash16 hash, Cargo& cargo) -> Fate {
  Leaf<K>& leaf = *place.leaf;
  unsigned slot = 0;
  if (!leaf.take(fingerprint_of(hash), slot)) {
    reform(place, &key);
    return Fate::retry;
  }
  Entry& entry = leaf.block().entries[slot];
  pm::on_step("nbtree: a slot is taken");
  // The value comes first: in one line, the order of stores is enough.
  pm().store(entry.value, cargo.value);
  Word word = kEmpty;
  if (!pm().compare_exchange(entry.key, word, Code::pack(cargo.key, State::pending))) {
    pm::on_step("nbtree: an insert's slot was closed");
    if (leaf.closing()) reform(place, &key);
    return Fate::retry;  // a faster one has closed the slot
  }
  pm::on_step("nbtree: an insert may not be durable");
  pm().persist(&entry, sizeof entry);  // before anybody can see the key
  pm::on_step("nbtree: an insert is pending");
  const Fate fate = decide(place, slot, key, hash);
  if (!all_inline()) {
    if (fate == Fate::won) {
      count_blobs(cargo.key, cargo.value, +1);
      cargo.hold->linked();
    } else {
      leave_behind(place, slot, cargo);
    }
  }
  return fate;
}

/// Frees the blobs of an entry that lost.
template <class K>
void WordTree<K>::leave_behind(const Place& place, unsigned slot, Cargo& cargo) {
  if (Code::state(pm::load(place.leaf->block().entries[slot].key)) == State::frozen) {
    pm::on_step("nbtree: an insert that lost is frozen");
    try {
      reform(place, nullptr);  // it still refers to the blobs; afterwards it counts for nothing
    } catch (...) {
      pm::on_step("nbtree: abandon a stripe");
      cargo.hold->abandon();
      throw;
    }
  }
  cargo.hold->unclaim();
  cargo.has_key = cargo.has_value = false;
}

/// Makes an entry visible that is live, or was. If somebody has erased it, he may have hidden it
/// before.
template <class K>
void WordTree<K>::show(Leaf<K>& leaf, unsigned slot) {
  leaf.show(slot);
  const Entry& entry = leaf.block().entries[slot];
  if (Code::state(pm::load(entry.key)) != State::special) return;
  pm::on_step("nbtree: an entry was erased before it was shown");
  pm().persist(&entry.key, sizeof entry.key);  // before it is hidden (leaf.h, 2)
  leaf.hide(slot);
}

/// Makes sure that no slot before this one holds the key or ever will. False if one does.
template <class K>
bool WordTree<K>::free_before(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) {
  const std::uint64_t before = (std::uint64_t{1} << slot) - 1;
  for (std::uint64_t left = leaf.taken_for(fingerprint_of(hash)) & before; left != 0;
       left &= left - 1) {
    const unsigned other = static_cast<unsigned>(__builtin_ctzll(left));
    Entry& entry = leaf.block().entries[other];
    for (Word word = pm::load(entry.key);;) {
      if (word == kEmpty) {
        // Not durable: whoever took the slot can't write it any more, and it is empty or dead.
        if (pm().compare_exchange(entry.key, word, Code::kDead)) break;
        pm::on_step("nbtree: the owner of a slot before was faster");
        continue;
      }
      const State state = Code::state(word);
      if (state == State::special) {
        settle_doubts(leaf, left & -left);  // or it might come back, and count before ours
        break;
      }
      if (!matches(word, key, hash)) break;
      if (state == State::pending) {
        // All before it is settled: it is the first, and wins.
        pm::on_step("nbtree: decide an insert for its owner");
        pm().persist(&entry, sizeof entry);
        if (!pm().compare_exchange(entry.key, word, with_state<K>(word, State::live))) continue;
      }
      if (state != State::frozen) show(leaf, other);
      return false;
    }
  }
  return true;
}

/// Decides about a pending entry, which is durable.
template <class K>
auto WordTree<K>::decide(const Place& place, unsigned slot, Key key, Hash16 hash) -> Fate {
  Leaf<K>& leaf = *place.leaf;
  Entry& entry = leaf.block().entries[slot];
  const bool wins = free_before(leaf, slot, key, hash);
  Word word = pm::load(entry.key);
  if (Code::state(word) == State::pending) {
    // Not persisted if it wins: pending and live are the same after a crash.
    if (!wins) begin_doubt(leaf);
    const bool done = pm().compare_exchange(entry.key, word,
                                            wins ? with_state<K>(word, State::live) : Code::kDead);
    if (!wins) {
      if (done) pm().persist(&entry.key, sizeof entry.key);  // else it might come back
      end_doubt(leaf);
    }
    if (done) {
      if (wins) show(leaf, slot);
      return wins ? Fate::won : Fate::lost;
    }
  }
  if (Code::state(word) == State::frozen) return fate_when_frozen(place, slot, key, hash);
  // Somebody else has decided that it wins, and may even have erased it.
  pm::on_step("nbtree: another has decided an insert");
  if (Code::state(word) == State::live) show(leaf, slot);
  return Fate::won;
}

/// What became of an entry that was frozen before it was decided: replacing the leaf keeps the
/// first of each key. A crash may find the old block, and before it the entry that this one
/// succeeds, unless the death of that is durable by now.
template <class K>
auto WordTree<K>::fate_when_frozen(const Place& place, unsigned slot, Key key, Hash16 hash)
    -> Fate {
  Leaf<K>& leaf = *place.leaf;
  pm::on_step("nbtree: an insert is frozen undecided");
  freeze(leaf);
  const std::uint64_t before = (std::uint64_t{1} << slot) - 1;
  std::uint64_t dead = 0;
  for (std::uint64_t left = leaf.taken_for(fingerprint_of(hash)) & before; left != 0;
       left &= left - 1) {
    const Word word = pm::load(leaf.block().entries[__builtin_ctzll(left)].key);
    if (Code::state(word) == State::special) {
      dead |= left & -left;
    } else if (matches(word, key, hash)) {
      pm::on_step("nbtree: a frozen insert has lost");
      return Fate::lost;
    }
  }
  pm::on_step("nbtree: a frozen insert has won");
  settle_doubts(leaf, dead);
  leaf.show(slot);
  return Fate::won;
}

template auto WordTree<std::uint64_t>::add(const Place&, Key, Hash16, Cargo&) -> Fate;
template auto WordTree<std::string>::add(const Place&, Key, Hash16, Cargo&) -> Fate;

}  // namespace perdix::index::nbtree
