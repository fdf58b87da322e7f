// Tree: going through all values in order.
#pragma once

#include "art/tree.h"

namespace perdix::detail::art {

template <class Value, class KeyOf, class Memory>
template <class Fn>
void Tree<Value, KeyOf, Memory>::scan(Key from, Fn fn) const {
  // A search per value: each searches from the root again, so writers are not excluded and no place
  // in the tree is remembered.
  for (Value value = find_ceiling(from); value != nullptr && fn(value);)
    value = find_above(key_of_(value));
}

template <class Value, class KeyOf, class Memory>
template <class Fn>
void Tree<Value, KeyOf, Memory>::for_each(Fn fn) const {
  scan(Key{}, [&](Value value) {
    fn(value);
    return true;
  });
}

}  // namespace perdix::detail::art
