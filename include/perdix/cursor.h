// A position in an ordered index.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <perdix/argument.h>
#include <perdix/types.h>

namespace perdix {

/// Where a cursor or a range goes.
enum class Direction : std::uint8_t {
  up,    ///< towards larger keys
  down,  ///< towards smaller keys
};

/// Moves over the pairs of an ordered index in both directions.
///
///   auto cursor = orders.cursor();
///   for (cursor.seek(1000); cursor.valid(); cursor.next()) use(cursor.key(), cursor.value());
///
/// A cursor owns copies of its pair and of some that follow, and holds nothing of the index between
/// calls: no lock, no guard. So it survives any change of the index, also the erasure of its pair,
/// and a resting cursor delays no other thread.
///
/// A seek, the first move after it and the first move in the other direction search: they go to the
/// pair that is next at an instant of the call. Such a move reads ahead: 16 pairs, and then twice
/// as many each time, up to 256 upwards and 64 downwards, as long as they have at most 16 KiB of
/// strings. Further moves in that direction show what was read. So a pair may be shown that was
/// erased or replaced after it was read, and one that was inserted since then may be passed over.
/// Each pair that a cursor shows was present, and each key that it passes over was absent, at some
/// instant since its last seek or its last move in the other direction. Keys ascend or descend
/// strictly, whatever is written meanwhile.
///
/// Cost of a move: a copy of the pair and a share of the next read, up to 1.5 times what a scan()
/// costs for each pair upwards and up to twice as much downwards; a lookup for each seek, and for
/// each move down with Tips or a SkipList that has write buffers.
///
/// A cursor that is not valid has no pair: reading or stepping it is undefined. Programs that are
/// compiled with assertions (without NDEBUG) end there with a message.
///
/// Not thread-safe: a cursor belongs to one thread. Calls throw as scan() does; the cursor is then
/// where it was. `Ordered` is an OrderedIndex or Index, which must neither move nor end before its
/// cursors.
template <class Ordered, Storable K, Storable V>
class Cursor {
 public:
  /// A key and its value, as copies.
  using Pair = std::pair<K, V>;

  /// Nowhere: not valid.
  explicit Cursor(const Ordered& index) : index_(&index) {}

  /// Goes to the first pair with a key that is not less.
  void seek(Argument<K> key) { stand_at(index_->lower_bound(key)); }

  /// Goes to the last pair with a key that is not greater.
  void seek_floor(Argument<K> key) { stand_at(index_->floor(key)); }

  /// Goes to the last pair with a smaller key.
  void seek_below(Argument<K> key) { stand_at(index_->before(key)); }

  /// Goes to the pair with the smallest key.
  void seek_first() { stand_at(index_->first()); }
  /// Goes to the pair with the largest key.
  void seek_last() { stand_at(index_->last()); }

  /// Goes to the next larger key; not valid if there is none. Only if valid() is true.
  void next() { step(Direction::up); }
  /// Goes to the next smaller key; not valid if there is none. Only if valid() is true.
  void prev() { step(Direction::down); }

  /// Returns whether the cursor has a pair.
  bool valid() const noexcept { return at_ < count_ && !pairs_.empty(); }  // empty: moved from

  /// The pair, as it was when it was read. Valid until the cursor moves. Only if valid() is true.
  const Pair& pair() const noexcept {
    require_valid();
    return pairs_[at_];
  }
  /// The key of that pair. Only if valid() is true.
  View<K> key() const noexcept { return pair().first; }
  /// The value of that pair. Only if valid() is true.
  View<V> value() const noexcept { return pair().second; }

 private:
  static constexpr std::size_t kFirstAhead = 16;
  static constexpr std::size_t kMaxAhead = 256;

  void stand_at(std::optional<Pair> pair) {
    forget_last();
    count_ = at_ = 0;
    limit_ = kFirstAhead;
    if (!pair) return;
    if (pairs_.empty()) pairs_.emplace_back();
    pairs_.front() = std::move(*pair);
    count_ = 1;
  }

  void require_valid() const noexcept {
    assert(valid() && "a cursor that is not valid() has no pair and can't be moved by a step");
  }

  void step(Direction direction) {
    require_valid();
    if (direction == direction_ && at_ + 1 < count_) {
      ++at_;
    } else {
      read_ahead(direction);
    }
  }

  void read_ahead(Direction direction) {
    if (direction != direction_) limit_ = kFirstAhead;
    std::swap(here_, pairs_[at_]);
    forget_last();
    at_ = 0;
    try {
      count_ = index_->read_beyond(here_.first, direction, limit_, pairs_);
    } catch (...) {
      std::swap(here_, pairs_.front());
      count_ = 1;
      throw;
    }
    forget_if_large(here_);
    direction_ = direction;
    limit_ = std::min(2 * limit_, kMaxAhead);
  }

  // Memory of strings is kept for the next read, but not of large ones. Only the last pair of a
  // read may be large, since it ends with that.
  void forget_last() {
    if (count_ > 0 && !pairs_.empty()) forget_if_large(pairs_[count_ - 1]);
  }
  static void forget_if_large(Pair& pair) {
    constexpr std::size_t kLarge = std::size_t{16} << 10;
    if (capacity(pair.first) + capacity(pair.second) > kLarge) Pair().swap(pair);
  }
  static std::size_t capacity(std::uint64_t) { return 0; }
  static std::size_t capacity(const std::string& bytes) { return bytes.capacity(); }

  const Ordered* index_;
  std::vector<Pair> pairs_;  // the first `count_` are what was read at once, nearest first
  std::size_t count_ = 0;
  std::size_t at_ = 0;               // of these, the one where the cursor is
  Pair here_;                        // while pairs are read: where it is
  std::size_t limit_ = kFirstAhead;  // of the next read
  Direction direction_ = Direction::up;
};

}  // namespace perdix
