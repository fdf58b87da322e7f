// Write buffers of tall nodes (Zhao et al. 2024, section 3.1): new pairs of a range (ranges.h) go
// into the buffer of its owner and the log, a line each near the one before, and reach the list in
// batches. Technique::b and Technique::bo do not differ here: in a list no pair has to make room
// for another one, so each is written out of place.
//
// The record is the commit. New keys are buffered, and their changes while they are in the buffer.
// Pairs of the list change in place. So a key is in a buffer or in the list, not in both:
//   B1. The chain of a buffer says what the buffer holds, and its owner is the place of the node.
//   B2. The keys of a buffer are in the range of its owner, and none of them has a node there.
//   B3. The chain has room for as many more records, besides its END, as the buffer has pairs. So
//       each pair can be erased, or removed from the chain once it is in the list, whatever else is
//       full.
//   B4. A node that has a chain is in level kTall - 1, and stays there until the chain has ended.
//       So a chain always belongs to an existing node, though places are used again.
//
// A merge (buffer_merge.h) needs space, and an erase may not. So an owner that is erased while its
// buffer has pairs becomes hollow (L7), by one store of its first word, and leaves the list when
// the buffer has been merged.
//
// A thread that changes a range holds its latch from the search on to the end. Latches of ranges
// come before those of nodes. A thread that waits for one has no latch, or locks two together in
// the order of their addresses.
//
// After a restart, a range's chain is adopted before anything else is done with the range; a thread
// in the background adopts those of all others.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>

#include "index/common/retry.h"
#include "index/skiplist/skiplist.h"
#include "pool/checked.h"

namespace perdix::detail::index::skiplist {

/// What the upkeep of the log requires of a list (write_buffers.h).
template <class K>
struct WordList<K>::Upkeep {
  const WordList& list;

