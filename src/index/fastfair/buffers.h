// Write buffers of leaves (Zhao et al. 2024, sections 3.1 and 3.2): new pairs of a leaf go into its
// buffer and the log, a line each near the one before, and reach the leaf in batches.
//
// The record is the commit. New keys are buffered, and their changes while they are in the buffer.
// Pairs of the leaf change in place. So a key is in the buffer or in the leaf, not in both:
//   B1. The chain of a buffer says what the buffer holds, and its owner is the leaf's number (F7).
//   B2. The keys of a buffer are in the leaf's range, and none of them is in the leaf.
//   B3. The chain has room for as many more records, besides its END, as the buffer has pairs. So
//       each can be erased, whatever else is full.
//   B4. A chain begins with a note of the leaf's low bound. While the log may have chains from
//       before the restart, no leaf's low bound is freed, so the note of each chain can be read.
//
// A merge moves all of a buffer, and then ends the chain:
//   in place      where the leaf has room: pair by pair, each by FAST. A crash in between leaves
//                 pairs in both, and the merge is completed when the leaf is used again.
//   out of place  into a new leaf, or two: anew.h. A crash before the END leaves a chain whose
//                 owner is no leaf any more.
//
// After a restart, a leaf's chain is adopted before anything else is done with the leaf; a thread
// in the background adopts those of all others.
#pragma once

#include <algorithm>
#include <limits>

#include "index/common/retry.h"
#include "index/fastfair/fastfair.h"
#include "pool/checked.h"

namespace perdix::detail::index::fastfair {

/// What the upkeep of the log requires of a tree (write_buffers.h).
template <class K>
struct WordTree<K>::Upkeep {
  const WordTree& tree;

  void clean(wal::Chain& chain, bool may_split) {
    tree.clean(static_cast<Buffer&>(chain), may_split);
  }
  void resume_some(unsigned leaves) { tree.resume_some(leaves); }
  void log_was_shortened() {}
  std::int64_t pairs() const { return tree.added_.sum() - tree.removed_.sum(); }
};

// --- Lookups: they count under the latch, or if its version is validated ---

/// The number of the key's pair; -1 if it has none.
template <class K>
int WordTree<K>::find_buffered(const Buffer& buffer, Key key) const {
  const Hash16 hash = Keys::hash16(key);
  return buffer.find(hash, [&](unsigned i) { return keys_.equal(buffer.key(i), key, hash); });
}

/// What the buffer of a leaf has for the key. Returns false if the leaf must be looked for again:
/// it has changed, or its chain had to be adopted. If it returns true, a value counts; that there
/// is none counts only if the caller then finds the leaf valid.
template <class K>
[[gnu::noinline]] bool WordTree<K>::look_into_buffer(const Seen& leaf, Key key,
                                                     std::optional<Word>& value) const {
  if (!ready(leaf)) return false;
  const Buffer* buffer = buffer_of(*leaf.node);
  const int i = buffer == nullptr ? -1 : find_buffered(*buffer, key);
  if (i < 0) return true;
  value = buffer->value(static_cast<unsigned>(i));
  return leaf.valid();
}

/// The pairs of a leaf's buffer with key >= from.
template <class K>
void WordTree<K>::sort_buffered(const Node& leaf, Key from, Run& run) const {
  const Buffer* buffer = buffer_of(leaf);
  run.size = 0;
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i) {
    const Entry entry{buffer->key(i), buffer->value(i)};
    if (!(keys_.view(entry.key) < from)) run.add(entry);
  }
  std::sort(run.entries.begin(), run.entries.begin() + run.size,
            [&](const Entry& a, const Entry& b) { return keys_.view(a.key) < keys_.view(b.key); });
}

/// collect() of a tree with buffers: the pairs of leaf and buffer in one order.
template <class K>
template <class Add>
[[gnu::noinline]] bool WordTree<K>::collect_with_buffer(const Seen& leaf, Key from,
                                                        std::size_t limit, Seen& following,
                                                        Add add) const {
  if (!ready(leaf)) return false;
  const Node& node = *leaf.node;
  Run buffered;
  sort_buffered(node, from, buffered);
  const unsigned count = meta_of(node).count;
  std::size_t added = 0;
  unsigned next = 0;
  const auto add_below = [&](const Key* bound) {
    for (; next < buffered.size && added <= limit; ++next, ++added) {
      const Entry& entry = buffered.entries[next];
      if (bound != nullptr && !(keys_.view(entry.key) < *bound)) return;
      add(entry);
    }
  };
  for (unsigned i = rank(node, {from, true}); i < count && added <= limit; ++i) {
    const Entry entry = load_entry(node, i);
    if (i + 1 < count && pm::load(node.entries[i + 1].key) == entry.key) continue;  // F3
    const Key key = keys_.view(entry.key);
    add_below(&key);
    if (added > limit) break;
    add(entry);
    ++added;
  }
  add_below(nullptr);
  if (added > limit) return leaf.valid();
  Node* right = after(node);
  following = right == nullptr ? Seen{} : look(*right);
  return leaf.valid();
}

