// Write buffers (sptree.txt §4.1, §4.4, §4.7): new pairs and erased slots go into the node's buffer
// and the log, a line each near the one before, and reach the leaf in batches.
//
// The record is the commit; of an integer whose insert finds the buffer full, the batch's. What the
// paper buffers is buffered here: new keys, what becomes of them while they are in the buffer, and
// tombstones. A tombstone names the slot of the leaf's pair, not its key, so that after a crash
// nobody needs the key's bytes, which are free by then.
//
// Merging writes the pairs, then the bitmap, then END (two-phase insertion, and the end of the
// chain). A crash between the last two leaves a chain whose every record has been carried out; it
// is closed when the leaf is used again, before a slot or a blob that it names can get another
// meaning (L7).
#pragma once

#include <array>
#include <cassert>

#include "alloc/session.h"
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {

/// The number of the buffer that the node has, if nothing kept it from getting that one: a function
/// of the node's address, for whoever has not read the node yet. 0: the node gets any. The budget
/// bounds it, so that a small one takes no more memory than its buffers.
template <class K>
std::uint32_t WordTree<K>::own_number(const Node& node) const {
  const std::uint64_t index = nodes_.number_of(node);
  return index < buffers_.budget() ? static_cast<std::uint32_t>(index) + 1 : 0;
}

/// Lets writers know where the node is, if there are buffers: else they wait for two fences, and
/// have time to search meanwhile. If its range changes at the same time, the hint is out of date.
template <class K>
void WordTree<K>::leave_hint(const Node& node) {
  if constexpr (Keys::kInline) {
    if (!buffers_.any()) return;
    hints_.note(node.low, node.high.load(std::memory_order_relaxed), nodes_.ref(&node));
  }
}

/// Gives the hints more room if there are so many nodes by now. Keys are taken to lie about where
/// the bounds of leaves do: but for the first, whose bound is not a key's. No lock is held: it may
/// take milliseconds.
template <class K>
void WordTree<K>::grow_hints() {
  if constexpr (Keys::kInline) {
    if (!buffers_.any()) return;
    const epoch::Guard guard;  // for the table, too: another thread may make a new one
    const auto nodes = static_cast<std::uint64_t>(nodes_.count());
    if (!hints_.growth_due(nodes)) return;
    const Node* second = nodes_.next_of(*top_.head());
    const Node* last = top_.locate_surely(NodeBounds::open());
    if (second == nullptr || last->low < second->low) return;
    try {
      if (!hints_.grow(nodes, second->low, last->low)) return;
    } catch (const std::bad_alloc&) {
      return;  // searches take as long as they did
    }
    for (const Node* node = second; node != nullptr; node = nodes_.next_of(*node))
      leave_hint(*node);
  }
}

template <class K>
bool WordTree<K>::hinted(Key key) const {
  if constexpr (Keys::kInline) {
    const epoch::Guard guard;
    return nodes_.at(hints_.of(key)) == top_.locate(key);
  }
  return false;
}

template <class K>
unsigned WordTree<K>::steps_right(Key key) const {
  const epoch::Guard guard;
  unsigned steps = 0;
  for (Node* node = top_.locate(key);;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      node = top_.locate(key);
    } else if (node->covers(key)) {
      return steps;
    } else {
      node = go_right(node, version, key, steps);
    }
  }
}

/// The buffer that takes the next change of the locked node, and has room in the log for it;
/// nullptr if the change must go to the leaf.
template <class K>
auto WordTree<K>::buffer_for_change(Node& node) -> Buffer* {
  if (!buffers_.any()) return nullptr;
  if (node.buffer() == 0 && !attach(node)) return nullptr;
  Buffer* buffer = buffers_.of(node);
  buffer->hot.store(true, std::memory_order_relaxed);
  buffer->prefetch_next_pair();
  return buffers_.admitted() ? buffer : nullptr;
}

template <class K>
[[gnu::noinline]] auto WordTree<K>::find_buffered(const Buffer& buffer, Key key, Hash16 hash) const
    -> Found {
  for (unsigned left = buffer.candidates(hash); left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    const Word word = buffer.key(static_cast<unsigned>(i));
    if (keys().equal(word, key, hash)) return {-1, i, buffer.value(static_cast<unsigned>(i))};
  }
  return {};
}

/// The leaf's bitmap in PM.
template <class K>
SlotSet WordTree<K>::taken_slots(const Node& node) const {
  const Buffer* buffer = buffers_.of(node);
  return buffer == nullptr ? node.slots() : node.slots() | buffer->erased_slots();
}

