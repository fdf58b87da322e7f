#include "index/nbtree/cold_leaves.h"

#include <array>
#include <bit>

#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

template <class K>
Position<K>* ColdLeaves<K>::approach(Position<K>& from, Key key, bool strictly_below) {
  const auto reached = [&](Key low) { return strictly_below ? low < key : !(key < low); };
  for (Position<K>* at = &from;;) {
    Leaf<K>* cold = at->leaf.load(std::memory_order_seq_cst);
    if (!is_cold(cold)) return at;
    Position<K>* next = next_of_cold(cold);
    if (next != nullptr && reached(next->low())) {
      at = next;
      continue;
    }
    Anchor* nearer = by_signpost(*at, key, strictly_below);
    if (nearer == nullptr) {
      const pm::Offset offset = pm::load(checked_block(pool(), at->anchor()).next);
      if (offset == offset_of(next)) return at;
      nearer = successor(*at, cold, offset);
      if (nearer == nullptr) continue;  // it is cold no more, or another position is known
      if (!reached(keys_.view(pm::load(nearer->low)))) return at;
    }
    make_known(*at, cold, *nearer);
  }
}

/// The anchor that follows a position in the list, where a cold range begins. Null if the position
/// has changed meanwhile. Throws corrupt if it lies elsewhere, so that a damaged list cannot lead
/// round in a circle.
template <class K>
Anchor* ColdLeaves<K>::successor(const Position<K>& at, Leaf<K>* cold, pm::Offset offset) const {
  const Position<K>* next = next_of_cold(cold);
  const bool there = offset != pm::kNull;
  Anchor* const anchor = there ? &checked_anchor(pool(), offset) : nullptr;
  const auto between = [&](Key low) {
    return at.low() < low && (next == nullptr || low < next->low());
  };
  const bool sound =
      there && pm::load(anchor->block) != pm::kNull && between(keys_.view(pm::load(anchor->low)));
  if (at.leaf.load(std::memory_order_seq_cst) != cold) return nullptr;
  if (!sound) pool::throw_corrupt(pool(), "a successor", pool().offset(&at.anchor()));
  return anchor;
}

/// An anchor in the cold range behind a position, not beyond the key, by the last signpost that is
/// believed. Null if there is none.
template <class K>
Anchor* ColdLeaves<K>::by_signpost(const Position<K>& at, Key key, bool strictly_below) const {
  auto signpost = signposts_.last(key, strictly_below);
  for (; signpost && at.low() < Key(signpost->first);
       signpost = signposts_.last(signpost->first, true)) {
    const auto& [low, offset] = *signpost;
    const Anchor* const place = ledger_.place_at(offset);
    if (place == nullptr) continue;
    if (ledger_.unresolved(Ledger::Purpose::modification).names(offset | kAnchorTag)) continue;
    // The place may belong to another leaf, and the blob of its bound may be freed while it is
    // read. So it is looked at before and after.
    if (pm::load(place->block) == pm::kNull) continue;
    const Word word = pm::load(place->low);
    if (!keys_.sound(word) || keys_.view(word) != Key(low)) continue;
    if (pm::load(place->block) != pm::kNull && pm::load(place->low) == word)
      return pool().template at<Anchor>(offset);
  }
  return nullptr;
}

/// Puts the position of an anchor behind a cold one, unless another thread has changed that.
template <class K>
void ColdLeaves<K>::make_known(Position<K>& at, Leaf<K>* cold, Anchor& anchor) {
  Request<K>* const request = writer_.prepare();
  Position<K>* known = nullptr;
  try {
    known = memory_.new_position(anchor, keys_.view(pm::load(anchor.low)),
                                 cold_before(next_of_cold(cold)));
  } catch (...) {
    writer_.take_back(request);
    throw;
  }
  pm::on_step("nbtree: make a position known");
  if (at.leaf.compare_exchange_strong(cold, cold_before(known)))
    return writer_.submit(request, *known, kAdd);
  pm::on_step("nbtree: another position became known meanwhile");
  memory_.release(known);
  writer_.take_back(request);
}

/// Makes a leaf warm. Null if it has been joined with its neighbour in the meantime. The caller
/// holds a guard.
template <class K>
Leaf<K>* ColdLeaves<K>::warm(Position<K>& at, Leaf<K>* cold) {
  for (; is_cold(cold); cold = at.leaf.load(std::memory_order_seq_cst)) {
    Position<K>* const next = next_of_cold(cold);
    Block& block = checked_block(pool(), at.anchor());
    if (const pm::Offset following = pm::load(block.next); following != offset_of(next)) {
      Anchor* const anchor = successor(at, cold, following);
      if (anchor != nullptr) make_known(at, cold, *anchor);
      continue;
    }
    prefetch_cold(next);
    Leaf<K>* const leaf = memory_.new_leaf(pool().offset(&block), capacity_of(block), next);
    Leaf<K>* there = nullptr;
    try {
      there = warm_as(at, *leaf);
    } catch (...) {
      memory_.release(leaf);
      throw;
    }
    if (there != leaf) memory_.release(leaf);
    return there;
  }
  return cold;
}

