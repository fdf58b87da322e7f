// An ordered map in DRAM as a system. It is not durable, so it is the upper bound for a durable
// index.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <type_traits>

#include "systems/no_mutex.h"
#include "ycsb/memory.h"
#include "ycsb/worker.h"

namespace perdix::bench {

template <template <class, class, class> class Map, class Mutex, Storable K, Storable V>
class VolatileMap {
 public:
  // Integers with their own comparison: absl searches its nodes faster then. Strings with the
  // transparent one: looking up a view makes no copy.
  using Less = std::conditional_t<std::is_same_v<K, std::string>, std::less<>, std::less<K>>;
  using Pairs = Map<K, V, Less>;

  explicit VolatileMap(const Setup&) : heap_before_(heap_bytes_in_use()) {}

  class Client {
   public:
    explicit Client(VolatileMap& map) : pairs_(map.pairs_), mutex_(map.mutex_) {}

    bool get(View<K> key, Sink& sink) {
      const std::shared_lock lock(mutex_);
      const auto found = pairs_.find(key);
      if (found == pairs_.end()) return false;
      sink.take(found->second);
      return true;
    }
    bool insert(View<K> key, View<V> value) {
      const std::unique_lock lock(mutex_);
      return pairs_.try_emplace(K(key), value).second;
    }
    bool update(View<K> key, View<V> value) {
      const std::unique_lock lock(mutex_);
      const auto found = pairs_.find(key);
      if (found == pairs_.end()) return false;
      found->second = value;
      return true;
    }
    bool erase(View<K> key) {
      const std::unique_lock lock(mutex_);
      const auto found = pairs_.find(key);
      if (found == pairs_.end()) return false;
      pairs_.erase(found);
      return true;
    }
    std::size_t scan(View<K> from, std::size_t limit, Sink& sink) {
      const std::shared_lock lock(mutex_);
      std::size_t shown = 0;
      for (auto it = pairs_.lower_bound(from); it != pairs_.end() && shown < limit; ++it, ++shown) {
        sink.take(it->first);
        sink.take(it->second);
      }
      return shown;
    }

   private:
    Pairs& pairs_;
    Mutex& mutex_;
  };

  Client client() { return Client(*this); }

  // All that the heap has grown by is the map's, since one system is open at a time.
  OwnFootprint footprint() const { return {heap_bytes_in_use() - heap_before_, std::nullopt}; }

 private:
  std::uint64_t heap_before_;
  Pairs pairs_;
  Mutex mutex_;
};

/// The map by itself for one thread, behind a lock for several.
template <template <class, class, class> class Map>
struct MapSystem {
  template <class K, class V>
  using Alone = VolatileMap<Map, NoMutex, K, V>;
  template <class K, class V>
  using Shared = VolatileMap<Map, std::shared_mutex, K, V>;

  static std::unique_ptr<Store> open(const Setup& setup) {
    return setup.threads == 1 ? open_store<Alone>(setup) : open_store<Shared>(setup);
  }
  static std::string settings(const Setup& setup) {
    return setup.threads == 1 ? "in DRAM, no lock (one thread)" : "in DRAM, one std::shared_mutex";
  }
  static System system(std::string name, std::string summary) {
    return {std::move(name), std::move(summary), false, open, settings, calls_of<Alone>()};
  }
};

}  // namespace perdix::bench
