// The list of a lock-free hash table: its elements, and what writers do to their links.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include <perdix/tips_plugin.h>

namespace perdix::tips::plugins::lfhash {

using Order = std::uint64_t;
/// The address of what follows in the list; kMarked is set: the one with this link leaves it.
using Link = std::uint64_t;
inline constexpr Link kMarked = 1;

struct ListPlace {
  explicit ListPlace(Order at) : order(at) {}
  std::atomic<Link> next{0};
  const Order order;
};
struct Node : ListPlace {
  Node(Order at, Word its_key, Word its_value) : ListPlace(at), key(its_key), value(its_value) {}
  const Word key;
  std::atomic<Word> value;
};

inline bool is_pair(const ListPlace& place) { return (place.order & 1) != 0; }
inline Link link_to(const ListPlace* place) { return reinterpret_cast<Link>(place); }
inline ListPlace* place_at(Link link) { return reinterpret_cast<ListPlace*>(link & ~kMarked); }
inline Node& node_at(ListPlace& place) { return static_cast<Node&>(place); }
inline const Node& node_at(const ListPlace& place) { return static_cast<const Node&>(place); }
inline std::size_t bytes_of(const ListPlace& place) {
  return is_pair(place) ? sizeof(Node) : sizeof(ListPlace);
}
inline bool is_marked(const ListPlace& place) {
  return (place.next.load(std::memory_order_acquire) & kMarked) != 0;
}
inline bool is_odd(Order order) { return (order & 1) != 0; }

/// `link` leads to `at`, the first one that does not come before what is looked for; null: none.
struct Spot {
  std::atomic<Link>* link;
  ListPlace* at;
};

/// `Memory` is where the table lies.
template <class Memory>
struct ListChanges {
  struct Release {
    void operator()(ListPlace* place) const { release(place); }
  };
  /// Of what no other thread can find.
  template <class T>
  using Own = std::unique_ptr<T, Release>;

  template <class T, class... Arguments>
  static Own<T> make(Arguments... arguments) {
    return Own<T>(new (Memory::allocate(sizeof(T))) T(arguments...));
  }
  static void release(void* block) { Memory::free(block); }

  /// Each change of what others can see.
  template <class T>
  static T& change(T& object) {
    Memory::add(&object, sizeof object);
    return object;
  }

  template <class T>
  static bool exchange(std::atomic<T>& place, T from, T to) {
    return change(place).compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  static bool link_in(const Spot& spot, ListPlace& place) {
    place.next.store(link_to(spot.at), std::memory_order_relaxed);
    return exchange(*spot.link, link_to(spot.at), link_to(&place));
  }

  static void mark(ListPlace& place) {
    for (Link next = place.next.load(std::memory_order_acquire); (next & kMarked) == 0;
         next = place.next.load(std::memory_order_acquire))
      exchange(place.next, next, next | kMarked);
  }

  /// Of what is marked.
  static bool unlink(const Spot& spot) {
    const Link next = spot.at->next.load(std::memory_order_acquire) & ~kMarked;
    if (!exchange(*spot.link, link_to(spot.at), next)) return false;
    release(spot.at);
    return true;
  }
};

}  // namespace perdix::tips::plugins::lfhash
