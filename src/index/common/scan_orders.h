// The orders of unsorted leaves. A scan that has sorted a leaf keeps the order in DRAM for the next
// scan, a byte for each pair.
//
//   Places places;
//   bool kept = orders.read(leaf, stamp, places);
//   if (!kept) sort the pairs of the leaf, beginning with what `places` has
//   if (kept && places.fresh() > 0) places.settle(...);
//   ... read the pairs, and validate that the leaf still has the stamp ...
//   if (one of the two was done) orders.keep_order(leaf, stamp, places);
//
// An order belongs to one state of its leaf. A stamp names the state: 64 bits that the engine
// chooses so that equal stamps of a leaf mean the same keys in the same places. So a change of a
// leaf outdates its order, unless the writer carries it over to the next state, by add() or
// follow(). A writer compares no keys for that, since those of a leaf are in as many lines: the
// place of a new pair comes behind the others and is fresh, and the next scan brings it to where it
// belongs. Only an index that was scanned has orders: in another one add() and follow() are a load.
//
// Invariants:
//   O1. An order whose stamp is neither kChanging nor kNew has the places of the pairs that the
//       leaf had in the state of that stamp: first those that are not fresh, ascending by their
//       keys, and then those that are. Orders are in DRAM only: after a restart there are none.
//   O2. All orders and the table that leads to them take at most the budget. A leaf for which the
//       budget has no room has no order, and each scan sorts it.
//   O3. An order is released a grace period after it was unlinked, or with its leaf's DRAM side.
//
// Thread-safe. Calls are made in an epoch::Guard, but for forget(). No call waits: an order that
// another thread is changing counts as missing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "epoch/reclaimer.h"
#include "util/arena.h"

namespace perdix::detail::index {

/// Where a pair lies in its leaf; the engine says what the numbers mean.
using PlaceInLeaf = std::uint8_t;

/// Places of a leaf's pairs. At most kMaxPlaces, of which the last ones may be fresh: not in order.
class Places {
 public:
  static constexpr unsigned kMaxPlaces = 160;
  static constexpr unsigned kMaxFresh = 16;

  unsigned size() const { return size_; }
  unsigned fresh() const { return fresh_; }
  PlaceInLeaf operator[](unsigned i) const { return places_[i]; }
  std::span<const PlaceInLeaf> span() const { return {places_.data(), size_}; }
  /// Those that are not fresh.
  std::span<const PlaceInLeaf> settled() const { return {places_.data(), size_ - fresh_}; }
  void clear() { size_ = fresh_ = 0; }
  void push(PlaceInLeaf place) {
    assert(size_ < kMaxPlaces && fresh_ == 0);
    places_[size_++] = place;
  }

  /// Removes a place, or returns false if it is not there.
  bool remove(PlaceInLeaf place) {
    // Not std::find(), which looks at a byte after the other.
    const void* const found = std::memchr(places_.data(), place, size_);
    if (found == nullptr) return false;
    const auto at = static_cast<unsigned>(static_cast<const PlaceInLeaf*>(found) - places_.data());
    if (size_ - at <= fresh_) --fresh_;
    --size_;
    std::memmove(&places_[at], &places_[at] + 1, size_ - at);
    return true;
  }

  /// Gives a pair another place, which no other one has.
  void rename(PlaceInLeaf place, PlaceInLeaf other) {
    std::replace(places_.begin(), places_.begin() + size_, place, other);
  }

  /// Brings the fresh ones to where they belong. `below(a, b)`: whether the key in place a is below
  /// that in b.
  template <class Below>
  void settle(Below below) {
    for (; fresh_ > 0; --fresh_) {
      const auto begin = places_.begin(), fresh = begin + (size_ - fresh_);
      const auto at = std::upper_bound(begin, fresh, *fresh, below);
      std::rotate(at, fresh, fresh + 1);
    }
  }

 private:
  friend class ScanOrder;

