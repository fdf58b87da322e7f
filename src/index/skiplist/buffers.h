// Tall nodes with write buffers: the homes of index/common/buffered.h, whose invariants are B1 to
// B3 here, too. New pairs of a range (ranges.h) go into the buffer of its owner. Technique::b and
// Technique::bo do not differ here: in a list no pair has to make room for another one, so each is
// written out of place.
//   B4. The number of a chain's owner is the place of the node, in lines. A node that has a chain
//       is in level kTall - 1, and stays there until the chain has ended. So a chain always belongs
//       to an existing node, though places are used again.
//
// A merge (buffer_merge.h) needs space, and an erase may not. So an owner that is erased while its
// buffer has pairs becomes hollow (L7), by one store of its first word, and leaves the list when
// the buffer has been merged.
//
// A thread that changes a range holds its latch from the search on to the end. Latches of ranges
// come before those of nodes. A thread that waits for one has no latch, or locks two together in
// the order of their addresses.
#pragma once

#include <memory>

#include "index/skiplist/skiplist.h"
#include "pool/checked.h"

namespace perdix::detail::index::skiplist {

// --- Owners as homes ---

/// The owner at a place, the latch of whose range is held. Throws corrupt if no tall node is there.
template <class K>
Node& WordList<K>::owner_at_place(pm::Offset place) const {
  return place == pool_.offset(&head_) ? head_ : checked_node(pool_, place, kTall - 1);
}

template <class K>
auto WordList<K>::Homes::at(pm::Offset place, std::uint64_t) const -> Seen {
  return {&list.owner_at_place(place), &list.ranges_->of(place)};
}

/// Reads nothing of the node, which may have gone when another thread has adopted the chain.
template <class K>
auto WordList<K>::Homes::route(wal::Owner owner, std::uint64_t) const -> Seen {
  const pm::Offset place = owner * pm::kLineSize;
  if (!list.pool_.contains(place, sizeof(Node))) pool::throw_corrupt(list.pool_, kLogName, place);
  return look(*list.pool_.template at<Node>(place), list.ranges_->of(place));
}

/// No chain is stale (B4): if the node is not the owner of a range, the pool is damaged.
template <class K>
bool WordList<K>::Homes::owns(const Seen& seen, wal::Owner) const {
  Node& owner = list.owner_at_place(place(seen));
  const bool found =
      &owner == &list.head_ || (list.keys_.sound(pm::load(owner.key)) &&
                                &list.last_tall({list.key_of(owner), true}) == &owner);
  if (!found) pool::throw_corrupt(list.pool_, kLogName, place(seen));
  return true;
}

template <class K>
bool WordList<K>::Homes::has_word(const Seen& owner, Word key) const {
  const Node* const node = list.node_in_range(*owner.node, list.keys_.view(key));
  return node != nullptr && pm::load(node->key) == key;
}

// --- Latches of ranges ---

/// Locks the range of a key. Returns false if the range has changed since it was found.
template <class K>
bool WordList<K>::lock_range(Locked& range, Key key) const {
  return range.try_lock(see_owner({key, true}));
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
  Locked range;
  if (!lock_range(range, write.key)) return std::nullopt;
  if (const auto found = find_buffered(*range.node, write.key)) {
    if (write.mode == Mode::insert) return false;
    return buffers_->replace(range, found, write.value, write.expected);
  }
  return write_to_list(range, write, erased);
}

/// write_range() for a key that the buffer of the locked range does not have.
template <class K>
std::optional<bool> WordList<K>::write_to_list(Locked& range, const Write& write, Erased& erased) {
  Node* const node = node_in_range(*range.node, write.key);
  if (node == nullptr) {
    if (write.mode == Mode::update) return false;
    return write_new(range, write, erased);
  }
  if (!is_hollow(*node)) return replace(*node, write, erased);
  if (write.mode == Mode::update) return false;
  if (node != range.node) {
    remove_by_key(write.key);  // a crash has kept it from being removed (L7)
  } else {
    range.latches.release();
    remove_hollow(write.key);
  }
  return std::nullopt;
}

/// write_range() for a key that the locked range does not have: adds it.
template <class K>
std::optional<bool> WordList<K>::write_new(Locked& range, const Write& write, Erased& erased) {
  using Added = typename Buffers::Added;
  const Added outcome = buffers_->add(range, write.key, write.value, Keys::hash16(write.key));
  if (outcome == Added::added) return true;
  if (outcome == Added::merged) return std::nullopt;
  // A tall node would divide the pairs of the buffer.
  Buffer* const buffer = buffer_of(*range.node);
  if (buffer != nullptr && !buffer->empty_chain() && wanted_height(write.key) >= kTall) {
    buffers_->merge(range, *buffer);
    return std::nullopt;
  }
  return write_node({write.key, write.value, Mode::insert, nullptr}, erased);
}

// --- Erases ---

/// erase_node() of a list with buffers. Returns nullopt if the range must be looked for again.
template <class K>
std::optional<bool> WordList<K>::erase_in_range(Key key, const NewValue* expected,
                                                Erased& erased) const {
  Locked range;
  if (!lock_range(range, key)) return std::nullopt;
  if (const auto found = find_buffered(*range.node, key))
    return erase_buffered(range, found, expected);
  const Node* const node = node_in_range(*range.node, key);
  if (node == nullptr || is_hollow(*node)) return false;
  if (node == range.node) return erase_owner(range, expected, erased);
  return erase_node(key, expected, erased);
}

/// Erases a pair of the buffer of a locked range, and a hollow owner with the last one.
template <class K>
bool WordList<K>::erase_buffered(Locked& range, const typename Buffers::Found& found,
                                 const NewValue* expected) const {
  if (!buffers_->erase(found, expected)) return false;
  if (found.buffer->size() == 0 && is_hollow(*range.node)) {
    range.latches.release();
    try {
      remove_hollow(key_of(*range.node));  // the last pair that needed it is gone
    } catch (const std::bad_alloc&) {
      // The next merge of the range removes it.
    }
  }
  return true;
}

/// Erases the pair of the owner of a locked range. While the range's buffer has pairs the node
/// stays, hollow (L7).
template <class K>
std::optional<bool> WordList<K>::erase_owner(Locked& range, const NewValue* expected,
                                             Erased& erased) const {
  Node& owner = *range.node;
  if (!value_is(owner, expected)) return false;
  Buffer* const buffer = buffer_of(owner);
  if (buffer != nullptr && buffer->size() == 0) buffers_->end_chain(*buffer);
  if (buffer == nullptr || buffer->empty_chain()) {
    range.latches.release();
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
    buffers_->take_from(pool_.offset(*owner));
  }
  return erase_node(key, expected, erased);
}

// --- Opening ---

/// Opens the write buffers of a list that has a log, or is to have one.
template <class K>
void WordList<K>::open_buffers(const SkipListOptions& options) {
  const std::uint64_t budget = buffer_budget(options);
  if (!has_log(pool_, log_of(head_), budget != 0)) return;
  // Few where the budget is small, since they are part of the DRAM that buffers take.
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
  ranges_ = std::make_unique<Latches>(budget < kLarge ? Latches::kBits - 3 : Latches::kBits);
  const typename Buffers::Parts parts{pool_, keys_, codec_, *ranges_, pairs_};
  auto buffers = std::make_unique<Buffers>(Homes{*this}, parts, Technique::b);
  buffers->open(pm::load(log_of(head_)), budget, nullptr);
  buffers_ = std::move(buffers);
  buffers_->start_resumption(options.resume_in_background);
}

template <class K>
bool WordList<K>::reclaim_space() noexcept {
  return buffers_ != nullptr && buffers_->reclaim_space();
}

}  // namespace perdix::detail::index::skiplist
