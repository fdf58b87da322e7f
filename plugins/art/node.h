// Nodes of an adaptive radix tree (Leis et al. 2013) in the form that readers need no lock for
// (ROWEX, Leis et al. 2016).
//
//   N1. `kind` and `depth` never change. All keys below a node have the same first `depth` symbols,
//       whatever else happens to it, so a node stores no prefix.
//   N2. A slot that was given to a symbol stays with it as long as the node lasts: an erase empties
//       it, and only the same symbol fills it again. So the child that a reader finds in a slot
//       belongs to the symbol that it has seen.
//   N3. A node of the tree has two children or more. A node that was removed from it never changes
//       again.
//   N4. A writer changes a node, or the slot of one, with its lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <perdix/tips_plugin.h>

namespace perdix::tips::plugins::art {

/// Refers to a leaf (kLeaf is set), to a node, or to nothing (0).
using Link = std::uint64_t;
using Slot = std::atomic<Link>;
inline constexpr Link kLeaf = 1;

/// The symbols of keys: StringKeys::symbol().
inline constexpr unsigned kSymbols = 257;

struct Leaf {
  const Word key;
  std::atomic<Word> value;
};

enum class Kind : std::uint8_t { node4, node16, node48, node256 };

/// The lock of a node, and whether it is out of the tree.
enum State : std::uint8_t { kFree, kLocked, kObsolete };

/// How each node begins.
struct Node {
  const std::uint32_t depth;  // of the symbol that its children differ in
  const Kind kind;
  std::atomic<std::uint8_t> state{kFree};
  std::atomic<std::uint16_t> used{0};  // slots that symbols have
  std::atomic<std::uint64_t> live{0};  // those that are not empty
};
static_assert(sizeof(Node) == 16);

inline bool is_leaf(Link link) { return (link & kLeaf) != 0; }
inline bool is_node(Link link) { return link != 0 && !is_leaf(link); }
inline Leaf& leaf_at(Link link) { return *reinterpret_cast<Leaf*>(link & ~kLeaf); }
inline Node& node_at(Link link) { return *reinterpret_cast<Node*>(link); }
inline Link link_to(const Leaf& leaf) { return reinterpret_cast<Link>(&leaf) | kLeaf; }
inline Link link_to(const Node& node) { return reinterpret_cast<Link>(&node); }

/// A slot that is not empty; link 0: there is none.
struct Child {
  unsigned symbol;
  Link link;
};

/// Few children: their symbols are searched one by one, in the order in which they came.
template <unsigned kSlots, Kind kKindOfNode>
struct SmallNode : Node {
  static constexpr unsigned kCapacity = kSlots;
  explicit SmallNode(std::uint32_t at) : Node{at, kKindOfNode} {}

  std::atomic<std::uint16_t> symbols[kSlots]{};
  Slot slots[kSlots]{};

  Slot* find(unsigned symbol) {
    for (unsigned i = 0; i < count(); ++i)
      if (symbols[i].load(std::memory_order_relaxed) == symbol) return &slots[i];
    return nullptr;
  }

  /// Gives a symbol that has none a slot, in a node that is not full.
  template <class Change>
  void add(Change change, unsigned symbol, Link link) {
    const unsigned i = count();
    change(symbols[i]).store(static_cast<std::uint16_t>(symbol), std::memory_order_relaxed);
    change(slots[i]).store(link, std::memory_order_relaxed);
    change(used).store(static_cast<std::uint16_t>(i + 1), std::memory_order_release);
  }

  Child next(unsigned from) const {
    Child least{kSymbols, 0};
    for (unsigned i = 0; i < count(); ++i) {
      const Child child = child_at(i);
      if (child.link != 0 && child.symbol >= from && child.symbol < least.symbol) least = child;
    }
    return least;
  }

  /// The last child before a symbol.
  Child before(unsigned end) const {
    Child greatest{0, 0};
    for (unsigned i = 0; i < count(); ++i) {
      const Child child = child_at(i);
      if (child.link == 0 || child.symbol >= end) continue;
      if (greatest.link == 0 || child.symbol > greatest.symbol) greatest = child;
    }
    return greatest;
  }

 private:
  /// Never too many, even in a damaged node.
  unsigned count() const {
    return std::min<unsigned>(used.load(std::memory_order_acquire), kSlots);
  }
  Child child_at(unsigned i) const {
    return {symbols[i].load(std::memory_order_relaxed), slots[i].load(std::memory_order_acquire)};
  }
};

/// What the two larger kinds share: they have a place for each symbol.
template <class Derived>
struct LargeNode : Node {
  LargeNode(std::uint32_t at, Kind kind_of_node) : Node{at, kind_of_node} {}