  unsigned size_ = 0;
  unsigned fresh_ = 0;
  alignas(8) std::array<PlaceInLeaf, kMaxPlaces> places_;  // of which `size_` are set
};

/// One leaf's order: a head of 16 bytes, and a byte for each pair that there is room for. Readers
/// copy it, and then check whether it changed during the copy.
class ScanOrder {
 public:
  using Stamp = std::uint64_t;

  /// Stamps of no state: of an order that is being changed, and of a new one.
  static constexpr Stamp kChanging = std::uint64_t{1} << 63;
  static constexpr Stamp kNew = kChanging + 1;

  /// How many pairs an order made for `pairs` pairs has room for; its bytes.
  static constexpr unsigned room_for(unsigned pairs) { return (pairs + kUnit - 1) / kUnit * kUnit; }
  static constexpr std::size_t bytes_for(unsigned room) { return sizeof(ScanOrder) + room; }

  /// For memory of bytes_for(room).
  explicit ScanOrder(unsigned room) : words_(static_cast<std::uint8_t>(room / kWord)) {}

  unsigned room() const { return words_ * kWord; }
  std::size_t bytes() const { return bytes_for(room()); }

  /// Copies the places; whether they are those of the stamp. If not they are anything: places of
  /// another state, or of none.
  bool read(Stamp stamp, Places& into) const {
    // A stamp may come back (an insert into a leaf and its erase); the number of changes does not.
    const std::uint32_t changes = changes_.load(std::memory_order_acquire);
    const Stamp before = stamp_.load(std::memory_order_acquire);
    copy_places(into);
    return before == stamp && changes_.load(std::memory_order_relaxed) == changes;
  }

  /// Replaces the places, for which there is room, by those of a stamp, none of them fresh; unless
  /// another thread is at it, or has been.
  void write(Stamp stamp, const Places& places) {
    assert(places.size() <= room() && places.fresh() == 0);
    const Stamp before = stamp_.load(std::memory_order_relaxed);
    if (before == stamp && fresh_.load(std::memory_order_relaxed) == 0) return;
    if (!begin_change(before)) return;
    store_places(places);
    stamp_.store(stamp, std::memory_order_release);
  }

  /// Moves on from a stamp to that of a state with one pair more. The order stays where it is if
  /// there is no room, and no more of them may be fresh: then it is outdated.
  void add(Stamp before, Stamp after, PlaceInLeaf place) {
    if (!begin_change(before)) return;
    const std::uint8_t size = size_.load(std::memory_order_relaxed);
    const std::uint8_t fresh = fresh_.load(std::memory_order_relaxed);
    const bool fits = size < room() && fresh < Places::kMaxFresh;
    if (fits) {
      std::atomic<std::uint64_t>& word = word_at(size / kWord);
      std::uint64_t bytes = word.load(std::memory_order_relaxed);
      std::memcpy(reinterpret_cast<char*>(&bytes) + size % kWord, &place, 1);
      word.store(bytes, std::memory_order_release);
      size_.store(size + 1, std::memory_order_release);
      fresh_.store(fresh + 1, std::memory_order_release);
    }
    stamp_.store(fits ? after : before, std::memory_order_release);
  }

  /// Moves on from a stamp to that of a state without the pair of a place. If the order does not
  /// have it, the places stay.
  void remove(Stamp before, Stamp after, PlaceInLeaf place) {
    if (!begin_change(before)) return;
    const unsigned size = size_.load(std::memory_order_relaxed), at = find(place, size);
    if (at < size) {
      close_gap(at, size);
      const unsigned fresh = fresh_.load(std::memory_order_relaxed);
      if (size - at <= fresh)
        fresh_.store(static_cast<std::uint8_t>(fresh - 1), std::memory_order_release);
      size_.store(static_cast<std::uint8_t>(size - 1), std::memory_order_release);
    }
    stamp_.store(after, std::memory_order_release);
  }

  /// Moves on from a stamp to that of a state whose places edit(places) makes of the former ones:
  /// not more than there were. The order stays where it is if that returns false.
  template <class Edit>
  void follow(Stamp before, Stamp after, Edit edit) {
    if (!begin_change(before)) return;
    Places places;
    copy_places(places);
    const bool done = edit(places);
    if (done) store_places(places);
    stamp_.store(done ? after : before, std::memory_order_release);
  }