/// Makes this the leaf of a position where it is cold, if it comes first. Returns the one that did.
template <class K>
Leaf<K>* ColdLeaves<K>::warm_as(Position<K>& at, Leaf<K>& leaf) {
  Block& block = leaf.block();
  std::array<Word, kCapacity> copy;
  const std::span<Word> words(copy.data(), leaf.capacity());
  for (unsigned i = 0; i < words.size(); ++i) words[i] = pm::load(block.entries[i].key);
  // If it is still cold, the words are those of a cold leaf.
  Leaf<K>* there = at.leaf.load(std::memory_order_seq_cst);
  if (!is_cold(there)) {
    pm::on_step("nbtree: a leaf became warm meanwhile");
    return there;
  }
  const Key low = at.low();
  const BlockScan found = scan_block<K>(keys_, low, words);
  decide_in_flight(block, words, found);
  UnresolvedBlocks& modified = ledger_.unresolved(Ledger::Purpose::modification);
  if (!modified.empty())
    modified.template reached_leaf<K>(pool().offset(&at.anchor()), pm::load(at.anchor().low),
                                      pool().offset(&block));
  std::int64_t blob_bytes = 0;
  UnresolvedBlocks& unresolved = ledger_.unresolved(Ledger::Purpose::operation);
  for (std::uint64_t left = entries_.all_inline() ? 0 : found.counts; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    const Word key = Layout::key(words[i], low), value = pm::load(block.entries[i].value);
    blob_bytes += keys_.footprint(key) + codec_.footprint(value);
    if (!unresolved.empty()) unresolved.template reached_entry<K>(codec_, key, value);
  }
  for (unsigned i = 0; i < words.size(); ++i) leaf.set_fingerprint(i, found.fingerprints[i]);
  leaf.set_visible(found.counts, found.frozen != 0);
  if (found.frozen != 0) pm::on_step("nbtree: a cold leaf is frozen");
  pm::on_step("nbtree: make a leaf warm");
  if (!at.leaf.compare_exchange_strong(there, &leaf)) return there;
  counts_.pairs.add(std::popcount(found.counts));
  counts_.add_leaf(leaf, +1);
  counts_.blob_bytes.add(blob_bytes + keys_.footprint(pm::load(at.anchor().low)));
  return &leaf;
}

/// Kills entries that lost (N4), durably, and makes those live that were pending.
template <class K>
void ColdLeaves<K>::decide_in_flight(Block& block, std::span<const Word> words,
                                     const BlockScan& found) {
  // An entry that is dead may have been killed just now by another thread that makes this leaf
  // warm, and not be durable as yet.
  const std::uint64_t unpersisted = deciding_.load() == 0 ? 0 : found.dead;
  if ((found.lost | unpersisted) != 0) {
    pm::on_step("nbtree: kill entries that lost");
    deciding_.fetch_add(1);
    for (std::uint64_t left = found.lost | unpersisted; left != 0; left &= left - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(left));
      Entry& entry = block.entries[i];
      Word word = words[i];
      if ((found.lost >> i & 1) != 0) pm().compare_exchange(entry.key, word, Layout::kDead);
      pm().flush(&entry.key, sizeof entry.key);  // fenced below
    }
    pm::on_step("nbtree: the death of an entry that lost may not be durable");
    pm().fence();  // or they would come back when the first one is erased
    deciding_.fetch_sub(1);
  }
  for (std::uint64_t left = found.pending; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(left));
    Word word = words[i];
    // Not durable: pending and live are the same after a crash.
    pm::on_step("nbtree: decide a pending entry of a cold leaf");
    pm().compare_exchange(block.entries[i].key, word, with_state<K>(word, State::live));
  }
}

/// Asks for a block that is needed next, and for the anchor of the one after that.
template <class K>
void ColdLeaves<K>::prefetch_cold(const Position<K>* at) const {
  if (at == nullptr) return;
  const Leaf<K>* leaf = at->leaf.load(std::memory_order_acquire);  // it may lead to a new position
  if (!is_cold(leaf)) return;
  const pm::Offset offset = pm::load(at->anchor().block);
  if (!pool().contains(offset, block_bytes(kSmallCapacity))) return;  // found out when it is used
  const char* block = pool().template at<char>(offset);
  for (std::size_t i = 0; i < block_bytes(kSmallCapacity); i += pm::kLineSize)
    __builtin_prefetch(block + i);
  if (const Position<K>* next = next_of_cold(leaf)) __builtin_prefetch(&next->anchor());
}

template class ColdLeaves<std::uint64_t>;
template class ColdLeaves<std::string>;

}  // namespace perdix::detail::index::nbtree