  void clean(wal::Chain& chain, bool may_split) {
    list.clean(static_cast<Buffer&>(chain), may_split);
  }
  void resume_some(unsigned ranges) { list.resume_some(ranges); }
  void log_was_shortened() {}
  std::int64_t pairs() const { return list.pairs_.change(); }
};

/// The number of the key's pair in a buffer; -1 if it has none. It counts under the range's latch,
/// or if its version is validated.
template <class K>
int WordList<K>::find_buffered(const Buffer& buffer, Key key) const {
  const Hash16 hash = Keys::hash16(key);
  return buffer.find(hash, [&](unsigned i) { return keys_.equal(buffer.key(i), key, hash); });
}

// --- Latches of ranges ---

/// Locks the range of a key and returns its owner; null if the range has changed since it was
/// found.
template <class K>
Node* WordList<K>::lock_range(LatchSet& held, Key key) const {
  const Seen owner = see_owner({key, true});
  return held.try_upgrade(*owner.latch, owner.version) ? owner.node : nullptr;
}

/// Locks the range of a key that itself has a tall node, and the range before, and returns the
/// node. Returns null if the key has no tall node, and nullopt if a range has changed since the
/// search.
template <class K>
std::optional<Node*> WordList<K>::lock_with_before(LatchSet& held, Key key) const {
  const Seen owner = see_owner({key, true});
  if (!is_own(*owner.node, key))
    return owner.valid() ? std::optional<Node*>(nullptr) : std::nullopt;
  const Seen before = see_owner({key, false});
  std::array latches = {owner.latch, before.latch};
  held.lock_all(latches);
  if (!owner.latch->taken_at(owner.version) || !before.latch->taken_at(before.version))
    return std::nullopt;
  return owner.node;
}

// --- Writes ---

/// write_node() of a list with buffers. Returns nullopt if the range must be looked for again.
template <class K>
[[gnu::noinline]] std::optional<bool> WordList<K>::write_range(const Write& write, Erased& erased) {
  LatchSet held;
  Node* const owner = lock_range(held, write.key);
  if (owner == nullptr) return std::nullopt;
  Buffer* const buffer = buffer_of(*owner);
  const int found = buffer == nullptr ? -1 : find_buffered(*buffer, write.key);
  if (found < 0) return write_to_list(held, *owner, write, erased);
  const auto i = static_cast<unsigned>(found);
  if (write.mode == Mode::insert || !value_is(buffer->value(i), write.expected)) return false;
  if (!buffers_->can_grow(*buffer)) {
    merge(held, *owner, *buffer);
    return std::nullopt;
  }
  records_.replace(log(), *buffer, i, write.value);
  return true;
}

/// write_range() for a key that the buffer of the locked range does not have.
template <class K>
std::optional<bool> WordList<K>::write_to_list(LatchSet& held, Node& owner, const Write& write,
                                               Erased& erased) {
  Node* const node = node_in_range(owner, write.key);
  if (node == nullptr) {
    if (write.mode == Mode::update) return false;
    return write_new(held, owner, write, erased);
  }
  if (!is_hollow(*node)) return replace(*node, write, erased);
  if (write.mode == Mode::update) return false;
  if (node != &owner) {
    remove_by_key(write.key);  // a crash has kept it from being removed (L7)
  } else {
    held.release();
    remove_hollow(write.key);
  }
  return std::nullopt;
}

/// write_range() for a key that the locked range does not have: adds it.
template <class K>
std::optional<bool> WordList<K>::write_new(LatchSet& held, Node& owner, const Write& write,
                                           Erased& erased) {
  switch (add_buffered(held, owner, write.key, write.value)) {
    case Buffered::added: return true;
    case Buffered::merged: return std::nullopt;
    case Buffered::refused: break;
  }
  // A tall node would divide the pairs of the buffer.
  Buffer* const buffer = buffer_of(owner);
  if (buffer != nullptr && !buffer->empty_chain() && wanted_height(write.key) >= kTall) {
    merge(held, owner, *buffer);
    return std::nullopt;
  }
  return write_node({write.key, write.value, Mode::insert, nullptr}, erased);
}

/// Adds a new key to the buffer of a locked range.
template <class K>
auto WordList<K>::add_buffered(LatchSet& held, Node& owner, Key key, NewValue value) -> Buffered {
  if (!buffers_->any()) return Buffered::refused;
  Buffer* buffer = buffer_of(owner);
  if (buffer == nullptr) buffer = give_buffer(owner);
  if (buffer == nullptr) return Buffered::refused;
  buffer->hot.store(true, std::memory_order_relaxed);
  if (buffer->full() || !buffers_->has_promise(*buffer)) {  // B3
    merge(held, owner, *buffer);
    return Buffered::merged;
  }
  if (!buffers_->admitted()) return Buffered::refused;
  if (buffer->empty_chain()) buffer->sure = buffers_->first_promise(BufferShape::kPairs);
  records_.add(log(), *buffer, key, value, Keys::hash16(key));
  pairs_.add();
  return Buffered::added;
}

/// Gives a locked range a free buffer, or now and then that of a range that is no longer written
/// to. Returns null if there is none.
template <class K>
auto WordList<K>::give_buffer(const Node& owner) const -> Buffer* {
  const wal::Owner number = number_of(owner);
  if (number > wal::kMaxOwner) return nullptr;
  auto given = buffers_->acquire(0);
  if (given == 0 && buffers_->may_take(range_latch(owner).version()))
    given = take_cold_buffer(owner);
  if (given == 0) return nullptr;
  try {
    Buffer& buffer = buffers_->give_buffer(pool_.offset(&owner), 0, given);
    buffer.assign(number);
    return &buffer;
  } catch (const std::bad_alloc&) {
    buffers_->release(given);
    return nullptr;  // the list takes the change
  }
}

/// Merges the buffer of a range that is no longer written to, and takes it from that range. Returns
/// its number; 0 if there is none that can be had without waiting, or no space for the merge. Waits
/// for no latch of a range, since the caller holds one.
template <class K>
auto WordList<K>::take_cold_buffer(const Node& owner) const -> typename Buffers::Number {
  const auto number = buffers_->cold();
  if (number == 0) return 0;
  Buffer& buffer = buffers_->at(number);
  const Home* home = buffer.node.load(std::memory_order_acquire);
  if (home == nullptr) return 0;
  const pm::Offset place = home->place.load(std::memory_order_relaxed);
  Latch& latch = ranges_->of(place);
  if (&latch == &range_latch(owner) || !latch.try_lock()) return 0;
  LatchSet other;
  other.add_held(latch);
  if (buffers_->of(place) != &buffer) return 0;
  Node& cold = owner_at_place(place);
  if (is_hollow(cold)) return 0;  // its merge needs the latch of the range before, too
  try {
    merge_locked(cold, buffer);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    return 0;
  }
  pm::on_step("skiplist: take the buffer of another range");
  buffers_->take_from_leaf(buffer);
  return buffers_->acquire(number);
}

// --- Erases ---

/// erase_node() of a list with buffers. Returns nullopt if the range must be looked for again.
template <class K>
std::optional<bool> WordList<K>::erase_in_range(Key key, const NewValue* expected,
                                                Erased& erased) const {
  LatchSet held;
  Node* const owner = lock_range(held, key);
  if (owner == nullptr) return std::nullopt;
  Buffer* const buffer = buffer_of(*owner);
  if (const int i = buffer == nullptr ? -1 : find_buffered(*buffer, key); i >= 0)
    return erase_buffered(held, *owner, *buffer, static_cast<unsigned>(i), expected);
  const Node* const node = node_in_range(*owner, key);
  if (node == nullptr || is_hollow(*node)) return false;
  if (node == owner) return erase_owner(held, *owner, expected, erased);
  return erase_node(key, expected, erased);
}

/// Erases pair `i` of the buffer of a locked range. Cannot fail for want of space: the chain has
/// room (B3).
template <class K>
bool WordList<K>::erase_buffered(LatchSet& held, const Node& owner, Buffer& buffer, unsigned i,
                                 const NewValue* expected) const {
  if (!value_is(buffer.value(i), expected)) return false;
  records_.remove(log(), buffer, i);
  pairs_.remove();
  if (buffer.size() == 0 && is_hollow(owner)) {
    held.release();
    try {
      remove_hollow(key_of(owner));  // the last pair that needed it is gone
    } catch (const std::bad_alloc&) {
      // The next merge of the range removes it.
    }
  }
  return true;
}

/// Erases the pair of the owner of a locked range. While the range's buffer has pairs the node
/// stays, hollow (L7).
template <class K>
std::optional<bool> WordList<K>::erase_owner(LatchSet& held, Node& owner, const NewValue* expected,
                                             Erased& erased) const {
  if (!value_is(owner, expected)) return false;
  Buffer* const buffer = buffer_of(owner);
  if (buffer != nullptr && buffer->size() == 0) end_chain(*buffer);
  if (buffer == nullptr || buffer->empty_chain()) {
    held.release();
    return erase_bare_owner(key_of(owner), expected, erased);
  }
  const Meta meta{.hollow = true, .height = height_of(owner)};
  pm().publish(owner.meta, meta.pack());  // the commit
  pairs_.remove();
  return true;
}

/// Erases an owner without a chain: its range becomes part of the one before.
template <class K>
std::optional<bool> WordList<K>::erase_bare_owner(Key key, const NewValue* expected,
                                                  Erased& erased) const {
  LatchSet held;
  const std::optional<Node*> owner = lock_with_before(held, key);
  if (!owner.has_value() || *owner == nullptr || is_hollow(**owner)) return std::nullopt;
  if (!value_is(**owner, expected)) return false;
  if (Buffer* const buffer = buffer_of(**owner)) {
    if (!buffer->empty_chain()) return std::nullopt;  // begun before the latches were held
    buffers_->take_from_leaf(*buffer);
  }
  return erase_node(key, expected, erased);
}

// --- Upkeep ---

/// The owner at a place, the latch of whose range is held. Throws corrupt if no tall node is there.
template <class K>
Node& WordList<K>::owner_at_place(pm::Offset place) const {
  return place == pool_.offset(&head_) ? head_ : checked_node(pool_, place, kTall - 1);
}

/// Merges a buffer, if it still is a range's. Without `may_split` only where that takes no space.
template <class K>
void WordList<K>::clean(Buffer& buffer, bool may_split) const {
  const epoch::Guard guard;
  const Home* home = buffer.node.load(std::memory_order_acquire);
  if (home == nullptr) return;
  const pm::Offset place = home->place.load(std::memory_order_relaxed);
  LatchSet held;
  Latch& latch = ranges_->of(place);
  latch.lock();
  held.add_held(latch);
  if (buffers_->of(place) != &buffer) return;
  if (!may_split && buffer.size() > 0) return;
  Node& owner = owner_at_place(place);  // a node with a buffer is one of the list
  const bool stays = !is_hollow(owner);
  merge(held, owner, buffer);
  if (stays && buffers_->budget_is_exceeded()) buffers_->take_from_leaf(buffer);
}

/// For a full pool: frees what the log no longer needs. Returns whether there was any.
template <class K>
bool WordList<K>::reclaim_space() noexcept {
  try {
    return buffers_ != nullptr && buffers_->give_space_back(Upkeep{*this});
  } catch (const std::exception&) {
    return false;  // no memory, or damage, which the next call that reads there reports
  }
}

// --- After a restart ---

/// Adopts the chain of a range that was seen, if it has one that no thread has adopted. Returns
/// whether the range is as it was seen.
template <class K>
[[gnu::noinline]] bool WordList<K>::resume_range(const Seen& owner) const {
  const wal::Owner number = number_of(*owner.node);
  if (number > wal::kMaxOwner || buffers_->was_resumed(number)) return true;
  const wal::Position head = log().surviving(number);
  if (head == 0) return true;
  LatchSet held;
  if (held.try_upgrade(*owner.latch, owner.version) && !buffers_->was_resumed(number))
    adopt_chain(*owner.node, head);
  return false;
}

/// Continues the chain of a locked range in a buffer. Pairs that are in the list, because a crash
/// has interrupted their merge, are removed from the chain.
template <class K>
void WordList<K>::adopt_chain(Node& owner, wal::Position head) const {
  const pm::Offset place = pool_.offset(&owner);
  const wal::Owner number = number_of(owner);
  const LoggedChanges logged = read_chain(log(), number, head);
  if (logged.pairs.size() > BufferShape::kPairs)
    pool::throw_corrupt(pool_, "the log of a node", place);
  pm::on_step("skiplist: adopt a chain");
  Buffer& buffer = buffers_->adopt_chain(place, 0, number, head,
                                         static_cast<std::uint16_t>(logged.pairs.size()));
  for (const auto& [key, value] : logged.pairs) buffer.push(key, value, Keys::hash16_of_word(key));
  constexpr unsigned kMaxRecords = std::numeric_limits<typename Buffer::Count>::max() / 2;
  buffer.records = static_cast<typename Buffer::Count>(std::min(logged.records, kMaxRecords));
  for (const auto& [key, value] : logged.pairs) {
    const Node* const node = node_in_range(owner, keys_.view(key));
    if (node != nullptr && pm::load(node->key) == key) remove_from_chain(buffer, key);
  }
  if (buffer.size() == 0) end_chain(buffer);
}

/// Has a chain from before the restart adopted, unless another thread has done so.
template <class K>
void WordList<K>::resume_chain(wal::Owner number, wal::Position head) const {
  const pm::Offset place = number * pm::kLineSize;
  Latch& latch = ranges_->of(place);
  latch.lock();
  LatchSet held;
  held.add_held(latch);
  if (buffers_->was_resumed(number)) return;
  Node& owner = owner_at_place(place);
  const bool found = &owner == &head_ || (keys_.sound(pm::load(owner.key)) &&
                                          &last_tall({key_of(owner), true}) == &owner);
  if (!found) pool::throw_corrupt(pool_, "the log of a node", place);  // B4
  adopt_chain(owner, head);
}

/// Adopts up to this many chains from before the restart. When none is left, tells the log, which
/// may then free their records.
template <class K>
void WordList<K>::resume_some(unsigned chains) const {
  buffers_->resume_some(
      chains, [&](wal::Owner number, wal::Position head) { resume_chain(number, head); },
      [&] {
        pm::on_step("skiplist: all chains are adopted");
        log().resumed();
        resumption_.set_done();
      });
}

/// Returns when all chains from before the restart are adopted.
template <class K>
void WordList<K>::require_resumed() const {
  if (buffers_ != nullptr) buffers_->require_resumed(Upkeep{*this}, resumption_);
}

/// Opens the write buffers of a list that has a log, or is to have one.
template <class K>
void WordList<K>::open_buffers(const IndexOptions& options) {
  const std::uint64_t budget = buffer_budget(options);
  if (budget != 0 && pm::load(log_of(head_)) == pm::kNull) give_log(pool_, log_of(head_));
  if (pm::load(log_of(head_)) == pm::kNull) return;
  arena_.emplace();
  // Few where the budget is small, since they are part of the DRAM that buffers take.
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
  ranges_ = std::make_unique<Latches>(budget < kLarge ? Latches::kBits - 3 : Latches::kBits);
  auto buffers = std::make_unique<Buffers>(*arena_, wal::Log::Limits{0}, *ranges_);
  retry_when_full(pool_, [&] { buffers->open(pool_, pm::load(log_of(head_)), budget); });
  buffers_ = std::move(buffers);
  if (!buffers_->any_survivor()) resume_some(1);
  buffers_->resume_in_background(Upkeep{*this}, resumption_, options);
}

}  // namespace perdix::detail::index::skiplist