  /// Moves on to another stamp with the same places.
  void restamp(Stamp before, Stamp after) {
    if (begin_change(before)) stamp_.store(after, std::memory_order_release);
  }

  void prefetch() const {
    __builtin_prefetch(this);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 64);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 128);
  }

 private:
  static constexpr unsigned kWord = sizeof(std::uint64_t);
  static constexpr unsigned kUnit = 16;  // so that the memory is a multiple of the arena's granule

  /// Whether no other thread changes the order, which has that stamp, before this one stores the
  /// next stamp. What is stored in between is stored with release: so a reader that sees some of it
  /// sees also that the number of changes is another one.
  bool begin_change(Stamp before) {
    if (before == kChanging || stamp_.load(std::memory_order_relaxed) != before) return false;
    if (!stamp_.compare_exchange_strong(before, kChanging, std::memory_order_acquire)) return false;
    // release: a reader that begins with this number does not see the stamp from before.
    changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return true;
  }

  // By words, as they are stored: copied bytes would wait for the stores of words.
  static_assert(std::endian::native == std::endian::little, "the first place is the lowest byte");

  /// Where a place is; not below `size` if nowhere.
  unsigned find(PlaceInLeaf place, unsigned size) const {
    constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;
    for (unsigned i = 0; i < size; i += kWord) {
      const std::uint64_t other =
          word_at(i / kWord).load(std::memory_order_relaxed) ^ kOnes * place;
      const std::uint64_t zeros = (other - kOnes) & ~other & kOnes << 7;  // the lowest is right
      if (zeros != 0) return i + static_cast<unsigned>(std::countr_zero(zeros)) / 8;
    }
    return size;
  }

  /// Moves what comes behind a place forward by one.
  void close_gap(unsigned at, unsigned size) {
    std::uint64_t stays = (std::uint64_t{1} << at % kWord * 8) - 1;
    for (unsigned word = at / kWord; word * kWord < size; ++word, stays = 0) {
      const std::uint64_t now = word_at(word).load(std::memory_order_relaxed);
      const bool last = (word + 1) * kWord >= size;
      const std::uint64_t next = last ? 0 : word_at(word + 1).load(std::memory_order_relaxed);
      word_at(word).store((now & stays) | ((now >> 8 | next << 56) & ~stays),
                          std::memory_order_release);
    }
  }

  void copy_places(Places& into) const {
    // acquire, with the release of a writer: read() looks at the number of changes after that.
    into.size_ = std::min<unsigned>(size_.load(std::memory_order_acquire), room());
    into.fresh_ = std::min<unsigned>(fresh_.load(std::memory_order_acquire), into.size_);
    for (unsigned i = 0; i < into.size_; i += kWord) {
      const std::uint64_t word = word_at(i / kWord).load(std::memory_order_acquire);
      std::memcpy(&into.places_[i], &word, sizeof word);
    }
  }

  void store_places(const Places& places) {
    size_.store(static_cast<std::uint8_t>(places.size()), std::memory_order_release);
    fresh_.store(static_cast<std::uint8_t>(places.fresh()), std::memory_order_release);
    for (unsigned i = 0; i < places.size(); i += kWord) {
      std::uint64_t word;
      std::memcpy(&word, &places.places_[i], sizeof word);
      word_at(i / kWord).store(word, std::memory_order_release);
    }
  }

  std::atomic<std::uint64_t>& word_at(unsigned i) { return words_begin()[i]; }
  const std::atomic<std::uint64_t>& word_at(unsigned i) const {
    return const_cast<ScanOrder*>(this)->words_begin()[i];
  }
  std::atomic<std::uint64_t>* words_begin() {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
  }

  std::atomic<Stamp> stamp_{kNew};
  std::atomic<std::uint32_t> changes_{0};  // that have begun; wraps around
  std::atomic<std::uint8_t> size_{0};
  std::atomic<std::uint8_t> fresh_{0};  // of these, the last ones
  const std::uint8_t words_;
};

static_assert(sizeof(ScanOrder) == 16 && Places::kMaxPlaces % 16 == 0);

