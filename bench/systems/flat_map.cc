// boost::unordered_flat_map: open addressing in DRAM, without a lock, so for one thread.
//
// Numbers have Boost's hash, which the map mixes. The map grows as it fills, unless pools start
// with their full size: then it reserves its full size, too.
#include <string>

#include <boost/unordered/unordered_flat_map.hpp>

#include "systems/string_hash.h"
#include "systems/systems.h"
#include "ycsb/memory.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

template <Storable K, Storable V>
class FlatMap {
 public:
  using Pairs = boost::unordered_flat_map<K, V, HashOf<K, boost::hash<K>>, EqualOf<K>>;

  explicit FlatMap(const Setup& setup) : heap_before_(heap_bytes_in_use()) {
    pairs_.reserve(setup.reserved_records());
  }

  class Client {
   public:
    explicit Client(Pairs& pairs) : pairs_(pairs) {}

    bool get(View<K> key, Sink& sink) {
      const auto found = pairs_.find(key);
      if (found == pairs_.end()) return false;
      sink.take(found->second);
      return true;
    }
    bool insert(View<K> key, View<V> value) { return pairs_.try_emplace(K(key), value).second; }
    bool update(View<K> key, View<V> value) {
      const auto found = pairs_.find(key);
      if (found == pairs_.end()) return false;
      found->second = value;
      return true;
    }
    bool erase(View<K> key) { return pairs_.erase(key) == 1; }

   private:
    Pairs& pairs_;
  };

  Client client() { return Client(pairs_); }

  OwnFootprint footprint() const {
    return {heap_bytes_in_use() - heap_before_, std::nullopt, pairs_.load_factor()};
  }

 private:
  std::uint64_t heap_before_;
  Pairs pairs_;
};

std::string flat_map_settings(const Setup& setup) {
  return std::string("Boost " BOOST_LIB_VERSION ", in DRAM, no lock (one thread), ") +
         (setup.reserved_records() > 0 ? "all records reserved" : "grows as it is filled");
}

}  // namespace

std::vector<System> flat_map_systems() {
  System system{"flat_map",
                "boost::unordered_flat_map, volatile, one thread",
                false,
                open_store<FlatMap>,
                flat_map_settings,
                calls_of<FlatMap>()};
  system.max_threads = 1;
  system.tells_load_factor = true;
  return {system};
}

}  // namespace perdix::bench
