// The indexes that are plugged into Tips, without Tips.
#include <vector>

#include "index/tips/indexes/btree.h"
#include "index/tips/indexes/hash_table.h"
#include "plugins/art.h"
#include "plugins/bst.h"
#include "plugins/clht.h"
#include "plugins/lfbst.h"
#include "plugins/lfhash.h"
#include "systems/on_heap.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

namespace plugged = detail::index::tips;
namespace further = tips::plugins;

constexpr unsigned kOneThread = 1;

}  // namespace

std::vector<System> volatile_plugins_systems() {
  return {system_on_heap<plugged::HashTable>("hash", "the hash table of Tips"),
          system_on_heap<further::Bst>("bst", "the binary search tree of Tips"),
          system_on_heap<plugged::BTree>("btree", "the B+-tree of Tips"),
          system_on_heap<further::Art>("art", "the adaptive radix tree of Tips", kOneThread),
          system_on_heap<further::Clht>("clht", "the cache-line hash table of Tips", kOneThread),
          system_on_heap<further::LfHash>("lfhash", "the lock-free hash table of Tips", kOneThread),
          system_on_heap<further::LfBst>("lfbst", "the lock-free binary search tree of Tips",
                                         kOneThread)};
}

}  // namespace perdix::bench
