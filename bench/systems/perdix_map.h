// Any index of perdix as a system: the typed class, in a pool that holds nothing else.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "pool/pool_core.h"
#include "ycsb/worker.h"

namespace perdix::bench {

inline PoolOptions pool_options(const Setup& setup) {
  PoolOptions options;
  options.durability = setup.durability;
  options.domain = setup.domain;
  options.plugins = setup.plugins;
  if (setup.pool_size != 0) options.initial_size = setup.pool_size;
  return options;
}

template <class Index, class K, class V>
concept Ordered = requires(const Index& index, View<K> from, Visitor<K, V> visit) {
  index.scan(from, std::size_t{1}, visit);
};

template <template <Storable, Storable> class Index, Storable K, Storable V>
class PerdixMap {
 public:
  using Options = typename Index<K, V>::Options;

  explicit PerdixMap(const Setup& setup, const Options& options = {})
      : pool_(Pool::open_or_create(setup.directory / "bench.pool", pool_options(setup))),
        index_(pool_, "bench", options) {}

  class Client {
   public:
    Client(Index<K, V>& index, detail::pool::PoolCore& core) : index_(index), core_(core) {}

    bool get(View<K> key, Sink& sink) {
      const auto value = index_.get(key);
      if (value) sink.take(*value);
      return value.has_value();
    }
    bool insert(View<K> key, View<V> value) { return index_.insert(key, value); }
    bool update(View<K> key, View<V> value) { return index_.update(key, value); }
    bool erase(View<K> key) { return index_.erase(key); }

    void insert_ahead(View<K> key, View<V> value) requires CanInsertAhead<Index<K, V>, K, V> {
      index_.insert_ahead(key, value);
    }

    std::size_t scan(View<K> from, std::size_t limit,
                     Sink& sink) requires Ordered<Index<K, V>, K, V> {
      std::size_t shown = 0;
      index_.scan(from, limit, [&](View<K> key, View<V> value) {
        sink.take(key);
        sink.take(value);
        ++shown;
        return true;
      });
      return shown;
    }

    bool seek(View<K> from, Sink& sink) requires Ordered<Index<K, V>, K, V> {
      auto cursor = index_.cursor();
      cursor.seek(from);
      if (!cursor.valid()) return false;
      sink.take(cursor.key());
      sink.take(cursor.value());
      return true;
    }

    std::size_t get_many(std::span<const View<K>> keys, Sink& sink) {
      values_.resize(keys.size());
      index_.get_many(keys, values_);
      std::size_t found = 0;
      for (const auto& value : values_) {
        if (!value) continue;
        sink.take(*value);
        ++found;
      }
      return found;
    }

    void settle() {
      core_.background().drain();
      core_.reclaimer().settle();
    }

   private:
    std::vector<std::optional<V>> values_;
    Index<K, V>& index_;
    detail::pool::PoolCore& core_;
  };

  Client client() { return Client(index_, *pool_.core()); }

  OwnFootprint footprint() const {
    const IndexStats stats = index_.stats();
    return {stats.dram_bytes, stats.pm_bytes};
  }

  const Index<K, V>& index() const { return index_; }

 private:
  Pool pool_;
  Index<K, V> index_;
};

/// A PerdixMap whose index restores its DRAM in the background after it has been opened.
template <class Map>
class Resuming : public Map {
 public:
  using Map::Map;

  void resume() { this->index().size(); }  // which needs all leaves
};

/// Describes the options that apply on this machine: "pool: durability process, domain cpu_cache".
inline std::string pool_settings(const Setup& setup) {
  PoolOptions options = pool_options(setup);
  options.initial_size = std::uint64_t{32} << 20;  // the smallest pool gets no huge pages
  const Pool pool = Pool::open_or_create(setup.directory / "settings.pool", options);
  const PoolInfo info = pool.info();
  return "pool with durability " +
         std::string(info.durability == Durability::power ? "power" : "process") +
         ", persistence domain " + info.domain +
         (pool.huge_pages() ? ", huge pages" : ", 4 KiB pages");
}

}  // namespace perdix::bench
