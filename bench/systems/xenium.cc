// xenium's vyukov_hash_map: buckets of three pairs in DRAM, lookups without locks, and a lock in
// each bucket for writers.
//
// Reclamation by epochs (new_epoch_based), its own hash. It doubles as it is filled, unless pools
// begin with their full size: then it begins with its own. It has no call that replaces a value.
#include <algorithm>
#include <array>  // before xenium, which lacks it
#include <string>
#include <type_traits>

#include <xenium/reclamation/generic_epoch_based.hpp>
#include <xenium/vyukov_hash_map.hpp>

#include "systems/string_hash.h"
#include "systems/systems.h"
#include "ycsb/memory.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

constexpr std::uint64_t kDefaultCapacity = 128;

template <Storable K, Storable V>
class XeniumMap {
 public:
  using Pairs =
      xenium::vyukov_hash_map<K, V,
                              xenium::policy::reclaimer<xenium::reclamation::new_epoch_based<>>,
                              xenium::policy::hash<HashOf<K, xenium::hash<K>>>>;

  explicit XeniumMap(const Setup& setup)
      : heap_before_(heap_bytes_in_use()),
        pairs_(std::max(kDefaultCapacity, setup.reserved_records())) {}

  class Client {
   public:
    explicit Client(Pairs& pairs) : pairs_(pairs) {}

    bool get(View<K> key, Sink& sink) {
      typename Pairs::accessor value;
      if (!pairs_.try_get_value(wanted(key), value)) return false;
      sink.take(*value);
      return true;
    }
    bool insert(View<K> key, View<V> value) { return pairs_.emplace(K(key), V(value)); }
    bool erase(View<K> key) { return pairs_.erase(wanted(key)); }

   private:
    /// The map takes no views. Reusing a string avoids an allocation.
    const K& wanted(View<K> key) {
      key_ = key;
      return key_;
    }

    Pairs& pairs_;
    K key_{};
  };

  Client client() { return Client(pairs_); }

  OwnFootprint footprint() const { return {heap_bytes_in_use() - heap_before_, std::nullopt}; }

 private:
  std::uint64_t heap_before_;
  Pairs pairs_;
};

std::string xenium_settings(const Setup& setup) {
  return std::string("xenium, in DRAM, new_epoch_based reclamation, ") +
         (setup.reserved_records() > 0 ? "all records reserved" : "grows as it is filled");
}

}  // namespace

std::vector<System> xenium_systems() {
  return {{"xenium", "xenium::vyukov_hash_map, volatile", false, open_store<XeniumMap>,
           xenium_settings, calls_of<XeniumMap>()}};
}

}  // namespace perdix::bench
