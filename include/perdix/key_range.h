// A part of an ordered index as a C++20 range.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/types.h>

namespace perdix {

/// The first key behind all that begin with these bytes; none if all bytes are 0xff, or there are
/// none.
std::optional<std::string> end_of_prefix(std::string_view bytes);

/// The pairs with from <= key < to, as a bidirectional range of std::pair<K, V>.
///
///   for (const auto& [key, value] : orders.range(1000, 2000)) ...
///   for (const auto& [key, value] : orders.range(1000, 2000) | std::views::reverse) ...
///
/// It is a view of the index as it is at each step, not a snapshot: an iterator moves as a Cursor
/// does. Iterators of the same range are equal if they are at the same key, or both behind the last
/// one; they end with it. `Ordered` is an OrderedIndex, which must neither move nor end before the
/// range.
template <class Ordered, Storable K, Storable V>
class KeyRange : public std::ranges::view_base {
 public:
  /// A place in the range: a pair, or the end.
  class Iterator {
   public:
    /// A key and its value, as copies.
    using value_type = std::pair<K, V>;
    /// The same: `*i` is no reference.
    using reference = value_type;
    /// For std::iterator_traits; iterators have no difference.
    using difference_type = std::ptrdiff_t;
    /// It goes in both directions.
    using iterator_concept = std::bidirectional_iterator_tag;
    /// What it is for algorithms of before C++20.
    using iterator_category = std::input_iterator_tag;  // `*i` is no reference

    Iterator() = default;

    /// The pair, as it was when the iterator moved here.
    value_type operator*() const { return *pair_; }

    /// Goes to the next larger key.
    Iterator& operator++() {
      pair_ = range_->within(range_->index_->after(pair_->first));
      return *this;
    }
    /// Goes to the next smaller key; from the end, to the last pair.
    Iterator& operator--() {
      pair_ = pair_ ? range_->index_->before(pair_->first) : range_->last();
      return *this;
    }
    /// Goes on, and returns where it was.
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    /// Goes back, and returns where it was.
    Iterator operator--(int) {
      Iterator before = *this;
      --*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      if (!a.pair_ || !b.pair_) return a.pair_.has_value() == b.pair_.has_value();
      return a.pair_->first == b.pair_->first;
    }

   private:
    friend class KeyRange;
    Iterator(const KeyRange& range, std::optional<value_type> pair)
        : range_(&range), pair_(std::move(pair)) {}

    const KeyRange* range_ = nullptr;
    std::optional<value_type> pair_;  // none: behind the last one
  };

  /// Without `to` up to the last key.
  KeyRange(const Ordered& index, K from, std::optional<K> to)
      : index_(&index), from_(std::move(from)), to_(std::move(to)) {}

  /// The first pair of the range.
  Iterator begin() const { return Iterator(*this, within(index_->lower_bound(from_))); }
  /// Behind the last pair of the range.
  Iterator end() const { return Iterator(*this, std::nullopt); }

 private:
  using Pair = std::pair<K, V>;

  std::optional<Pair> within(std::optional<Pair> pair) const {
    if (pair && to_ && !(pair->first < *to_)) return std::nullopt;
    return pair;
  }
  std::optional<Pair> last() const { return to_ ? index_->before(*to_) : index_->last(); }

  const Ordered* index_;
  K from_;
  std::optional<K> to_;
};

}  // namespace perdix
