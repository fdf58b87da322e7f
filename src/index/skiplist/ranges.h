// Lookups and iteration in a list with write buffers (buffers.h): range by range.
//
// A range begins at a tall node of the list, its owner, and ends before the next one; the first one
// begins at the head. A thread that changes a range holds its latch, which is chosen by the owner's
// place: its links of levels 0 and 1, its values, what its buffer holds, and where it ends, which
// is the owner's link of level kTall - 1. So what was read of a range is right, and durable, if the
// version of its latch is still the same.
//
// An owner comes into its levels under its own latch, as a node, too: so a range that is new is
// looked at when that is free (owner_at).
#pragma once

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// The neighbours of a bound that the owner reaches, on level 0 of its range.
template <class K>
auto WordList<K>::descend_in_range(Node& owner, Bound bound) const -> Neighbours {
  return descend(owner, bound, kTall - 1, [](unsigned, const Neighbours&) {});
}

/// The last tall node that the bound reaches, by the cached path or from the head, or the head.
template <class K>
Node& WordList<K>::last_tall(Bound bound) const {
  if (Node* const near = path_ == nullptr ? nullptr : shortcut(bound)) return *near;
  const auto found = descend(
      head_, bound, std::max(levels(), kTall), [](unsigned, const Neighbours&) {}, kTall - 1);
  if (path_ != nullptr && found.before != &head_) add_to_path(*found.before);
  return *found.before;
}

/// A tall node as the owner of the bound's range; none if it is not, or no longer.
template <class K>
auto WordList<K>::owner_at(Node& tall, Bound bound, Erased& erased) const -> Seen {
  latch_of(tall).read_begin();  // waits for the thread that brings it into its levels
  const Seen seen = look(tall, range_latch(tall));
  if (is_gone(tall, erased)) return {};
  const Node* const end = next_of(tall, kTall - 1);
  if (end != nullptr && bound.reaches(key_of(*end))) return {};
  return seen;
}

/// The owner of the range with the last key that the bound may reach. Its chain is adopted.
template <class K>
auto WordList<K>::see_owner(Bound bound) const -> Seen {
  Erased erased;
  for (;;) {
    const Seen seen = owner_at(last_tall(bound), bound, erased);
    if (seen.node != nullptr && buffers_->ready(seen)) return seen;
    pm::on_step("skiplist: a range has changed");
  }
}

/// The node of a key of the range, which may be hollow; null if there is none.
template <class K>
Node* WordList<K>::node_in_range(Node& owner, Key key) const {
  if (is_own(owner, key)) return &owner;
  Node* const node = descend_in_range(owner, {key}).next;
  return has_key(node, key, Keys::hash16(key)) ? node : nullptr;
}

/// What a range has for the key. False if it has changed in between.
template <class K>
bool WordList<K>::look_into_range(const Seen& owner, Key key, std::optional<Word>& value) const {
  if (const auto found = find_buffered(*owner.node, key)) {
    value = found.value();
  } else {
    const Node* const node = node_in_range(*owner.node, key);
    value =
        node == nullptr || is_hollow(*node) ? std::nullopt : std::optional(pm::load(node->value));
  }
  return owner.valid();
}

/// The value's word of a key. `near`: a tall node before the key, or the head, as it was a moment
/// ago; may be null.
template <class K>
std::optional<Word> WordList<K>::find_in_ranges(Key key, Node* near) const {
  const Bound bound{key, true};
  Erased erased;
  for (Seen owner = near == nullptr ? Seen{} : owner_at(*near, bound, erased);; owner = {}) {
    if (owner.node == nullptr || !buffers_->ready(owner)) owner = see_owner(bound);
    std::optional<Word> value;
    if (look_into_range(owner, key, value)) return value;
    pm::on_step("skiplist: a lookup begins again");
  }
}

/// The last pair of the range's nodes that the bound reaches.
template <class K>
auto WordList<K>::last_in_list(Node& owner, Bound bound) const -> std::optional<Pair> {
  const Node* last = descend_in_range(owner, bound).before;
  while (last != &owner && is_hollow(*last))
    last = descend_in_range(owner, {key_of(*last), false}).before;
  if (last == &head_ || is_hollow(*last)) return std::nullopt;
  return Pair{pm::load(last->key), pm::load(last->value)};
}

