// libcuckoo's cuckoohash_map: two buckets of four pairs for each key, in DRAM, striped spinlocks.
//
// It has its default options. It doubles as it fills, unless pools start with their full size: then
// it reserves its full size, too.
#include <functional>
#include <string>

#include <libcuckoo/cuckoohash_map.hh>

#include "systems/string_hash.h"
#include "systems/systems.h"
#include "ycsb/memory.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

template <Storable K, Storable V>
class CuckooMap {
 public:
  using Pairs = libcuckoo::cuckoohash_map<K, V, HashOf<K, std::hash<K>>, EqualOf<K>>;

  explicit CuckooMap(const Setup& setup) : heap_before_(heap_bytes_in_use()) {
    if (setup.reserved_records() > 0) pairs_.reserve(setup.reserved_records());
  }

  class Client {
   public:
    explicit Client(Pairs& pairs) : pairs_(pairs) {}

    bool get(View<K> key, Sink& sink) {
      return pairs_.find_fn(key, [&](const V& value) { sink.take(value); });
    }
    bool insert(View<K> key, View<V> value) { return pairs_.insert(key, value); }
    bool update(View<K> key, View<V> value) {
      return pairs_.update_fn(key, [&](V& stored) { stored = value; });
    }
    bool erase(View<K> key) { return pairs_.erase(key); }

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

std::string libcuckoo_settings(const Setup& setup) {
  return std::string("libcuckoo, in DRAM, four pairs in a bucket, ") +
         (setup.reserved_records() > 0 ? "all records reserved" : "grows as it is filled");
}

}  // namespace

std::vector<System> libcuckoo_systems() {
  System system{"libcuckoo",
                "libcuckoo::cuckoohash_map, volatile",
                false,
                open_store<CuckooMap>,
                libcuckoo_settings,
                calls_of<CuckooMap>()};
  system.tells_load_factor = true;
  return {system};
}

}  // namespace perdix::bench
