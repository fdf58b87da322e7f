// A lock-free hash table (Shalev and Shavit, J. ACM 2006): one list of all pairs in the order of
// their hashes (Harris, DISC 2001; Michael, SPAA 2002), and a directory of places in it. No pair
// ever moves.
//
// Level n of the directory has 2^(n-1) places, which halve the ranges of hashes between those of
// the levels before. A level is added when there are many pairs, and taken away when there are few.
// A write makes the place that it would begin at; where there is no memory for it, and in lookups,
// the place before does.
//
//   L1. The list ascends strictly, by order and key. The order of a pair is its hash with the
//       lowest bit set; that of a place is the least hash behind it, which is even.
//   L2. An element that is to leave the list is first marked in its own link, which never changes
//       again. So nothing is inserted behind it, and a reader that stands there continues to the
//       next one.
//   L3. The thread that unlinks it frees it, in the operation that unlinks.
//   L4. A place leaves the directory between its mark and its unlinking or later, but in the same
//       operation as its mark. A thread that finds a marked place in the directory skips it.
//
// Calls that write one key come one after another; all others may meet.
//
// `Memory` is where it lies: Volatile or Durable (perdix/tips_plugin.h). Volatile frees memory
// immediately, so its readers must exclude writers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "plugins/lfhash/levels.h"
#include "plugins/lfhash/list.h"

namespace perdix::tips::plugins {

template <class Memory, class Keys>
class LfHash {
  using Order = lfhash::Order;
  using Link = lfhash::Link;
  using Place = lfhash::ListPlace;
  using Node = lfhash::Node;
  using Entry = lfhash::Entry;
  using Spot = lfhash::Spot;
  using List = lfhash::ListChanges<Memory>;
  template <class T>
  using Own = typename List::template Own<T>;

 public:
  bool put(Word key, Word value, Word& old) {
    const Order order = order_of(key);
    make_place(order);
    for (Own<Node> node;;) {
      const std::optional<Spot> spot = find_spot(order, key);
      if (!spot) continue;
      if (holds(spot->at, order, key)) {
        old = List::change(node_at(*spot->at).value).exchange(value, std::memory_order_acq_rel);
        return true;
      }
      if (node == nullptr) node = List::template make<Node>(order, key, value);
      if (!List::link_in(*spot, *node)) continue;
      node.release();
      break;
    }
    if (List::change(size_).fetch_add(1) + 1 > kDense << bits_.load()) grow();
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const Order order = order_of(key);
    for (;;) {
      const std::optional<Spot> spot = find_spot(order, key);
      if (!spot) continue;
      if (!holds(spot->at, order, key)) return false;
      Node& node = node_at(*spot->at);
      List::mark(node);
      old_key = node.key, old_value = node.value.load(std::memory_order_acquire);
      if (!List::unlink(*spot)) pass_by(order, key);
      break;
    }
    List::change(size_).fetch_sub(1);
    shrink();
    return true;
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    const Order order = order_of(key);
    const Place* place = place_before(trust, order);
    while (place != nullptr) {
      place = lfhash::place_at(place->next.load(std::memory_order_acquire));
      if (place == nullptr) return false;
      if (!is_readable(trust, place)) break;
      if (place->order > order) return false;
      if (place->order < order) continue;
      const Node& node = node_at(*place);
      if (!trust.key(node.key)) break;
      if (!Keys::equal(node.key, key)) continue;
      value = node.value.load(std::memory_order_acquire);
      return !is_marked(node);
    }
    return trust.damaged();
  }

  std::uint64_t size() const { return size_.load(); }

  /// Shows the pairs of a range of hashes, from a hash on. Returns the first hash behind it.
  std::uint64_t walk(std::uint64_t hash, void* context, ShowPair show) const {
    const std::uint64_t bits = bits_.load();
    const std::uint64_t last = bits == 0 ? ~std::uint64_t{0} : hash | ~std::uint64_t{0} >> bits;
    const Place* place = place_before(Trusting(), hash);
    for (;;) {
      place = lfhash::place_at(place->next.load(std::memory_order_acquire));
      if (place == nullptr || place->order > last) return last + 1;
      if (place->order < hash || !is_pair(*place) || is_marked(*place)) continue;
      const Node& node = node_at(*place);
      show(context, node.key, node.value.load(std::memory_order_acquire));
    }
  }