/// Where the leaf takes a new key with this hash; kLeafPairs if it is full.
template <class K>
unsigned WordTree<K>::free_slot_of(const Node& node, Hash16 hash) const {
  if (node.buffer() == 0) {  // so no slot is erased but taken
    const unsigned slot = node.free_slot_near(hash);
    if (slot != kLeafPairs) [[likely]]
      return slot;
  }
  return free_slot(taken_slots(node), hash);
}

template <class K>
unsigned WordTree<K>::count_with_buffer(const Node& node) const {
  const Buffer* buffer = buffers_.of(node);
  return node.count() + (buffer == nullptr ? 0 : buffer->size());
}

/// Adds a pair to the buffer of the locked node, or, if the buffer is full, to the batch that is
/// merged then. False, and no pair has changed, if the leaf must be split before.
template <class K>
bool WordTree<K>::add_buffered(Node& node, Buffer& buffer, Key key, const NewValue& value,
                               Hash16 hash) {
  if (buffer.full()) {
    if (leaves_.all_inline()) {
      const bool added = merge_buffer(node, Pair{leaves_.inline_word(key), value.word});
      if (added) buffers_.shed(node);
      return added;
    } else if (!merge_buffer(node)) {
      return false;
    }
  }
  const unsigned taken = taken_slots(node).count();
  if (buffer.empty_chain()) buffer.sure = sure_of(taken);
  if (buffer.without_slot(taken, 1) > buffer.sure) return false;
  add_to_buffer(buffer, key, value, hash);
  return true;
}

/// For how many records a chain is promised room that begins with a leaf of which so many slots are
/// taken: as many as its buffer can hold pairs for which the leaf has none (B4).
template <class K>
std::uint8_t WordTree<K>::sure_of(unsigned taken) {
  const unsigned all = taken + kBufferPairs;
  return static_cast<std::uint8_t>(all > kLeafPairs ? all - kLeafPairs : 0);
}

/// Whether the locked node's leaf may take a pair into a free slot: not the last ones if the pairs
/// of the buffer need them (B4).
template <class K>
bool WordTree<K>::leaf_may_take(const Node& node) const {
  const Buffer* buffer = buffers_.of(node);
  return buffer == nullptr || buffer->without_slot(taken_slots(node).count(), 1) <= buffer->sure;
}

template <class K>
void WordTree<K>::add_to_buffer(Buffer& buffer, Key key, const NewValue& value, Hash16 hash) {
  if (leaves_.all_inline()) {
    log().append(buffer, wal::Type::put, leaves_.inline_word(key), value.word);
    buffer.push(leaves_.inline_word(key), value.word, hash);
  } else {
    alloc::Session session = pool().allocator().session();
    const Word key_word = keys().write(session, key, hash);
    const Word value_word = leaves_.values().write(session, value);
    log().append(buffer, wal::Type::put, key_word, value_word, session);
    leaves_.count_blobs(key_word, value_word, +1);
    buffer.push(key_word, value_word, hash);
  }
  ++buffer.records;
}

/// The new record takes the place of the pair's former one: after a restart the newest counts.
template <class K>
void WordTree<K>::replace_in_buffer(Buffer& buffer, unsigned i, const NewValue& value) {
  if (leaves_.values().is_inline()) {
    log().append(buffer, wal::Type::put, buffer.key(i), value.word);
    buffer.set_value(i, value.word);
  } else {
    alloc::Session session = pool().allocator().session();
    const Word old_word = buffer.value(i);
    const Word new_word = leaves_.values().write(session, value);
    if (new_word == old_word) return;  // both empty: nothing to change
    const std::int64_t old_bytes = leaves_.values().footprint(old_word);
    leaves_.values().free(session, old_word);
    log().append(buffer, wal::Type::put, buffer.key(i), new_word, session);
    buffer.set_value(i, new_word);
    leaves_.count_bytes(leaves_.values().footprint(new_word) - old_bytes);
  }
  ++buffer.records;
}

/// Needs no room that may not be there: if the buffer can't be merged, its chain has some (B4).
template <class K>
void WordTree<K>::remove_from_buffer(Buffer& buffer, unsigned i) {
  if (leaves_.all_inline()) {
    log().append_surely(buffer, wal::Type::erase_key, buffer.key(i), 0);
  } else {
    const std::int64_t bytes = leaves_.bytes_of(buffer.key(i), buffer.value(i));
    alloc::Session session = pool().allocator().session();
    Keys::free(session, buffer.key(i));
    leaves_.values().free(session, buffer.value(i));
    log().append_surely(buffer, wal::Type::erase_key, buffer.key(i), 0, session);
    leaves_.count_bytes(-bytes);
  }
  buffer.remove(i);
  ++buffer.records;
}

