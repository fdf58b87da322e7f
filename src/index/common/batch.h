// Scans of all engines: pairs are copied under an epoch::Guard and shown without
// one. So a visitor may do what its thread may do elsewhere, for any time, and may even wait for
// grace periods: it does not delay reclamation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <perdix/types.h>

#include "index/common/codec.h"
#include "index/common/copied_pairs.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

/// Bytes that are appended, and memory that is used again. (A std::string would do, but it checks
/// its capacity and writes a zero for each string that is appended.)
class ByteBuffer {
 public:
  /// Empties it; gives memory of more than `max_kept` bytes back.
  void clear(std::size_t max_kept) {
    if (capacity_ > max_kept) *this = {};
    size_ = 0;
  }

  void make_room(std::size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      grow(bytes);
  }

  /// There is room.
  void append(std::string_view bytes) {
    if (bytes.empty()) return;  // neither side need have an address then
    std::memcpy(bytes_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }

  std::size_t size() const { return size_; }
  const char* begin() const { return bytes_.get(); }

 private:
  [[gnu::noinline]] void grow(std::size_t bytes) {
    const std::size_t capacity = std::max(2 * capacity_, size_ + bytes);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

/// Keys would be shown out of order, or twice.
[[noreturn]] void throw_unordered(const pool::PoolCore& pool);

/// The pairs of some leaves, on their way to a visitor. Under a Guard: clear(), add(),
/// copy_pairs(). After that copied(), in no Guard: nothing in it refers to the pool any more. Not
/// thread-safe.
///
/// Memory: integers lie in the object. The bytes of strings lie in a buffer that is used again by
/// the next batch; a batch ends before it would have more than its budget of them, which is small
/// at first, since many scans are short, and doubles up to kMaxBytes. One pair fits always.
///
/// `Order` is that of the keys.
template <Storable K, unsigned kCapacity, class Order = std::less<>>
class Batch {
 public:
  using Key = View<K>;

  static constexpr std::size_t kFirstBytes = std::size_t{16} << 10;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  void clear() { size_ = 0; }

  /// How many pairs to read into it, of at most `limit`, if one more is added, with which the next
  /// batch begins. Without a limit a visitor says nothing of its end before it is there, so it is
  /// taken to go on for about as long as it has: what lies beyond the end is read in vain.
  unsigned worth_reading(std::size_t limit) const {
    constexpr std::size_t kFirst = 64, kNone = ~std::size_t{0} / 2;
    const std::size_t wanted = limit < kNone ? limit : std::max(kFirst, shown_);
    return static_cast<unsigned>(std::min<std::size_t>(wanted, kCapacity - 1));
  }

  /// A pair of a leaf, behind those that were added before in the order of the keys. The key's
  /// bytes stay where they are until copy_pairs() has returned.
  void add(Key key, Word value) { pairs_[size_++] = {key, value}; }

  /// How many were added; takes the last ones back, down to so many.
  unsigned added() const { return size_; }
  void truncate(unsigned count) { size_ = count; }

  /// Copies the pairs that will be shown, beginning with the first: as many as the budget has room
  /// for, at most `limit`. `values` has is_inline(), and prefetch() and view() of the words of
  /// strings. Throws corrupt, also if their keys are not in order, and bad_alloc.
  template <class Values>
  void copy_pairs(const pool::PoolCore& pool, const Values& values, std::size_t limit) {
    count_ = static_cast<unsigned>(std::min<std::size_t>(size_, limit));
    const unsigned checked = std::min(size_, count_ + 1);  // with next_key()
    bool in_order = true;                                  // without a branch for each pair
    for (unsigned i = 1; i < checked; ++i) in_order &= Order()(pairs_[i - 1].key, pairs_[i].key);
    if (!in_order) throw_unordered(pool);
    if (!Codec<K>::kInline || !values.is_inline()) count_ = copy_bytes(values, count_);
    shown_ += count_;
  }

  /// How many pairs copy_pairs() copied, and whether those were all.
  std::size_t size() const { return count_; }
  bool complete() const { return count_ == size_; }

  /// The key of the first pair that was not copied. In the Guard only.
  Key next_key() const { return pairs_[count_].key; }

  /// Throws corrupt if `next`, from where the scan goes on, is not behind all pairs: a damaged leaf
  /// has a key that it may not have. In the Guard only.
  void require_below(const pool::PoolCore& pool, Key next) const {
    if (size_ > 0 && !(pairs_[size_ - 1].key < next)) throw_unordered(pool);
  }

  /// The pairs of copy_pairs(). Valid until the batch changes.
  CopiedPairs<K> copied() const { return {std::span(pairs_).first(count_), bytes_.begin()}; }

 private:
  /// The bytes of the first pairs into the buffer, key after value after key. Returns how many
  /// pairs.
  template <class Values>
  unsigned copy_bytes(const Values& values, unsigned count) {
    const bool numbers = values.is_inline();
    bytes_.clear(2 * kMaxBytes);
    for (unsigned i = 0; !numbers && i < count; ++i) values.prefetch(pairs_[i].value);
    for (unsigned i = 0; i < count; ++i) {
      CopiedPair<K>& pair = pairs_[i];
      const std::string_view value = numbers ? std::string_view() : values.view(pair.value);
      const std::size_t bytes = length(pair.key) + value.size();
      if (i > 0 && bytes_.size() + bytes > budget_) {
        count = i;
        break;
      }
      bytes_.make_room(bytes);
      append(pair.key);
      bytes_.append(value);
      if (!numbers) pair.value = value.size();
    }
    budget_ = std::min(2 * budget_, kMaxBytes);
    return count;
  }

  static std::size_t length(std::uint64_t) { return 0; }
  static std::size_t length(std::string_view bytes) { return bytes.size(); }
  void append(std::uint64_t) {}
  void append(std::string_view bytes) { bytes_.append(bytes); }

  std::array<CopiedPair<K>, kCapacity> pairs_;
  unsigned size_ = 0;
  unsigned count_ = 0;
  std::size_t shown_ = 0;  // pairs of this and all batches before
  std::size_t budget_ = kFirstBytes;
  ByteBuffer bytes_;
};

/// Shows the pairs with key >= from, at most `limit`, until the sink has seen enough. `read(batch,
/// position, limit)` enters a Guard and fills the batch with pairs with key >= position, at most
/// `limit`. It moves `position` behind them, and returns false if no pairs come after them. What
/// `read` throws leaves as perdix::Error; what the sink throws leaves unchanged.
template <class Batch, Storable K, class Read>
void scan_by_batches(const pool::PoolCore& pool, View<K> from, std::size_t limit,
                     const PairSink<K>& show, Read read) {
  K position = pool::as_errors(pool, [&] { return K(from); });
  Batch batch;
  for (bool more = true; more && limit > 0; limit -= batch.size()) {
    more = pool::as_errors(pool, [&] { return read(batch, position, limit); });
    if (!show(batch.copied()).all) return;
  }
}

}  // namespace perdix::detail::index