// --- Changes of the buffer of a locked leaf ---

/// write_leaf() of a tree with buffers. Returns nullopt if the leaf must be looked for again.
template <class K>
[[gnu::noinline]] std::optional<bool> WordTree<K>::write_buffered(Locked& leaf, const Write& write,
                                                                  Node*& stray) {
  const auto& [key, value, mode, expected] = write;
  Node& node = *leaf.node;
  Buffer* const buffer = buffer_of(node);
  if (const int found = buffer == nullptr ? -1 : find_buffered(*buffer, key); found >= 0) {
    const auto i = static_cast<unsigned>(found);
    if (mode == Mode::insert || !value_is(buffer->value(i), expected)) return false;
    if (!buffers_->can_grow(*buffer)) {
      merge(leaf, *buffer);
      return std::nullopt;
    }
    records_.replace(log(), *buffer, i, value);
    return true;
  }
  const bool is_new =
      mode != Mode::update && !holds(node, rank_from_right(node, {key}), key, Keys::hash16(key));
  if (is_new) {
    switch (add_buffered(leaf, key, value)) {
      case Buffered::added: return true;
      case Buffered::merged: return std::nullopt;
      case Buffered::refused: break;
    }
    // A split would divide the pairs of the buffer.
    if (Buffer* const kept = buffer_of(node); kept != nullptr && !kept->empty_chain()) {
      if (meta_of(node).count >= fanout_) {
        merge(leaf, *kept);
        return std::nullopt;
      }
    }
  }
  return write_in_place(node, write, stray);
}

/// Adds a new key to the buffer of a locked leaf.
template <class K>
auto WordTree<K>::add_buffered(Locked& leaf, Key key, NewValue value) -> Buffered {
  if (!buffers_->any()) return Buffered::refused;
  Node& node = *leaf.node;
  Buffer* buffer = buffer_of(node);
  if (buffer == nullptr) buffer = give_buffer(node);
  if (buffer == nullptr) return Buffered::refused;
  buffer->hot.store(true, std::memory_order_relaxed);
  if (is_full(*buffer) || !buffers_->has_promise(*buffer)) {  // B3
    merge(leaf, *buffer);
    return Buffered::merged;
  }
  if (!buffers_->admitted()) return Buffered::refused;
  if (buffer->empty_chain()) {
    buffer->sure = buffers_->first_promise(most_buffered());
    log().append(*buffer, kNote, pm::load(node.low), 0);
    ++buffer->records;
  }
  records_.add(log(), *buffer, key, value, Keys::hash16(key));
  added_.add(1);
  return Buffered::added;
}

template <class K>
bool WordTree<K>::is_full(const Buffer& buffer) const {
  return buffer.size() >= most_buffered() || buffer.records >= 4 * most_buffered();
}

/// Erases a key that the buffer of a locked leaf has; returns nullopt if the buffer does not have
/// it. Cannot fail for want of space: the chain has room (B3).
template <class K>
std::optional<bool> WordTree<K>::erase_buffered(Node& leaf, Key key, const NewValue* expected) {
  Buffer* const buffer = buffer_of(leaf);
  const int found = buffer == nullptr ? -1 : find_buffered(*buffer, key);
  if (found < 0) return std::nullopt;
  const auto i = static_cast<unsigned>(found);
  if (!value_is(buffer->value(i), expected)) return false;
  records_.remove(log(), *buffer, i);
  removed_.add(1);
  return true;
}

/// Gives a locked leaf a free buffer, or now and then that of a leaf that is no longer written to.
/// Returns null if there is none.
template <class K>
auto WordTree<K>::give_buffer(Node& leaf) -> Buffer* {
  const pm::Offset place = pool_.offset(&leaf);
  auto number = buffers_->acquire(0);
  if (number == 0 && buffers_->may_take(latches_.of(place).version()))
    number = take_cold_buffer(leaf);
  if (number == 0) return nullptr;
  return buffers_->give_owned_buffer(place, pm::load(leaf.low), number, number_of(leaf));
}

