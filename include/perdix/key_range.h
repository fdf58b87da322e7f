// A part of an ordered index as a C++20 range.
#pragma once

#include <cassert>
#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/cursor.h>
#include <perdix/types.h>

namespace perdix {

/// The first key behind all that begin with these bytes; none if all bytes are 0xff, or there are
/// none.
std::optional<std::string> end_of_prefix(std::string_view bytes);

/// The pairs with from <= key < to, upwards or downwards, as an input range of std::pair<K, V>.
///
///   for (const auto& [key, value] : orders.range(1000, 2000)) ...
///   for (const auto& [key, value] : orders.range(1000, 2000).reversed()) ...
///
/// It is a view of the index as it is during the loop, not a snapshot, and an iterator moves as a
/// Cursor does. Whatever is erased, inserted or replaced meanwhile, a loop stays inside of the
/// range, shows keys in strict order, so none twice, and ends at the bound. Each pair that it shows
/// was present, and each key that it passes over was absent, at some instant of the loop. The loop
/// may itself write to the index, and erase what it is shown.
///
/// std::views that go once and forward work, such as take, filter, transform and keys. An iterator
/// can't go back, and two loops may see different pairs. So what needs more, such as
/// std::views::reverse, does not compile. `Ordered` is an OrderedIndex or Index, which must neither
/// move nor end before the range.
template <class Ordered, Storable K, Storable V, Direction kDirection = Direction::up>
class KeyRange : public std::ranges::view_base {
 public:
  /// A key and its value, as copies.
  using Pair = std::pair<K, V>;
  /// A range over this part of the index in the other direction.
  using Reversed =
      KeyRange<Ordered, K, V, kDirection == Direction::up ? Direction::down : Direction::up>;

  /// A place in the range: a pair, or the end. The range must outlive it.
  class Iterator {
   public:
    /// The type of the pair that `*i` refers to.
    using value_type = Pair;
    /// For std::iterator_traits; iterators have no difference.
    using difference_type = std::ptrdiff_t;
    /// An iterator goes over the pairs once, and forward.
    using iterator_concept = std::input_iterator_tag;

    /// The pair, as it was when it was read. Valid until the iterator moves or ends. Not at the
    /// end: asserted where a program is compiled without NDEBUG.
    const Pair& operator*() const {
      assert(!ended() && "an iterator at the end of a range has no pair");
      return cursor_.pair();
    }
    /// As `*i`.
    const Pair* operator->() const { return &**this; }

    /// Goes to the next key in the direction. Throws as Cursor::next().
    Iterator& operator++() {
      kDirection == Direction::up ? cursor_.next() : cursor_.prev();
      return *this;
    }
    /// As `++i`.
    void operator++(int) { ++*this; }

    /// Returns whether all pairs were shown.
    friend bool operator==(const Iterator& i, std::default_sentinel_t) { return i.ended(); }

   private:
    friend class KeyRange;
    explicit Iterator(const KeyRange& range) : range_(&range), cursor_(*range.index_) {
      range.seek(cursor_);
    }
    bool ended() const { return !cursor_.valid() || !range_->reaches(cursor_.key()); }

    const KeyRange* range_;
    Cursor<Ordered, K, V> cursor_;
  };

  /// Without `to` up to the last key.
  KeyRange(const Ordered& index, K from, std::optional<K> to)
      : index_(&index), from_(std::move(from)), to_(std::move(to)) {}

  /// Returns the range of these pairs in the other direction.
  Reversed reversed() const { return Reversed(*index_, from_, to_); }

  /// The first pair in the direction of the range.
  Iterator begin() const { return Iterator(*this); }
  /// Behind the last pair.
  std::default_sentinel_t end() const { return {}; }

  /// Returns whether there is no pair in the range at an instant of the call. Cost: a lookup.
  bool empty() const { return begin() == end(); }

  /// The first pair in the direction of the range; none if it is empty. Cost: a lookup.
  std::optional<Pair> front() const {
    const Iterator first = begin();
    return first == end() ? std::nullopt : std::optional<Pair>(*first);
  }

 private:
  void seek(Cursor<Ordered, K, V>& cursor) const {
    if constexpr (kDirection == Direction::up) {
      cursor.seek(from_);
    } else {
      to_ ? cursor.seek_below(*to_) : cursor.seek_last();
    }
  }

  /// Returns whether a key to which the loop has come is on this side of the range's other end.
  bool reaches(View<K> key) const {
    if constexpr (kDirection == Direction::up) {
      return !to_ || key < View<K>(*to_);
    } else {
      return !(key < View<K>(from_));
    }
  }

  const Ordered* index_;
  K from_;
  std::optional<K> to_;
};

}  // namespace perdix
