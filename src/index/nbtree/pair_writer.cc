#include "index/nbtree/pair_writer.h"

#include <array>

namespace perdix::detail::index::nbtree {

template <class K>
bool PairWriter<K>::add(const LeafRef<K>& place, Key key, Hash16 hash, NewValue value,
                        NewPair& pair) {
  if (!entries_.all_inline()) {
    load_strings(pair, &key, hash, value);
  } else if constexpr (Keys::kInline) {
    pair.key = key;
    pair.value = value.word();
  }
  Leaf<K>& leaf = *place.leaf;
  unsigned slot = 0;
  if (!leaf.take(fingerprint_of(hash), slot)) {
    structure_.replace_leaf(place, &key);
    return false;
  }
  Entry& entry = leaf.block().entries[slot];
  pm::on_step("nbtree: a slot is taken");
  // The value comes first: in one line, the order of stores is enough.
  pm().store(entry.value, pair.value);
  Word word = kEmpty;
  if (!pm().compare_exchange(entry.key, word, Layout::pack(pair.key, State::pending))) {
    pm::on_step("nbtree: an insert's slot was closed");
    if (leaf.closing()) structure_.replace_leaf(place, &key);
    return false;  // another thread has closed the slot
  }
  pm::on_step("nbtree: an insert may not be durable");
  pm().persist(&entry, sizeof entry);  // before another thread can see the key
  pm::on_step("nbtree: an insert is pending");
  const bool wins = entries_.decide(leaf, slot, key, hash);
  if (!entries_.all_inline()) {
    if (wins) {
      counts_.add_blobs(entries_, pair.key, pair.value, +1);
      pair.lease->linked();
    } else {
      free_lost_blobs(place, slot, pair);
    }
  }
  if (wins) {
    memory_.slot_shown(leaf, slot);
    counts_.pairs.add(1);
  }
  return wins;
}

// What strings need is not inlined: callers would save registers and make room for it also where
// there are none.

/// Makes the words of a value and, if `key` is not null, of a key, where one of the two is a
/// string: allocates and claims the blobs.
template <class K>
[[gnu::noinline]] void PairWriter<K>::load_strings(NewPair& pair, const Key* key, Hash16 hash,
                                                   NewValue value) {
  if (!pair.lease) pair.lease.emplace(ledger_, Ledger::Purpose::operation);
  if (pair.has_value && pair.has_key == (key != nullptr)) return;
  pair.lease->unclaim();
  pair.has_value = pair.has_key = false;
  pair.lease->claim([&](alloc::Session& session) {
    std::array<pm::Offset, 4> blocks{};
    unsigned count = 0;
    if (key != nullptr) {
      const PairWords words = write_pair(session, entries_.keys(), values(), *key, hash, value);
      pair.key = words.key;
      pair.value = words.value;
      if (Keys::blobs(pair.key) != 0) blocks[count++] = blob_offset(pair.key);
    } else {
      pair.value = values().write(session, value);
    }
    if (values().blobs(pair.value) != 0) blocks[count++] = blob_offset(pair.value);
    return blocks;
  });
  pair.has_value = true;
  pair.has_key = key != nullptr;
}

/// Frees the blobs of an entry whose insert lost or must be repeated.
template <class K>
[[gnu::noinline]] void PairWriter<K>::free_lost_blobs(const LeafRef<K>& place, unsigned slot,
                                                      NewPair& pair) {
  if (Layout::state(pm::load(place.leaf->block().entries[slot].key)) == State::frozen) {
    pm::on_step("nbtree: an insert that lost is frozen");
    try {
      // The entry refers to the blobs until its block is replaced.
      structure_.replace_leaf(place, nullptr);
    } catch (...) {
      pm::on_step("nbtree: abandon a stripe");
      pair.lease->abandon();
      throw;
    }
  }
  pair.lease->unclaim();
  pair.has_key = pair.has_value = false;
}

/// Where a fence is a sync: names the blob that an update is likely to replace before the new blob
/// is claimed, so that one sync makes both durable.
template <class K>
void PairWriter<K>::name_replaced_blob(NewPair& pair, Word value) {
  if (!pm().commits_as_one()) return;
  if (!pair.lease) pair.lease.emplace(ledger_, Ledger::Purpose::operation);
  pair.lease->make_room(1);
  pair.lease->name(0, blob_of(value));
}

template <class K>
[[gnu::noinline]] bool PairWriter<K>::replace_string(const Target& target, NewValue value,
                                                     NewPair& pair, pm::WordPair& old) {
  name_replaced_blob(pair, target.found.value);
  load_strings(pair, nullptr, {}, value);
  pair.lease->make_room(1);
  const auto name_old_value = [&](const pm::WordPair& now) {
    pair.lease->name(0, blob_of(now.second));
    pm().fence();  // the name is durable before the blob can be unlinked
  };
  if (!exchange_value(target, pair.value, old, name_old_value)) {
    pair.lease->unname();
    return false;
  }
  counts_.add_blobs(entries_, 0, old.second, -1);
  counts_.add_blobs(entries_, 0, pair.value, +1);
  pair.lease->linked();
  pair.lease->unlinked();
  return true;
}

template <class K>
[[gnu::noinline]] bool PairWriter<K>::remove_strings(const Target& target, unsigned& pairs,
                                                     pm::WordPair& old) {
  StripeLease lease(ledger_, Ledger::Purpose::operation);
  lease.make_room(2);
  const auto name_pair = [&](const pm::WordPair& now) {
    const Word key = now.first & Layout::kKeyBits;
    lease.name(0, Keys::blobs(key) == 0 ? pm::kNull : blob_offset(key));
    lease.name(1, blob_of(now.second));
    pm().fence();  // the names are durable before the blobs can be unlinked
  };
  if (!exchange_key(target, pairs, old, name_pair)) return false;
  counts_.add_blobs(entries_, old.first, old.second, -1);
  lease.unlinked();
  return true;
}

template class PairWriter<std::uint64_t>;
template class PairWriter<std::string>;

}  // namespace perdix::detail::index::nbtree
