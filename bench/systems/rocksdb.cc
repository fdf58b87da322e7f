// RocksDB with its write-ahead log on.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <perdix/error.h>

#include "systems/stored_bytes.h"
#include "systems/systems.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

constexpr double kBloomBitsPerKey = 10;
constexpr std::uint64_t kMinCache = 256 << 20;  // bytes

// Twice the data, so that every block stays in DRAM once it was read.
std::uint64_t cache_bytes(const Setup& setup) {
  return std::max(kMinCache, 2 * setup.max_records * setup.data.shape.pair_size());
}

rocksdb::Options rocksdb_options(const Setup& setup) {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
  table.block_cache = rocksdb::NewLRUCache(cache_bytes(setup));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.IncreaseParallelism(static_cast<int>(std::max(2U, setup.threads)));
  return options;
}

void require(const rocksdb::Status& status, const char* what) {
  if (status.ok()) return;
  throw Error(status.IsNoSpace() ? Errc::out_of_space : Errc::io_error,
              fmt::format("RocksDB failed to {}: {}", what, status.ToString()));
}

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

template <class K, class V>
class RocksDbMap {
 public:
  explicit RocksDbMap(const Setup& setup) {
    rocksdb::DB* db = nullptr;
    require(rocksdb::DB::Open(rocksdb_options(setup), setup.directory.string(), &db), "open");
    db_.reset(db);
    write_.sync = setup.synced();
  }

  class Client {
   public:
    explicit Client(RocksDbMap& map) : db_(*map.db_), write_(map.write_) {}

    bool get(View<K> key, Sink& sink) {
      rocksdb::PinnableSlice value;
      const rocksdb::Status status =
          db_.Get(read_, db_.DefaultColumnFamily(), slice(StoredBytes(key).view()), &value);
      if (status.IsNotFound()) return false;
      require(status, "get");
      sink.take(std::string_view(value.data(), value.size()));
      return true;
    }
    bool insert(View<K> key, View<V> value) { return put(key, value); }
    bool update(View<K> key, View<V> value) { return put(key, value); }
    bool erase(View<K> key) {
      require(db_.Delete(write_, slice(StoredBytes(key).view())), "delete");
      return true;
    }
    std::size_t scan(View<K> from, std::size_t limit, Sink& sink) {
      const std::unique_ptr<rocksdb::Iterator> it(db_.NewIterator(read_));
      std::size_t shown = 0;
      for (it->Seek(slice(StoredBytes(from).view())); it->Valid() && shown < limit;
           it->Next(), ++shown) {
        sink.take(std::string_view(it->key().data(), it->key().size()));
        sink.take(std::string_view(it->value().data(), it->value().size()));
      }
      require(it->status(), "scan");
      return shown;
    }

   private:
    bool put(View<K> key, View<V> value) {
      require(db_.Put(write_, slice(StoredBytes(key).view()), slice(StoredBytes(value).view())),
              "put");
      return true;
    }

    rocksdb::DB& db_;
    rocksdb::ReadOptions read_;
    rocksdb::WriteOptions write_;
  };

  Client client() { return Client(*this); }

  OwnFootprint footprint() const {
    std::uint64_t memtables = 0;
    std::uint64_t readers = 0;
    std::uint64_t cache = 0;
    db_->GetIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &memtables);
    db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &readers);
    db_->GetIntProperty(rocksdb::DB::Properties::kBlockCacheUsage, &cache);
    return {memtables + readers + cache, std::nullopt};
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
};

std::string rocksdb_settings(const Setup& setup) {
  return fmt::format(
      "RocksDB {}.{}.{}, WAL on, WriteOptions.sync={}, no compression, Bloom filter {} bits per "
      "key, block "
      "cache {} MiB, IncreaseParallelism({}), blind Put and Delete; otherwise defaults",
      ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH, setup.synced(), kBloomBitsPerKey,
      cache_bytes(setup) >> 20, std::max(2U, setup.threads));
}

}  // namespace

std::vector<System> rocksdb_systems() {
  return {{"rocksdb", "RocksDB, log-structured merge tree", true, open_store<RocksDbMap>,
           rocksdb_settings, calls_of<RocksDbMap>()}};
}

}  // namespace perdix::bench
