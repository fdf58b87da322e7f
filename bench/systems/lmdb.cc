// LMDB, one transaction per operation: the granularity at which an index acknowledges.
#include <memory>

#include <fmt/format.h>
#include <lmdb.h>

#include <perdix/error.h>

#include "systems/stored_bytes.h"
#include "systems/systems.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

// Read transactions belong to clients, not to threads (NOTLS); unused bytes of new pages aren't
// zeroed (NOMEMINIT).
unsigned environment_flags(const Setup& setup) {
  const unsigned flags = MDB_NOTLS | MDB_NOMEMINIT;
  return setup.synced() ? flags : flags | MDB_NOSYNC | MDB_WRITEMAP;
}

// Room for half-empty pages, copies of pages that readers pin, and page headers; the file stays
// sparse.
std::size_t map_bytes(const Setup& setup) {
  return (std::size_t{1} << 30) + 8 * setup.max_records * (setup.data.shape.pair_size() + 32);
}

bool succeeded(int code, int benign, const char* what) {
  if (code == MDB_SUCCESS) return true;
  if (code == benign) return false;
  throw Error(code == MDB_MAP_FULL ? Errc::out_of_space : Errc::io_error,
              fmt::format("LMDB failed to {}: {}", what, mdb_strerror(code)));
}

void require(int code, const char* what) { succeeded(code, MDB_SUCCESS, what); }

struct CloseEnvironment {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
struct AbortTransaction {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
struct CloseCursor {
  void operator()(MDB_cursor* cursor) const { mdb_cursor_close(cursor); }
};
using Transaction = std::unique_ptr<MDB_txn, AbortTransaction>;
using Cursor = std::unique_ptr<MDB_cursor, CloseCursor>;

Transaction begin(MDB_env* env, unsigned flags) {
  MDB_txn* txn = nullptr;
  require(mdb_txn_begin(env, nullptr, flags, &txn), "begin a transaction");
  return Transaction(txn);
}

MDB_val to_val(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
std::string_view to_view(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

template <class K, class V>
class LmdbMap {
 public:
  explicit LmdbMap(const Setup& setup) {
    MDB_env* env = nullptr;
    require(mdb_env_create(&env), "create an environment");
    env_.reset(env);
    require(mdb_env_set_mapsize(env, map_bytes(setup)), "set the map size");
    require(mdb_env_open(env, setup.directory.c_str(), environment_flags(setup), 0600), "open");
    Transaction txn = begin(env, 0);
    require(mdb_dbi_open(txn.get(), nullptr, 0, &dbi_), "open the database");
    require(mdb_txn_commit(txn.release()), "commit");
  }

  class Client {
   public:
    explicit Client(LmdbMap& map)
        : env_(map.env_.get()), dbi_(map.dbi_), reader_(begin(env_, MDB_RDONLY)) {
      mdb_txn_reset(reader_.get());
    }

    bool get(View<K> key, Sink& sink) {
      const Snapshot snapshot(reader_.get());
      const StoredBytes stored(key);
      MDB_val k = to_val(stored.view());
      MDB_val v;
      if (!succeeded(mdb_get(reader_.get(), dbi_, &k, &v), MDB_NOTFOUND, "get")) return false;
      sink.take(to_view(v));
      return true;
    }
    bool insert(View<K> key, View<V> value) { return put(key, value, MDB_NOOVERWRITE); }
    bool update(View<K> key, View<V> value) { return put(key, value, 0); }

    bool erase(View<K> key) {
      Transaction txn = begin(env_, 0);
      const StoredBytes stored(key);
      MDB_val k = to_val(stored.view());
      if (!succeeded(mdb_del(txn.get(), dbi_, &k, nullptr), MDB_NOTFOUND, "delete")) return false;
      require(mdb_txn_commit(txn.release()), "commit");
      return true;
    }

    std::size_t scan(View<K> from, std::size_t limit, Sink& sink) {
      const Snapshot snapshot(reader_.get());
      MDB_cursor* opened = nullptr;
      require(mdb_cursor_open(reader_.get(), dbi_, &opened), "open a cursor");
      const Cursor cursor(opened);
      const StoredBytes stored(from);
      MDB_val k = to_val(stored.view());
      MDB_val v;
      std::size_t shown = 0;
      for (MDB_cursor_op move = MDB_SET_RANGE; shown < limit; ++shown, move = MDB_NEXT) {
        if (!succeeded(mdb_cursor_get(opened, &k, &v, move), MDB_NOTFOUND, "scan")) break;
        sink.take(to_view(k));
        sink.take(to_view(v));
      }
      return shown;
    }

   private:
    // A read transaction is renewed for each operation and reset after it, so that it never pins
    // old pages.
    class Snapshot {
     public:
      explicit Snapshot(MDB_txn* reader) : reader_(reader) {
        require(mdb_txn_renew(reader), "renew a transaction");
      }
      ~Snapshot() { mdb_txn_reset(reader_); }
      Snapshot(const Snapshot&) = delete;
      Snapshot& operator=(const Snapshot&) = delete;

     private:
      MDB_txn* reader_;
    };

    bool put(View<K> key, View<V> value, unsigned flags) {
      Transaction txn = begin(env_, 0);
      const StoredBytes stored_key(key);
      const StoredBytes stored_value(value);
      MDB_val k = to_val(stored_key.view());
      MDB_val v = to_val(stored_value.view());
      if (!succeeded(mdb_put(txn.get(), dbi_, &k, &v, flags), MDB_KEYEXIST, "put")) return false;
      require(mdb_txn_commit(txn.release()), "commit");
      return true;
    }

    MDB_env* env_;
    MDB_dbi dbi_;
    Transaction reader_;
  };

  Client client() { return Client(*this); }

  OwnFootprint footprint() const {
    MDB_stat stat;
    require(mdb_env_stat(env_.get(), &stat), "read its statistics");
    const std::uint64_t pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    return {std::nullopt, pages * stat.ms_psize};
  }

 private:
  std::unique_ptr<MDB_env, CloseEnvironment> env_;
  MDB_dbi dbi_ = 0;
};

std::string lmdb_settings(const Setup& setup) {
  return fmt::format(
      "{}.{}.{}, {}MDB_NOTLS|MDB_NOMEMINIT, one transaction per operation, read transactions "
      "renewed",
      MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH,
      setup.synced() ? "synced at each commit, " : "MDB_NOSYNC|MDB_WRITEMAP|");
}

}  // namespace

std::vector<System> lmdb_systems() {
  return {{"lmdb", "LMDB, copy-on-write B+-tree", true, open_store<LmdbMap>, lmdb_settings,
           calls_of<LmdbMap>()}};
}

}  // namespace perdix::bench