/// Merges the buffer of a leaf that is no longer written to, and takes it from that leaf. Returns
/// its number; 0 if there is none that can be had without waiting. Waits for no latch, since the
/// caller holds one.
template <class K>
auto WordTree<K>::take_cold_buffer(const Node& leaf) const -> typename Buffers::Number {
  const auto number = buffers_->cold();
  if (number == 0) return 0;
  Buffer& buffer = buffers_->at(number);
  const Home* home = buffer.node.load(std::memory_order_acquire);
  if (home == nullptr) return 0;
  const pm::Offset place = home->place.load(std::memory_order_relaxed);
  Latch& latch = latches_.of(place);
  if (&latch == &latches_.of(pool_.offset(&leaf)) || !latch.try_lock()) return 0;
  LatchSet other;
  other.add_held(latch);
  // A leaf with a buffer is one of the tree: it loses the buffer before it goes.
  if (buffers_->of(place) != &buffer) return 0;
  if (!merge_in_place(node_at(place), buffer)) return 0;
  pm::on_step("fastfair: take the buffer of another leaf");
  buffers_->take_from_leaf(buffer);
  return buffers_->acquire(number);
}

// --- Merging ---

/// Merges a buffer into its leaf, which is locked: each pair as its insert would (the paper's
/// in-place update), but with one fence for all where a fence is a sync. Their order does not
/// matter, since the chain has all of them until its END. Returns false, and has moved no pair, if
/// the leaf has no room.
template <class K>
bool WordTree<K>::merge_in_place(Node& leaf, Buffer& buffer) const {
  if (buffer.empty_chain()) return true;
  remove_copies(pm(), leaf);
  if (meta_of(leaf).count + buffer.size() > fanout_) return false;
  if (pm().commits_as_one()) {
    pm().commit(changes_to(leaf, all_pairs(leaf)).all());
  } else {
    for (unsigned i = 0; i < buffer.size(); ++i) {
      const unsigned at = rank_from_right(leaf, {keys_.view(buffer.key(i))});
      insert_entry(pm(), leaf, at, {buffer.key(i), buffer.value(i)});
    }
  }
  end_chain(buffer);
  return true;
}

/// The changes by which a leaf without copies comes to hold just these pairs.
template <class K>
pm::Changes WordTree<K>::changes_to(Node& leaf, const Run& run) const {
  pm::Changes changes;
  for (unsigned i = 0; i < run.size; ++i) {
    const Entry& entry = run.entries[i];
    if (pm::load(leaf.entries[i].key) != entry.key) changes.set(leaf.entries[i].key, entry.key);
    if (pm::load(leaf.entries[i].value) != entry.value)
      changes.set(leaf.entries[i].value, entry.value);
  }
  changes.set(leaf.meta, meta_with(leaf, run.size));
  return changes;
}

/// Ends the chain of a buffer whose pairs are all in leaves, durably, and empties the buffer.
template <class K>
void WordTree<K>::end_chain(Buffer& buffer) const {
  pm::on_step("fastfair: a merge ends a chain");
  records_.end(log(), buffer);
}

/// Moves the pairs in the buffer of a locked leaf into the leaf, or into one or two that replace it
/// and that it does not lock. The caller must search again. Throws out_of_space and bad_alloc, and
/// has moved no pair.
template <class K>
void WordTree<K>::merge(Locked& leaf, Buffer& buffer) const {
  if (technique_ < Technique::bo && merge_in_place(*leaf.node, buffer)) return;
  const Word low = pm::load(leaf.node->low);
  leaf.latches.release();
  while (!write_anew(keys_.view(low))) {
  }
}

// --- Upkeep ---

/// Merges a buffer, if it still is a leaf's. Without `may_split` only where that takes no space.
template <class K>
void WordTree<K>::clean(Buffer& buffer, bool may_split) const {
  const epoch::Guard guard;
  const Home* home = buffer.node.load(std::memory_order_acquire);
  if (home == nullptr) return;
  const pm::Offset place = home->place.load(std::memory_order_relaxed);
  Locked leaf;
  Latch& latch = latches_.of(place);
  latch.lock();
  leaf.latches.add_held(latch);
  if (buffers_->of(place) != &buffer) return;
  leaf.node = &node_at(place);  // a leaf with a buffer is one of the tree
  if (buffers_->budget_is_exceeded() && merge_in_place(*leaf.node, buffer))
    return buffers_->take_from_leaf(buffer);
  may_split ? merge(leaf, buffer) : void(merge_in_place(*leaf.node, buffer));
}

/// For a full pool: frees what the log no longer needs. Returns whether there was any.
template <class K>
bool WordTree<K>::reclaim_space() noexcept {
  try {
    return buffers_ != nullptr && buffers_->give_space_back(Upkeep{*this});
  } catch (const std::exception&) {
    return false;  // no memory, or damage, which the next call that reads there reports
  }
}

// --- After a restart ---