/// The orders of an index. A leaf's number is a function of the address of its DRAM side, so that
/// no search leads to its order, and the DRAM side has nothing of it: a table has a link for each
/// number. The table comes in pages of links, which are made when they are needed, and a directory
/// of pages in levels, each twice as long as the one before. An index that is never scanned has
/// neither.
class ScanOrders {
 public:
  using Number = std::uint64_t;
  using Stamp = ScanOrder::Stamp;

  /// Arena and reclaimer outlive this; the reclaimer is drained before this goes.
  ScanOrders(util::Arena& arena, epoch::Reclaimer& reclaimer)
      : arena_(arena), reclaimer_(reclaimer) {}
  ScanOrders(const ScanOrders&) = delete;
  ScanOrders& operator=(const ScanOrders&) = delete;
  /// Releases the directory. The rest goes with the arena.
  ~ScanOrders() {
    for (unsigned level = 0; level < kLevels; ++level) {
      if (Page* pages = levels_[level].load(std::memory_order_relaxed))
        arena_.release(pages, pages_of(level) * sizeof(Page));
    }
  }

  /// Bytes of DRAM. Before the first use.
  void set_budget(std::uint64_t bytes) { budget_ = bytes; }
  std::uint64_t bytes_in_use() const { return in_use_.load(std::memory_order_relaxed); }

  /// Copies the places of a leaf's pairs; whether they are those of the stamp. If not they are
  /// anything. Cost: a line of the table, and those of the order.
  bool read(Number leaf, Stamp stamp, Places& into) const {
    into.clear();
    const ScanOrder* order = order_of(leaf);
    return order != nullptr && order->read(stamp, into);
  }

  // --- Carrying an order over. The caller has changed the leaf from the state `before` to `after`,
  // --- by nothing else, and no other states of the leaf have or get these stamps

  /// A pair came to a place.
  void add(Number leaf, Stamp before, Stamp after, PlaceInLeaf place) noexcept {
    if (ScanOrder* order = order_of(leaf)) order->add(before, after, place);
  }

  /// A pair left its place, which the order may lack.
  void remove(Number leaf, Stamp before, Stamp after, PlaceInLeaf place) noexcept {
    if (ScanOrder* order = order_of(leaf)) order->remove(before, after, place);
  }

  /// The places have become what edit(places) makes of them: not more. If that returns false the
  /// order is outdated.
  template <class Edit>
  void follow(Number leaf, Stamp before, Stamp after, Edit edit) noexcept {
    if (ScanOrder* order = order_of(leaf)) order->follow(before, after, edit);
  }

  /// The places are what they were.
  void restamp(Number leaf, Stamp before, Stamp after) noexcept {
    if (ScanOrder* order = order_of(leaf)) order->restamp(before, after);
  }

  /// Outdates an order that was carried over to a stamp: the leaf has changed once more.
  void outdate(Number leaf, Stamp stamp) noexcept { restamp(leaf, stamp, ScanOrder::kNew); }

  /// Asks for the line that leads to a leaf's order, and then for the order's.
  void prefetch_link(Number leaf) const { __builtin_prefetch(link_of(leaf)); }
  void prefetch(Number leaf) const {
    if (const ScanOrder* order = order_of(leaf)) order->prefetch();
  }

  /// Keeps an order, in one that has more room if need be. Where there is no memory for that the
  /// next scan sorts again.
  void keep_order(Number leaf, Stamp stamp, const Places& places) noexcept {
    Link* link = make_link(leaf);
    if (link == nullptr) return;
    ScanOrder* order = link->load(std::memory_order_acquire);
    if (order == nullptr || order->room() < places.size()) {
      order = replace(*link, order, places.size());
      if (order == nullptr) return;
    }
    order->write(stamp, places);
  }

  /// Releases the order of a leaf whose DRAM side no thread reads any more. To be called before
  /// another leaf can have the number.
  void forget(Number leaf) noexcept {
    Link* link = link_of(leaf);
    if (link == nullptr) return;
    if (ScanOrder* order = link->exchange(nullptr, std::memory_order_relaxed)) release(order);
  }