/// Erases a pair of the leaf by a tombstone. Its bit stays set in PM until the buffer is merged.
/// False, and nothing has changed, if the log has no room for that: others took what it had when it
/// was asked.
template <class K>
bool WordTree<K>::bury(Node& node, Buffer& buffer, unsigned slot) {
  if (buffer.empty_chain()) buffer.sure = sure_of(taken_slots(node).count());
  try {
    log_tombstone(node, buffer, slot);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    pm::on_step("sptree: no room for a tombstone");
    return false;
  }
  pm::on_step("sptree: bury a pair");
  node.remove(slot);
  buffer.set_erased(buffer.erased_slots() | SlotSet::of(slot));
  ++buffer.records;
  return true;
}

template <class K>
void WordTree<K>::log_tombstone(const Node& node, Buffer& buffer, unsigned slot) {
  if (leaves_.all_inline()) {
    log().append(buffer, wal::Type::erase_slot, slot, 0);
  } else {
    const Pair& pair = pair_at(*node.leaf(), slot);
    const std::int64_t bytes = leaves_.bytes_of(pair.key, pair.value);
    alloc::Session session = pool().allocator().session();
    Keys::free(session, pm::load(pair.key));
    leaves_.values().free(session, pm::load(pair.value));
    log().append(buffer, wal::Type::erase_slot, slot, 0, session);
    leaves_.count_bytes(-bytes);
  }
}

/// Moves what the locked node's buffer holds into the leaf, and closes the chain. False, and
/// nothing changes, if the leaf has no room: it must be split. A node without a buffer is merged.
/// `another`: a new pair for a full buffer, which joins the batch instead of the log. The batch's
/// commit is its own, too.
template <class K>
bool WordTree<K>::merge_buffer(Node& node, std::optional<Pair> another) {
  Buffer* buffer = buffers_.of(node);
  if (buffer == nullptr || buffer->empty_chain()) {
    assert(!another);
    return true;
  }
  const unsigned buffered = buffer->size(), count = buffered + (another ? 1 : 0);
  Leaf& leaf = *node.leaf();
  const Placed placed = leaves_.place(leaf, taken_slots(node), count, [&](unsigned i) {
    return i < buffered ? Pair{buffer->key(i), buffer->value(i)} : *another;
  });
  if (!placed.complete) return false;
  const SlotSet slots = placed.taken - buffer->erased_slots();
  publish_slots(pm(), leaf, slots);  // phase 2: durable before the chain that says the same ends
  // Before the END, whose lock waits for what has been published.
  for (unsigned i = 0; i < count; ++i) node.add(placed.slots[i], placed.hashes[i]);
  pm::on_step("sptree: a merge ends a chain");
  log().end(*buffer);  // has room, so nothing throws behind the commit
  buffer->clear();
  return true;
}

/// Gives the locked node a buffer: one that is left, or now and then a cold one of another node.
template <class K>
bool WordTree<K>::attach(Node& node) {
  constexpr std::uint64_t kAskOneIn = 8;  // so only a node that is written to often gets another's
  std::uint32_t number = buffers_.acquire(own_number(node));
  if (number == 0 && node.lock.version() % kAskOneIn == 0) number = take_cold();
  if (number == 0) return false;  // the leaf takes the change
  buffers_.give(node, number);
  buffers_.at(number).assign(owner_of(node));
  return true;
}

/// The buffer of a node that is not written to any more, merged and taken away from it; 0 if there
/// is none at hand. Waits for no lock, since the caller holds one.
template <class K>
std::uint32_t WordTree<K>::take_cold() {
  const std::uint32_t number = buffers_.cold();
  if (number == 0) return 0;
  Node* owner = buffers_.at(number).node.load(std::memory_order_acquire);
  pm::on_step("sptree: a buffer that another node may give");
  if (owner == nullptr || !owner->lock.try_lock()) return 0;
  const LockedNode locked(owner);  // its memory stays: the caller's guard holds
  if (owner->lock.is_obsolete() || owner->buffer() != number || !merge_buffer(*owner)) return 0;
  pm::on_step("sptree: take the buffer of another node");
  return buffers_.take_from(*owner);
}

/// Merges the buffer of a chain, if it still is what it was. `may_split`: else a leaf that has no
/// room for that is left alone.
template <class K>
void WordTree<K>::clean(wal::Chain& chain, bool may_split) {
  const epoch::Guard guard;
  auto& buffer = static_cast<Buffer&>(chain);
  Node* node = buffer.node.load(std::memory_order_acquire);
  if (node == nullptr) return;
  node->lock.lock();
  const LockedNode locked(node);
  if (node->lock.is_obsolete() || buffers_.of(*node) != &buffer) return;
  if (merge_buffer(*node)) return buffers_.shed(*node);
  if (may_split) split(*node, NodeBounds::view(node->low));
}

}  // namespace perdix::index::sptree