  bool inspect(Inspector& inspector) const {
    std::uint64_t listed = 0, pairs = 0;  // places that are in the directory, and pairs
    if (bits_ > lfhash::kMaxBits || !levels_.inspect(inspector, bits_, listed)) return false;
    const Place* before = nullptr;
    for (Link link = head_.next; link != 0; link = before->next) {
      if ((link & lfhash::kMarked) != 0) return false;
      if (!inspector.readable(lfhash::place_at(link), sizeof(Place))) return false;
      const Place& place = *lfhash::place_at(link);
      if (!inspector.node(&place, bytes_of(place))) return false;
      if (!is_pair(place)) {
        if (before != nullptr && before->order >= place.order) return false;
        listed -= levels_.is_listed(place) ? 1 : 0;
      } else if (!inspect_pair(inspector, before, node_at(place)) || ++pairs == 0) {
        return false;
      }
      before = &place;
    }
    return listed == 0 && pairs == size_;
  }

  void renew_locks() { new (&resizing_) SpinLock; }

  /// A pair, and a place. Further levels of the directory are done without.
  static constexpr PutTakes put_takes() { return {{{sizeof(Node), 1}, {sizeof(Place), 1}}}; }

 private:
  static constexpr std::uint64_t kDense = 2;   // pairs for a place of the directory
  static constexpr std::uint64_t kSparse = 2;  // places for a pair
  static constexpr unsigned kAtOnce = 16;      // places that an erase takes away

  static Order order_of(Word key) { return Keys::hash(key) | 1; }
  static bool holds(const Place* place, Order order, Word key) {
    return place != nullptr && place->order == order && Keys::equal(node_at(*place).key, key);
  }
  static bool comes_before(const Place& place, Order order, Word key) {
    if (place.order != order || !is_pair(place)) return place.order < order;
    return Keys::less(node_at(place).key, key);
  }

  // --- The directory ---

  /// The last place of the directory that is not behind an order. Null: the index is damaged.
  template <class Trust>
  const Place* place_before(const Trust& trust, Order order) const {
    for (auto n = static_cast<unsigned>(bits_.load(std::memory_order_acquire)); n > 0; --n) {
      if (Trust::kDoubts && n > lfhash::kMaxBits) return nullptr;
      const Entry* const entry = levels_.entry_of(n, order);
      if (entry == nullptr) continue;
      if (!trust.holds(levels_.level(n), lfhash::bytes_of_level(n))) return nullptr;
      const Place* const place = entry->load(std::memory_order_acquire);
      if (place == nullptr) continue;
      if (!trust.holds(place, sizeof(Place))) return nullptr;
      if (Trust::kDoubts && place->order != lfhash::beginning(n, order)) return nullptr;
      if (!is_marked(*place)) return place;
    }
    return &head_;
  }

  /// The place that begins the range of an order, if there is memory for it.
  void make_place(Order order) {
    const Order at = lfhash::beginning(bits_.load(std::memory_order_acquire), order);
    if (at == 0) return;
    Entry* const entry = levels_.entry_of(lfhash::level_of(at), at);
    if (entry == nullptr || entry->load(std::memory_order_acquire) != nullptr) return;
    try {
      list(*entry, add_place(at));
    } catch (const std::exception&) {  // the one before will do
    }
  }

  /// The place of an order in the list: a new one, or one that another thread has put there.
  Place& add_place(Order order) {
    for (Own<Place> place = List::template make<Place>(order);;) {
      const std::optional<Spot> spot = find_spot(order, 0);
      if (!spot) continue;
      if (spot->at != nullptr && spot->at->order == order) return *spot->at;
      if (List::link_in(*spot, *place)) return *place.release();
    }
  }

  static void list(Entry& entry, Place& place) {
    if (!List::template exchange<Place*>(entry, nullptr, &place)) return;
    // Another thread may have marked it, and looked into the entry before it was there: L4.
    if (is_marked(place)) List::template exchange<Place*>(entry, &place, nullptr);
  }

  /// A place leaves the directory and the list.
  void take_away(Entry& entry) {
    Place* const place = entry.load(std::memory_order_acquire);
    if (place == nullptr) return;
    List::mark(*place);
    List::template exchange<Place*>(entry, place, nullptr);
    pass_by(place->order, 0);
  }

