// tbb::concurrent_hash_map: separate chaining in DRAM, a lock in each node.
//
// Its own hash and its own allocator, which is TBB's scalable one. It doubles as it is filled,
// unless pools begin with their full size: then it begins with a bucket for each record.
#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <tbb/concurrent_hash_map.h>
#include <tbb/scalable_allocator.h>
#include <tbb/version.h>

#include "systems/string_hash.h"
#include "systems/systems.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

/// Strings are looked up by views.
struct StringHashCompare {
  using is_transparent = void;
  std::size_t hash(std::string_view text) const { return StringHash()(text); }
  bool equal(std::string_view a, std::string_view b) const { return a == b; }
};

template <Storable K, Storable V>
class TbbMap {
 public:
  using HashCompare =
      std::conditional_t<kKindOf<K> == Kind::bytes, StringHashCompare, tbb::tbb_hash_compare<K>>;
  using Pairs = tbb::concurrent_hash_map<K, V, HashCompare>;

  explicit TbbMap(const Setup& setup) : pairs_(setup.reserved_records()) {}
  ~TbbMap() {
    pairs_.clear();
    scalable_allocation_command(TBBMALLOC_CLEAN_ALL_BUFFERS, nullptr);  // for the next system
  }
  TbbMap(const TbbMap&) = delete;
  TbbMap& operator=(const TbbMap&) = delete;

  class Client {
   public:
    explicit Client(Pairs& pairs) : pairs_(pairs) {}

    bool get(View<K> key, Sink& sink) {
      typename Pairs::const_accessor pair;
      if (!pairs_.find(pair, key)) return false;
      sink.take(pair->second);
      return true;
    }
    bool insert(View<K> key, View<V> value) { return pairs_.emplace(K(key), value); }
    bool update(View<K> key, View<V> value) {
      typename Pairs::accessor pair;
      if (!pairs_.find(pair, key)) return false;
      pair->second = value;
      return true;
    }
    bool erase(View<K> key) { return pairs_.erase(key); }

   private:
    Pairs& pairs_;
  };

  Client client() { return Client(pairs_); }

  /// TBB's allocator does not say what it has taken.
  OwnFootprint footprint() const { return {}; }

 private:
  Pairs pairs_;
};

std::string tbb_settings(const Setup& setup) {
  return fmt::format("oneTBB {}.{}, in DRAM, TBB's scalable allocator, {}", TBB_VERSION_MAJOR,
                     TBB_VERSION_MINOR,
                     setup.reserved_records() > 0 ? "a bucket for each record from the start"
                                                  : "grows as it is filled");
}

}  // namespace

std::vector<System> tbb_systems() {
  return {{"tbb", "tbb::concurrent_hash_map, volatile", false, open_store<TbbMap>, tbb_settings,
           calls_of<TbbMap>()}};
}

}  // namespace perdix::bench
