#include <vector>

#include <perdix/tips_indexes.h>

#include "systems/systems.h"
#include "systems/tips_map.h"

namespace perdix::bench {

std::vector<System> tips_systems() {
  return {system_on_tips<tips::Hash>("a hash table"),
          system_on_tips<tips::Bst>("a binary search tree"),
          system_on_tips<tips::BTree>("a B+-tree"),
          system_on_tips<tips::Art>("an adaptive radix tree"),
          system_on_tips<tips::Clht>("a cache-line hash table"),
          system_on_tips<tips::LfHash>("a lock-free hash table"),
          system_on_tips<tips::LfBst>("a lock-free binary search tree")};
}

}  // namespace perdix::bench