  /// If there is memory, and no other thread is at it.
  void grow() {
    const std::unique_lock guard(List::change(resizing_), std::try_to_lock);
    const auto bits = static_cast<unsigned>(bits_.load());
    if (!guard.owns_lock() || bits == lfhash::kMaxBits || size_ <= kDense << bits) return;
    try {
      if (levels_.level(bits + 1) == nullptr) {
        Entry* const entries = new_level(bits + 1);
        List::change(levels_[bits + 1]).store(entries, std::memory_order_release);
      }
      List::change(bits_).store(bits + 1, std::memory_order_release);
    } catch (const std::exception&) {  // it stays as large as it is
    }
  }

  static Entry* new_level(unsigned n) {
    auto* const entries = static_cast<Entry*>(Memory::allocate(lfhash::bytes_of_level(n)));
    for (std::uint64_t i = 0; i < lfhash::entries_of(n); ++i) new (&entries[i]) Entry(nullptr);
    return entries;
  }

  /// The last level is left by all writes first, then by its places, some with each erase.
  void shrink() {
    const std::uint64_t bits = bits_.load();
    if (level_behind(bits) == nullptr && (bits == 0 || size_ > (1ULL << bits) / kSparse)) return;
    const std::unique_lock guard(List::change(resizing_), std::try_to_lock);
    if (!guard.owns_lock() || bits != bits_.load()) return;
    if (level_behind(bits) != nullptr) return empty(static_cast<unsigned>(bits) + 1);
    List::change(emptied_) = 0;
    List::change(bits_).store(bits - 1, std::memory_order_release);
  }

  Entry* level_behind(std::uint64_t bits) const {
    return bits == lfhash::kMaxBits ? nullptr : levels_.level(static_cast<unsigned>(bits) + 1);
  }

  void empty(unsigned n) {
    Entry* const entries = levels_.level(n);
    std::uint64_t& next = List::change(emptied_);
    for (unsigned i = 0; i < kAtOnce && next < lfhash::entries_of(n); ++i)
      take_away(entries[next++]);
    if (next < lfhash::entries_of(n)) return;
    next = 0;
    List::change(levels_[n]).store(nullptr, std::memory_order_release);
    List::release(entries);
  }

  // --- The list ---

  /// Unlinks marked elements on its way. None: another thread was in the way.
  std::optional<Spot> find_spot(Order order, Word key) {
    // Never the place itself that is looked for, which may be the one to be unlinked.
    const Place* const first = place_before(Trusting(), lfhash::is_odd(order) ? order : order - 1);
    std::atomic<Link>* link = &const_cast<Place*>(first)->next;
    for (Link to = link->load(std::memory_order_acquire);;) {
      if ((to & lfhash::kMarked) != 0) return std::nullopt;
      Place* const at = lfhash::place_at(to);
      if (at == nullptr) return Spot{link, nullptr};
      const Link next = at->next.load(std::memory_order_acquire);
      if ((next & lfhash::kMarked) != 0) {
        if (!List::unlink({link, at})) return std::nullopt;
        to = next & ~lfhash::kMarked;
        continue;
      }
      if (!comes_before(*at, order, key)) return Spot{link, at};
      link = &at->next;
      to = next;
    }
  }

  /// What is marked and has this order and key is out of the list after it.
  void pass_by(Order order, Word key) {
    while (!find_spot(order, key)) {
    }
  }

  template <class Trust>
  static bool is_readable(const Trust& trust, const Place* place) {
    if constexpr (!Trust::kDoubts) return true;
    return trust.holds(place, sizeof(Place)) && trust.readable(place, bytes_of(*place));
  }

  // --- Inspection ---

  static bool inspect_pair(Inspector& inspector, const Place* before, const Node& node) {
    if (!inspector.pair(node.key, node.value) || order_of(node.key) != node.order) return false;
    return before == nullptr || comes_before(*before, node.order, node.key);
  }

  Place head_{0};
  std::atomic<std::uint64_t> bits_{0};  // levels that are in use
  std::atomic<std::uint64_t> size_{0};
  std::uint64_t emptied_ = 0;  // entries of the level behind those
  SpinLock resizing_;          // guards the above, and the levels
  lfhash::Levels levels_;
};

}  // namespace perdix::tips::plugins