  Child next(unsigned from) const {
    for (unsigned symbol = from; symbol < kSymbols; ++symbol)
      if (const Link link = link_of(symbol); link != 0) return {symbol, link};
    return {kSymbols, 0};
  }
  Child before(unsigned end) const {
    for (unsigned symbol = std::min(end, kSymbols); symbol-- > 0;)
      if (const Link link = link_of(symbol); link != 0) return {symbol, link};
    return {0, 0};
  }

 private:
  Link link_of(unsigned symbol) const {
    const Slot* const slot = const_cast<LargeNode*>(this)->derived().find(symbol);
    return slot == nullptr ? 0 : slot->load(std::memory_order_acquire);
  }
  Derived& derived() { return static_cast<Derived&>(*this); }
};

/// A byte for each symbol says which slot it has.
struct Node48 : LargeNode<Node48> {
  static constexpr unsigned kCapacity = 48;
  explicit Node48(std::uint32_t at) : LargeNode(at, Kind::node48) {}

  std::atomic<std::uint8_t> index[kSymbols]{};  // of its slot, from 1
  Slot slots[kCapacity]{};

  Slot* find(unsigned symbol) {
    const unsigned i = index[symbol].load(std::memory_order_acquire);
    return i == 0 || i > kCapacity ? nullptr : &slots[i - 1];
  }

  template <class Change>
  void add(Change change, unsigned symbol, Link link) {
    const unsigned i = used.load(std::memory_order_relaxed);
    change(slots[i]).store(link, std::memory_order_relaxed);
    change(used).store(static_cast<std::uint16_t>(i + 1), std::memory_order_relaxed);
    change(index[symbol]).store(static_cast<std::uint8_t>(i + 1), std::memory_order_release);
  }
};

/// A slot for each symbol.
struct Node256 : LargeNode<Node256> {
  static constexpr unsigned kCapacity = kSymbols;
  explicit Node256(std::uint32_t at) : LargeNode(at, Kind::node256) {}

  Slot slots[kSymbols]{};

  Slot* find(unsigned symbol) { return &slots[symbol]; }

  template <class Change>
  void add(Change change, unsigned symbol, Link link) {
    change(slots[symbol]).store(link, std::memory_order_release);
  }
};

using Node4 = SmallNode<4, Kind::node4>;
using Node16 = SmallNode<16, Kind::node16>;

/// Calls use(node) with the type of the node's kind.
template <class Use>
auto as_kind(Node& node, Use use) {
  switch (node.kind) {
    case Kind::node4: return use(static_cast<Node4&>(node));
    case Kind::node16: return use(static_cast<Node16&>(node));
    case Kind::node48: return use(static_cast<Node48&>(node));
    default: return use(static_cast<Node256&>(node));
  }
}
template <class Use>
auto as_kind(const Node& node, Use use) {
  return as_kind(const_cast<Node&>(node), use);
}

/// The slot that a symbol has; null: none.
inline Slot* slot_of(Node& node, unsigned symbol) {
  return as_kind(node, [&](auto& typed) { return typed.find(symbol); });
}
inline Link child_of(const Node& node, unsigned symbol) {
  const Slot* const slot = slot_of(const_cast<Node&>(node), symbol);
  return slot == nullptr ? 0 : slot->load(std::memory_order_acquire);
}
/// The first child from a symbol on.
inline Child next_child(const Node& node, unsigned from) {
  return as_kind(node, [&](const auto& typed) { return typed.next(from); });
}
inline Child child_before(const Node& node, unsigned end) {
  return as_kind(node, [&](const auto& typed) { return typed.before(end); });
}
inline std::size_t bytes_of(const Node& node) {
  return as_kind(node, [](const auto& typed) { return sizeof typed; });
}
inline unsigned capacity_of(const Node& node) {
  return as_kind(node, [](const auto& typed) { return std::decay_t<decltype(typed)>::kCapacity; });
}

/// The smallest kind for this many children.
inline Kind kind_for(std::uint64_t children) {
  if (children <= Node4::kCapacity) return Kind::node4;
  if (children <= Node16::kCapacity) return Kind::node16;
  return children <= Node48::kCapacity ? Kind::node48 : Kind::node256;
}

/// Whether a smaller kind would have room to spare for a node's children.
inline bool is_sparse(const Node& node) {
  const std::uint64_t live = node.live.load(std::memory_order_relaxed);
  return kind_for(live + live / 3) < node.kind;
}

}  // namespace perdix::tips::plugins::art
