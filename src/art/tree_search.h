// Tree: searching. One descent serves all operations; it notes on its way what the operation may
// need at its end.
//
// Why one pass with a validated version per node is enough for find_above (find_below mirrors it):
//   1. `descend` couples versions: a node's version is taken before its parent's is validated, so
//      at that moment the node was in the tree, at the place that the key's bytes lead to. (For the
//      same reason no step asks whether a version is obsolete: no valid edge leads to such a node,
//      since its parent is locked while it is taken out.)
//   2. Where the way ends, nothing <= key is below. The nodes passed had, when validated, no child
//      before the key's own, except `beside` and those above it. A key that is in the tree
//      throughout can't be where there was no child for it at some moment: so it is below the
//      child before the key's own in `beside`, or smaller than all that is there.
//   3. `beside` is validated again when that child is read, and the greatest value below is found
//      by the same coupling.
// A version that changed starts the search again from the root.
#pragma once

#include "art/node_search.h"
#include "art/retry.h"
#include "art/tree.h"

namespace perdix::detail::art {

template <class Value, class KeyOf, class Memory>
template <typename Tree<Value, KeyOf, Memory>::Side kSide>
bool Tree<Value, KeyOf, Memory>::descend(Key key, Stop& stop) const {
  Edge edge{&root_lock_, root_lock_.read_begin()};
  Ref ref = root_.load();
  unsigned depth = 0;
  while (ref.is_node()) {
    const Head& head = *ref.node<Head>();
    const auto version = head.lock.read_begin();
    if (!edge.valid()) return false;
    stop.upper = edge;
    if (head.shape().prefix_length != 0) {
      stop.edge = edge;
      if (!pass_prefix(ref, version, key, depth, stop)) return false;
      if (stop.at_prefix()) return true;
    }
    edge = {&head.lock, version, ref, Traits::entry(key, depth)};
    ref = step<kSide>(ref, edge, stop);
    ++depth;
  }
  stop.edge = edge;
  stop.ref = ref;
  stop.depth = depth;
  return edge.valid();
}

/// The child that the edge leads to; notes the edge if there are others on the wanted side.
template <class Value, class KeyOf, class Memory>
template <typename Tree<Value, KeyOf, Memory>::Side kSide>
Ref Tree<Value, KeyOf, Memory>::step(Ref ref, const Edge& edge, Stop& stop) {
  return visit<Key>(ref, [&](const auto& node) {
    if constexpr (kSide == Side::before) {
      if (has_before(node, edge.entry)) stop.beside = edge;
    } else if constexpr (kSide == Side::after) {
      if (has_after(node, edge.entry)) stop.beside = edge;
    }
    const Ref found = child(node, edge.entry);
    prefetch(found);
    return found;
  });
}

/// Goes past the prefix of the node, or stops in it. Leaves nothing unvalidated, since `depth` must
/// be right to go on.
template <class Value, class KeyOf, class Memory>
bool Tree<Value, KeyOf, Memory>::pass_prefix(Ref ref, typename Lock::Version version, Key key,
                                             unsigned& depth, Stop& stop) const {
  const Head& head = *ref.node<Head>();
  const Prefix<Key> prefix = head.prefix();
  if (!head.lock.read_validate(version)) return false;
  unsigned agreed = prefix.agree(key, depth);
  if (agreed == prefix.length()) {
    depth += agreed;
    return true;
  }
  Value witness = nullptr;
  Entry other = kEnd;
  if (agreed < prefix.stored()) {
    other = prefix.byte(agreed);
  } else {
    const auto found = outermost<Side::after>(
        {&head.lock, version}, visit<Key>(ref, [](const auto& node) { return next(node, kEnd); }));
    if (!found) return false;
    witness = *found;
    const Key whole = key_of_(witness);
    agreed += std::min(prefix.length() - agreed, Traits::common_prefix(whole, key, depth + agreed));
    if (agreed == prefix.length()) {
      depth += agreed;
      return true;
    }
    other = Traits::entry(whole, depth + agreed);
  }
  stop.ref = ref;
  stop.depth = depth;
  stop.prefix = PrefixStop{version, agreed, other, prefix, witness};
  return true;
}

/// The greatest (before) or smallest (after) value below `ref`, which the edge led to.
template <class Value, class KeyOf, class Memory>
template <typename Tree<Value, KeyOf, Memory>::Side kSide>
std::optional<Value> Tree<Value, KeyOf, Memory>::outermost(const Edge& from, Ref ref) const {
  Edge edge = from;
  while (ref.is_node()) {
    const Head& head = *ref.node<Head>();
    const auto version = head.lock.read_begin();
    if (!edge.valid()) return std::nullopt;
    edge = {&head.lock, version};
    ref = visit<Key>(ref, [](const auto& node) {
      return kSide == Side::before ? previous(node, kBeyond) : next(node, kEnd);
    });
  }
  if (!edge.valid()) return std::nullopt;
  return ref.template value<Value>();
}

/// Like outermost(), for a whole node in whose prefix the search stopped.
template <class Value, class KeyOf, class Memory>
template <typename Tree<Value, KeyOf, Memory>::Side kSide>
std::optional<Value> Tree<Value, KeyOf, Memory>::outermost_below(const Stop& stop) const {
  const Edge edge{&stop.ref.template node<Head>()->lock, stop.prefix->version};
  return outermost<kSide>(edge, visit<Key>(stop.ref, [](const auto& node) {
                            return kSide == Side::before ? previous(node, kBeyond)
                                                         : next(node, kEnd);
                          }));
}

/// The greatest value before the edge's child, or the smallest one after it.
template <class Value, class KeyOf, class Memory>
template <typename Tree<Value, KeyOf, Memory>::Side kSide>
std::optional<Value> Tree<Value, KeyOf, Memory>::next_to(const Edge& edge) const {
  if (edge.lock == nullptr) return Value{};
  const Ref ref = visit<Key>(edge.node, [&](const auto& node) {
    return kSide == Side::before ? previous(node, edge.entry - 1) : next(node, edge.entry + 1);
  });
  return outermost<kSide>(edge, ref);
}

template <class Value, class KeyOf, class Memory>
std::optional<Value> Tree<Value, KeyOf, Memory>::try_find(Key key) const {
  Stop stop;
  if (!descend<Side::none>(key, stop)) return std::nullopt;
  if (stop.at_prefix() || stop.ref.is_null()) return Value{};
  const auto value = stop.ref.template value<Value>();
  return key_of_(value) == key ? value : Value{};
}

template <class Value, class KeyOf, class Memory>
std::optional<Value> Tree<Value, KeyOf, Memory>::try_below(Key key, bool or_equal) const {
  Stop stop;
  if (!descend<Side::before>(key, stop)) return std::nullopt;
  if (stop.at_prefix()) {
    const bool all_smaller =
        stop.prefix->other < Traits::entry(key, stop.depth + stop.prefix->agreed);
    if (all_smaller) return outermost_below<Side::before>(stop);
  } else if (!stop.ref.is_null()) {
    const auto value = stop.ref.template value<Value>();
    const Key found = key_of_(value);
    if (found < key || (or_equal && found == key)) return value;
  }
  return next_to<Side::before>(stop.beside);
}

template <class Value, class KeyOf, class Memory>
std::optional<Value> Tree<Value, KeyOf, Memory>::try_above(Key key, bool or_equal) const {
  Stop stop;
  if (!descend<Side::after>(key, stop)) return std::nullopt;
  if (stop.at_prefix()) {
    const bool all_greater =
        stop.prefix->other > Traits::entry(key, stop.depth + stop.prefix->agreed);
    if (all_greater) return outermost_below<Side::after>(stop);
  } else if (!stop.ref.is_null()) {
    const auto value = stop.ref.template value<Value>();
    const Key found = key_of_(value);
    if (found > key || (or_equal && found == key)) return value;
  }
  return next_to<Side::after>(stop.beside);
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::find(Key key) const {
  return detail::retry([&] { return try_find(key); });
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::find_floor(Key key) const {
  return detail::retry([&] { return try_below(key, true); });
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::find_below(Key key) const {
  return detail::retry([&] { return try_below(key, false); });
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::find_ceiling(Key key) const {
  return detail::retry([&] { return try_above(key, true); });
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::find_above(Key key) const {
  return detail::retry([&] { return try_above(key, false); });
}

}  // namespace perdix::detail::art