 private:
  using Link = std::atomic<ScanOrder*>;
  using Page = std::atomic<Link*>;

  static constexpr Number kLinks = 512;      // of a page: 4 KiB, the largest piece of an arena
  static constexpr unsigned kFirstBits = 6;  // of the number of pages in the first level
  static constexpr unsigned kLevels = 16;    // more than an arena has room for leaves

  struct Entry {
    explicit Entry(Number page)
        : level(static_cast<unsigned>(std::bit_width((page >> kFirstBits) + 1)) - 1),
          index(page - (((Number{1} << level) - 1) << kFirstBits)) {}
    unsigned level;
    Number index;  // in the level
  };

  static std::size_t pages_of(unsigned level) { return std::size_t{1} << (kFirstBits + level); }

  Link* link_of(Number leaf) const noexcept {
    const Entry entry(leaf / kLinks);
    Page* pages = levels_[entry.level].load(std::memory_order_acquire);
    if (pages == nullptr) return nullptr;
    Link* links = pages[entry.index].load(std::memory_order_acquire);
    return links == nullptr ? nullptr : &links[leaf % kLinks];
  }

  ScanOrder* order_of(Number leaf) const noexcept {
    const Link* link = link_of(leaf);
    return link == nullptr ? nullptr : link->load(std::memory_order_acquire);
  }

  // What follows returns nullptr if there is no memory or no budget, or another thread was faster.

  Link* make_link(Number leaf) noexcept {
    const Entry entry(leaf / kLinks);
    Page* pages = made(levels_[entry.level], pages_of(entry.level));
    if (pages == nullptr) return nullptr;
    Link* links = made(pages[entry.index], kLinks);
    return links == nullptr ? nullptr : &links[leaf % kLinks];
  }

  /// The array that this leads to; if there is none, a new one, which leads nowhere yet.
  template <class T>
  T* made(std::atomic<T*>& array, std::size_t count) noexcept {
    if (T* there = array.load(std::memory_order_acquire)) return there;
    auto* fresh = static_cast<T*>(allocate(count * sizeof(T)));
    if (fresh == nullptr) return nullptr;
    std::uninitialized_value_construct_n(fresh, count);
    T* none = nullptr;
    if (array.compare_exchange_strong(none, fresh, std::memory_order_acq_rel)) return fresh;
    give_back(fresh, count * sizeof(T));
    return none;
  }

  ScanOrder* replace(Link& link, ScanOrder* old, unsigned pairs) noexcept {
    constexpr unsigned kMore = 8;  // room for inserts, which come one by one
    const unsigned room = std::min(ScanOrder::room_for(pairs + kMore), Places::kMaxPlaces);
    void* memory = allocate(ScanOrder::bytes_for(room));
    if (memory == nullptr) return nullptr;
    auto* made = new (memory) ScanOrder(room);
    if (!link.compare_exchange_strong(old, made, std::memory_order_acq_rel)) {
      release(made);
      return nullptr;
    }
    if (old != nullptr) {
      const auto dispose = [](void* order, void* owner) {
        static_cast<ScanOrders*>(owner)->release(static_cast<ScanOrder*>(order));
      };
      reclaimer_.retire(old, dispose, this);
    }
    return made;
  }

  void release(ScanOrder* order) noexcept { give_back(order, order->bytes()); }

  void* allocate(std::size_t bytes) noexcept {
    const std::uint64_t before = in_use_.fetch_add(bytes, std::memory_order_relaxed);
    try {
      if (before + bytes <= budget_) return arena_.allocate(bytes);
    } catch (const std::bad_alloc&) {
      // As without a budget.
    }
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }

  void give_back(void* memory, std::size_t bytes) noexcept {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    arena_.release(memory, bytes);
  }

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  std::uint64_t budget_ = ~std::uint64_t{0};
  std::atomic<std::uint64_t> in_use_{0};  // of orders, of those that are retired, and of the table
  std::array<std::atomic<Page*>, kLevels> levels_{};
};

}  // namespace perdix::detail::index
