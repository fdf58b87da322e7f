#include "index/nbtree/entry_protocol.h"

#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

template <class K>
void EntryProtocol<K>::persist_entries(const Leaf<K>& leaf, std::uint64_t slots) const {
  for (; slots != 0; slots &= slots - 1) {
    const Entry& entry = leaf.block().entries[__builtin_ctzll(slots)];
    pm::on_step("nbtree: persist what another thread may not have");
    pm().flush(&entry, sizeof entry);  // fenced below
  }
  pm().fence();  // before any thread acts on what they say
}

/// Makes an entry visible that is live, or was. A thread that has erased it meanwhile may have
/// hidden it before: then hides it again.
template <class K>
void EntryProtocol<K>::show(Leaf<K>& leaf, unsigned slot) const {
  leaf.show(slot);
  const Entry& entry = leaf.block().entries[slot];
  if (Layout::state(pm::load(entry.key)) != State::special) return;
  pm::on_step("nbtree: an entry was erased before it was shown");
  pm().persist(&entry.key, sizeof entry.key);  // before it is hidden (leaf.h, 2)
  leaf.hide(slot);
}

/// Makes sure that no slot before this one holds the key or ever will. False if one does.
template <class K>
bool EntryProtocol<K>::free_before(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) const {
  const std::uint64_t before = (std::uint64_t{1} << slot) - 1;
  for (std::uint64_t left = leaf.taken_for(fingerprint_of(hash)) & before; left != 0;
       left &= left - 1) {
    const unsigned other = static_cast<unsigned>(__builtin_ctzll(left));
    Entry& entry = leaf.block().entries[other];
    for (Word word = pm::load(entry.key);;) {
      if (word == kEmpty) {
        // Not durable: the slot's owner can't write it any more, and it is empty or dead.
        if (pm().compare_exchange(entry.key, word, Layout::kDead)) break;
        pm::on_step("nbtree: the owner of a slot before was faster");
        continue;
      }
      const State state = Layout::state(word);
      if (state == State::special) {
        persist_unpersisted(leaf, left & -left);  // or it might come back, and count before ours
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

template <class K>
bool EntryProtocol<K>::decide(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) const {
  Entry& entry = leaf.block().entries[slot];
  const bool wins = free_before(leaf, slot, key, hash);
  Word word = pm::load(entry.key);
  if (Layout::state(word) == State::pending) {
    // Not persisted if it wins: pending and live are the same after a crash.
    if (!wins) begin_unpersisted(leaf);
    const bool done = pm().compare_exchange(
        entry.key, word, wins ? with_state<K>(word, State::live) : Layout::kDead);
    if (!wins) {
      if (done) pm().persist(&entry.key, sizeof entry.key);  // else it might come back
      end_unpersisted(leaf);
    }
    if (done) {
      if (wins) show(leaf, slot);
      return wins;
    }
  }
  if (Layout::state(word) == State::frozen) return wins_when_frozen(leaf, slot, key, hash);
  // Somebody else has decided that it wins, and may even have erased it.
  pm::on_step("nbtree: another has decided an insert");
  if (Layout::state(word) == State::live) show(leaf, slot);
  return true;
}

/// Whether an entry wins that was frozen before it was decided: replacing the leaf keeps the first
/// of each key. A crash may find the old block, and before it the entry that this one
/// succeeds, unless the death of that is durable by now.
template <class K>
bool EntryProtocol<K>::wins_when_frozen(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) const {
  pm::on_step("nbtree: an insert is frozen undecided");
  freeze(leaf);
  const std::uint64_t before = (std::uint64_t{1} << slot) - 1;
  std::uint64_t dead = 0;
  for (std::uint64_t left = leaf.taken_for(fingerprint_of(hash)) & before; left != 0;
       left &= left - 1) {
    const Word word = pm::load(leaf.block().entries[__builtin_ctzll(left)].key);
    if (Layout::state(word) == State::special) {
      dead |= left & -left;
    } else if (matches(word, key, hash)) {
      pm::on_step("nbtree: a frozen insert has lost");
      return false;
    }
  }
  pm::on_step("nbtree: a frozen insert has won");
  persist_unpersisted(leaf, dead);
  leaf.show(slot);
  return true;
}

template <class K>
void EntryProtocol<K>::freeze(Leaf<K>& leaf) const {
  leaf.close();
  for (unsigned i = 0; i < leaf.capacity(); ++i) {
    std::uint64_t& key = leaf.block().entries[i].key;
    for (Word word = pm::load(key);;) {
      const State state = Layout::state(word);
      if (state == State::frozen || (state == State::special && word != kEmpty)) break;
      const Word closed =
          state == State::special ? Layout::kDead : with_state<K>(word, State::frozen);
      // Not persisted: what counts after a crash is the same.
      if (pm().compare_exchange(key, word, closed)) break;
      pm::on_step("nbtree: an entry changes before it is frozen");
    }
  }
}

template class EntryProtocol<std::uint64_t>;
template class EntryProtocol<std::string>;

}  // namespace perdix::detail::index::nbtree
