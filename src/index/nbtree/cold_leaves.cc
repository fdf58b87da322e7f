#include "index/nbtree/cold_leaves.h"

#include <array>
#include <bit>

#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

/// Makes a leaf warm that was cold before that position. Null if it has been joined with its
/// neighbour in the meantime. The caller holds a guard.
template <class K>
Leaf<K>* ColdLeaves<K>::warm(Position<K>& at, Position<K>* next) {
  Block& block = checked_block(pool(), at.anchor());
  const pm::Offset following = next == nullptr ? pm::kNull : pool().offset(&next->anchor());
  if (pm::load(block.next) != following && is_cold(at.leaf.load()))
    pool::throw_corrupt(pool(), "a successor", pool().offset(&block));
  prefetch_cold(next);
  Leaf<K>* leaf = memory_.new_leaf(pool().offset(&block), capacity_of(block), next);
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
  const Leaf<K>* leaf = at->leaf.load(std::memory_order_relaxed);
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
