// Ordered iteration: leaf by leaf along `next`, each as it was at one moment.
#include "index/fastfair/fastfair.h"

namespace perdix::index::fastfair {
namespace {

/// Leaves that are shown under one guard. More hold up reclamation for longer, fewer cost a search
/// from the root more often.
constexpr unsigned kLeavesPerGuard = 16;

}  // namespace

/// Copies the leaf's pairs with key >= from. False if it changed meanwhile.
template <class K, class V>
bool Tree<K, V>::collect(const Seen& leaf, Key from, Snapshot& into) const {
  const Node& node = *leaf.node;
  const unsigned count = meta_of(node).count;
  into.size = 0;
  for (unsigned i = rank(node, {from, true}); i < count; ++i) {
    const Entry entry = load_entry(node, i);
    // Of two equal keys the right one counts (F3).
    if (into.size > 0 && into.entries[into.size - 1].key == entry.key) --into.size;
    into.entries[into.size++] = entry;
  }
  Node* next = after(node);
  into.following = next == nullptr ? Seen{} : look(*next);
  return leaf.valid();
}

/// Shows some leaves from `position` on, and moves it behind them; false when the scan is over. A
/// guard for each few leaves: strings stay where they are while they are shown, and a long scan
/// doesn't hold up reclamation.
template <class K, class V>
bool Tree<K, V>::scan_some(K& position, Visitor<K, V>& visit) const {
  const epoch::Guard guard;
  Seen leaf = seek({position}, 0);
  for (unsigned shown = 0; shown < kLeavesPerGuard; ++shown) {
    Snapshot snapshot;
    while (!collect(leaf, position, snapshot)) leaf = seek({position}, 0);
    for (unsigned i = 0; i < snapshot.size; ++i) {
      const Entry& entry = snapshot.entries[i];
      if (!visit(keys_.view(entry.key), values_.view(entry.value))) return false;
    }
    leaf = snapshot.following;
    if (leaf.node == nullptr) return false;
    position = K(low_of(*leaf.node));
  }
  return true;
}

template <class K, class V>
void Tree<K, V>::scan(Key from, Visitor<K, V> visit) const {
  K position(from);
  while (scan_some(position, visit)) {
  }
}

template bool Tree<std::uint64_t, std::uint64_t>::collect(const Seen&, Key, Snapshot&) const;
template void Tree<std::uint64_t, std::uint64_t>::scan(Key,
                                                       Visitor<std::uint64_t, std::uint64_t>) const;
template bool Tree<std::uint64_t, std::string>::collect(const Seen&, Key, Snapshot&) const;
template void Tree<std::uint64_t, std::string>::scan(Key,
                                                     Visitor<std::uint64_t, std::string>) const;
template bool Tree<std::string, std::uint64_t>::collect(const Seen&, Key, Snapshot&) const;
template void Tree<std::string, std::uint64_t>::scan(Key,
                                                     Visitor<std::string, std::uint64_t>) const;
template bool Tree<std::string, std::string>::collect(const Seen&, Key, Snapshot&) const;
template void Tree<std::string, std::string>::scan(Key, Visitor<std::string, std::string>) const;

}  // namespace perdix::index::fastfair
