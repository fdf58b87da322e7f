// The orders of unsorted leaves. A scan that has sorted a leaf keeps the order in DRAM for the next
// scan, a byte for each pair.
//
//   Places places;
//   bool kept = orders.read(leaf, stamp, places);
//   if (!kept) sort the pairs of the leaf, beginning with what `places` has
//   ... read the pairs, and validate that the leaf still has the stamp ...
//   if (!kept) orders.keep_order(leaf, stamp, places);
//
// An order belongs to one state of its leaf. A stamp names the state: 64 bits that the engine
// chooses so that equal stamps of a leaf mean the same keys in the same places. Writers do nothing
// for orders, since each change of a leaf changes its stamp anyway. The next scan brings the order
// up to date: the old order is usually nearly right, so one pass is enough.
//
// Invariants:
//   O1. An order whose stamp is neither kChanging nor kNew has the places of the pairs that the
//       leaf had in the state of that stamp, ascending by their keys. Orders are in DRAM only:
//       after a restart there are none.
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

/// Places of a leaf's pairs. At most kMaxPlaces.
class Places {
 public:
  static constexpr unsigned kMaxPlaces = 160;

  unsigned size() const { return size_; }
  PlaceInLeaf operator[](unsigned i) const { return places_[i]; }
  std::span<const PlaceInLeaf> span() const { return {places_.data(), size_}; }
  void clear() { size_ = 0; }
  void push(PlaceInLeaf place) {
    assert(size_ < kMaxPlaces);
    places_[size_++] = place;
  }

 private:
  friend class ScanOrder;

  unsigned size_ = 0;
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
    // acquire, with the release in write(): a reader that sees a word of a later change sees below
    // that the change has begun.
    into.size_ = std::min<unsigned>(size_.load(std::memory_order_acquire), room());
    for (unsigned i = 0; i < into.size_; i += kWord) {
      const std::uint64_t word = word_at(i / kWord).load(std::memory_order_acquire);
      std::memcpy(&into.places_[i], &word, sizeof word);
    }
    return before == stamp && changes_.load(std::memory_order_relaxed) == changes;
  }

  /// Replaces the places, for which there is room, by those of a stamp; unless another thread is at
  /// it, or has been.
  void write(Stamp stamp, const Places& places) {
    assert(places.size() <= room());
    Stamp before = stamp_.load(std::memory_order_relaxed);
    if (before == stamp || before == kChanging) return;
    if (!stamp_.compare_exchange_strong(before, kChanging, std::memory_order_acquire)) return;
    const std::uint32_t changes = changes_.load(std::memory_order_relaxed);  // only this thread's
    changes_.store(changes + 1, std::memory_order_relaxed);
    // release: the number before all of this, as read() needs it.
    size_.store(static_cast<std::uint8_t>(places.size()), std::memory_order_release);
    for (unsigned i = 0; i < places.size(); i += kWord) {
      std::uint64_t word;
      std::memcpy(&word, &places.places_[i], sizeof word);
      word_at(i / kWord).store(word, std::memory_order_release);
    }
    stamp_.store(stamp, std::memory_order_release);
  }

  void prefetch() const {
    __builtin_prefetch(this);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 64);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 128);
  }

 private:
  static constexpr unsigned kWord = sizeof(std::uint64_t);
  static constexpr unsigned kUnit = 16;  // so that the memory is a multiple of the arena's granule

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

  const ScanOrder* order_of(Number leaf) const noexcept {
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