/// Adopts the chain of a leaf that was seen, if it has one that no thread has adopted. Returns
/// whether the leaf is as it was seen.
template <class K>
[[gnu::noinline]] bool WordTree<K>::resume_leaf(const Seen& leaf) const {
  const wal::Owner owner = pm::load(number_of(*leaf.node));
  if (owner == 0 || owner > wal::kMaxOwner || buffers_->was_resumed(owner)) return true;
  const wal::Position head = log().surviving(owner);
  if (head == 0) return true;
  if (!leaf.latch->try_upgrade(leaf.version)) return false;
  LatchSet latches;
  latches.add_held(*leaf.latch);
  if (!buffers_->was_resumed(owner)) adopt_chain(*leaf.node, owner, head);
  return false;
}

/// Continues the chain of a locked leaf in a buffer. If some of its pairs are in the leaf, a crash
/// has interrupted a merge, which is completed.
template <class K>
void WordTree<K>::adopt_chain(Node& leaf, wal::Owner owner, wal::Position head) const {
  const pm::Offset place = pool_.offset(&leaf);
  const LoggedChanges logged = read_chain(log(), owner, head);
  if (logged.pairs.size() > most_buffered()) pool::throw_corrupt(pool_, "the log of a leaf", place);
  pm::on_step("fastfair: adopt a chain");
  Buffer& buffer = buffers_->adopt_chain(place, pm::load(leaf.low), owner, head,
                                         static_cast<std::uint16_t>(logged.pairs.size()));
  bool interrupted = logged.pairs.empty();
  for (const auto& [key, value] : logged.pairs) {
    if (has_word(leaf, key)) {
      interrupted = true;
    } else {
      buffer.push(key, value, Keys::hash16_of_word(key));
    }
  }
  constexpr unsigned kMaxRecords = std::numeric_limits<Buffer::Count>::max();
  buffer.records = static_cast<Buffer::Count>(std::min(logged.records, kMaxRecords));
  if (interrupted && !merge_in_place(leaf, buffer))
    pool::throw_corrupt(pool_, "the log of a leaf", place);
}

/// Whether a leaf has a pair with this very word as key.
template <class K>
bool WordTree<K>::has_word(const Node& leaf, Word key) const {
  const auto end = leaf.entries.begin() + meta_of(leaf).count;
  return std::any_of(leaf.entries.begin(), end,
                     [&](const Entry& entry) { return pm::load(entry.key) == key; });
}

/// Has a chain from before the restart adopted by its leaf, or ends it if it is stale.
template <class K>
void WordTree<K>::resume_chain(wal::Owner owner, wal::Position head) const {
  const Key low = keys_.view(read_chain(log(), owner, head).note);  // B4
  while (!buffers_->was_resumed(owner)) {
    const Seen leaf = seek({low}, 0);
    if (!ready(leaf)) continue;
    const bool stale = pm::load(number_of(*leaf.node)) != owner;
    if (stale && leaf.valid()) buffers_->end_stale(owner, head);
  }
}

/// Adopts or ends up to this many chains from before the restart. When none is left, tells the log,
/// which may then free their records.
template <class K>
void WordTree<K>::resume_some(unsigned chains) const {
  buffers_->resume_some(
      chains, [&](wal::Owner owner, wal::Position head) { resume_chain(owner, head); },
      [&] {
        pm::on_step("fastfair: all chains are adopted");
        log().resumed();
        resumption_.set_done();
      });
}

/// Returns when all chains from before the restart are adopted or ended.
template <class K>
void WordTree<K>::require_resumed() const {
  if (buffers_ != nullptr) buffers_->require_resumed(Upkeep{*this}, resumption_);
}

/// Opens the write buffers of a tree that has a log, or is to have one.
template <class K>
void WordTree<K>::open_buffers(const IndexOptions& options) {
  if (head_ == nullptr) return;
  technique_ = options.technique;
  const std::uint64_t budget = buffer_budget(options);
  if (budget != 0 && pm::load(head_->log) == pm::kNull) give_log(pool_, head_->log);
  if (pm::load(head_->log) == pm::kNull) return;
  arena_.emplace();
  auto buffers = std::make_unique<Buffers>(*arena_, wal::Log::Limits{0}, latches_);
  retry_when_full(pool_,
                  [&] { buffers->open(pool_, pm::load(head_->log), budget, head_->numbers); });
  buffers_ = std::move(buffers);
  entry_.emplace(pool_.open_indexes(), *this);
  if (!buffers_->any_survivor()) resume_some(1);  // now, so that leaves can be merged
  if (options.resume_in_background)
    resumption_.start_thread(
        [this](const std::stop_token& stop) { buffers_->resume(Upkeep{*this}, stop); });
}

}  // namespace perdix::detail::index::fastfair