/// The same of all that is in the range.
template <class K>
auto WordList<K>::last_of_range(Node& owner, Bound bound) const -> std::optional<Pair> {
  std::optional<Pair> last = last_in_list(owner, bound);
  const Buffer* const buffer = buffer_of(owner);
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i) {
    const Key key = keys_.view(buffer->key(i));
    if (!bound.reaches(key) || (last && !(keys_.view(last->key) < key))) continue;
    last = Pair{buffer->key(i), buffer->value(i)};
  }
  return last;
}

/// find_last_of() of a list with write buffers. A range that has nothing, since its owner is
/// hollow, still must not have anything when the one before it has been looked at.
template <class K>
auto WordList<K>::find_last_in_ranges(Bound bound) const -> std::optional<Pair> {
  for (;;) {
    const Seen owner = see_owner(bound);
    std::optional<Pair> last = last_of_range(*owner.node, bound);
    if (!last && owner.node != &head_) last = find_last_in_ranges({key_of(*owner.node), false});
    if (owner.valid()) return last;
    pm::on_step("skiplist: a lookup begins again");
  }
}

/// Adds the pairs of a range with key >= from until there are `most`. Returns the key from which it
/// goes on; none behind the last range. `following`: the owner of the next range, if it goes on
/// there.
template <class K>
auto WordList<K>::show_range(const Seen& owner, Key from, std::size_t most, Shown& shown,
                             Seen& following) const -> std::optional<Key> {
  const auto buffered = buffers_->sorted(pool_.offset(owner.node), from);
  Node* const end = next_of(*owner.node, kTall - 1);
  const bool from_owner = owner.node != &head_ && !(key_of(*owner.node) < from);
  const Node* node = from_owner ? owner.node : descend_in_range(*owner.node, {from}).next;
  for (unsigned i = 0;;) {
    const bool in_list = node != nullptr && node != end;
    const bool hollow = in_list && is_hollow(*node);
    const bool in_buffer =
        i < buffered.size && (!in_list || keys_.view(buffered.pairs[i].key) < key_of(*node));
    if (!in_list && !in_buffer) break;
    if (shown.size == most && !hollow)
      return in_buffer ? keys_.view(buffered.pairs[i].key) : key_of(*node);
    if (in_buffer && shown.size < most) {
      shown.add(nullptr, buffered.pairs[i++]);
      continue;
    }
    if (!hollow) shown.add(node, {pm::load(node->key), pm::load(node->value)});
    const Node* const next = next_of(*node, 0);
    if (next != nullptr) require_ascending(*node, *next);
    node = next;
  }
  if (end == nullptr) return std::nullopt;
  following = look(*end, range_latch(*end));
  return key_of(*end);
}

/// Calls add(node, key, value) for pairs from a position on, at most `most` and no more than
/// kPairsAtOnce, each as its range was at one moment; the node is null for a pair that is in a
/// buffer. Moves the position behind them; false if there are no more. `at`: the owner of the
/// position's range, or none.
template <class K>
template <class Add>
bool WordList<K>::collect_ranges(Seen& at, K& position, std::size_t most, Add add) const {
  most = std::min<std::size_t>(most, kPairsAtOnce);
  Shown shown;
  Key from = position;
  bool more = true;
  while (more && shown.size < most) {
    if (at.node == nullptr || !at.valid() || !buffers_->ready(at)) at = see_owner({from, true});
    const unsigned before = shown.size;
    Seen following = at;
    const std::optional<Key> next = show_range(at, from, most, shown, following);
    if (!at.valid()) {
      shown.size = before;
      continue;
    }
    at = following;
    more = next.has_value();
    if (more) from = *next;
  }
  for (unsigned i = 0; i < shown.size; ++i)
    add(shown.pairs[i].node, shown.pairs[i].pair.key, shown.pairs[i].pair.value);
  if (more) position = K(from);
  return more;
}

}  // namespace perdix::detail::index::skiplist
