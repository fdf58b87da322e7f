// SQLite: a table with the key as its primary key, one transaction per operation, in WAL mode. All
// threads share a connection, behind a lock: with one for each they would wait by sleeping.
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sqlite3.h>

#include <perdix/error.h>

#include "systems/stored_bytes.h"
#include "systems/systems.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Database {
 public:
  Database(const std::filesystem::path& path, bool synced) {
    sqlite3* opened = nullptr;
    const int result = sqlite3_open(path.c_str(), &opened);
    database_.reset(opened);
    require(result);
    for (const std::string& sql : {std::string("pragma journal_mode = wal"),
                                   fmt::format("pragma synchronous = {}", synced ? "full" : "off"),
                                   std::string("create table pairs (key blob primary key, "
                                               "value blob) without rowid")})
      require(sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr));
  }

  void require(int result) const {
    if (result == SQLITE_OK || result == SQLITE_DONE) return;
    throw Error(Errc::io_error, fmt::format("SQLite: {}", sqlite3_errmsg(database_.get())));
  }

  /// Rows that the last statement has changed.
  int changed() const { return sqlite3_changes(database_.get()); }

  std::uint64_t bytes() const {
    Statement pages(*this, "pragma page_count"), size(*this, "pragma page_size");
    return (pages.step() ? pages.number() : 0) * (size.step() ? size.number() : 0);
  }

  class Statement {
   public:
    Statement(const Database& database, const char* sql) : database_(database) {
      sqlite3_stmt* prepared = nullptr;
      database.require(sqlite3_prepare_v2(database.database_.get(), sql, -1, &prepared, nullptr));
      statement_.reset(prepared);
    }

    /// The caller keeps the bytes until it steps no more.
    void bind(int place, std::string_view bytes) {
      database_.require(sqlite3_bind_blob(statement_.get(), place, bytes.data(),
                                          static_cast<int>(bytes.size()), SQLITE_STATIC));
    }
    void bind(int place, std::size_t number) {
      database_.require(
          sqlite3_bind_int64(statement_.get(), place, static_cast<sqlite3_int64>(number)));
    }

    /// Whether there is a row.
    bool step() {
      const int result = sqlite3_step(statement_.get());
      if (result == SQLITE_ROW) return true;
      database_.require(result);
      return false;
    }
    void reset() { sqlite3_reset(statement_.get()); }

    std::uint64_t number() const {
      return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), 0));
    }
    std::string_view bytes(int column) const {
      return {static_cast<const char*>(sqlite3_column_blob(statement_.get(), column)),
              static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
    }

   private:
    const Database& database_;
    std::unique_ptr<sqlite3_stmt, EndStatement> statement_;
  };

 private:
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

template <class K, class V>
class SqliteMap {
 public:
  explicit SqliteMap(const Setup& setup)
      : database_(setup.directory / "pairs.db", setup.synced()) {}

  class Client {
   public:
    explicit Client(SqliteMap& map) : map_(map) {}

    bool get(View<K> key, Sink& sink) {
      return map_.run(map_.get_, [&](auto& statement) {
        const StoredBytes stored(key);
        statement.bind(1, stored.view());
        if (!statement.step()) return false;
        sink.take(statement.bytes(0));
        return true;
      });
    }
    bool insert(View<K> key, View<V> value) {
      return map_.change(map_.insert_, StoredBytes(key).view(), StoredBytes(value).view());
    }
    bool update(View<K> key, View<V> value) {
      return map_.change(map_.update_, StoredBytes(key).view(), StoredBytes(value).view());
    }
    bool erase(View<K> key) {
      return map_.run(map_.erase_, [&](auto& statement) {
        const StoredBytes stored(key);
        statement.bind(1, stored.view());
        statement.step();
        return map_.database_.changed() == 1;
      });
    }
    std::size_t scan(View<K> from, std::size_t limit, Sink& sink) {
      return map_.run(map_.scan_, [&](auto& statement) {
        const StoredBytes stored(from);
        statement.bind(1, stored.view());
        statement.bind(2, limit);
        std::size_t shown = 0;
        for (; statement.step(); ++shown) {
          sink.take(statement.bytes(0));
          sink.take(statement.bytes(1));
        }
        return shown;
      });
    }

   private:
    SqliteMap& map_;
  };

  Client client() { return Client(*this); }

  OwnFootprint footprint() const {
    const std::lock_guard lock(mutex_);
    return {std::nullopt, database_.bytes()};
  }

 private:
  using Statement = Database::Statement;

  template <class Run>
  auto run(Statement& statement, Run call) {
    const std::lock_guard lock(mutex_);
    const auto result = call(statement);
    statement.reset();
    return result;
  }
  bool change(Statement& statement, std::string_view key, std::string_view value) {
    return run(statement, [&](Statement& prepared) {
      prepared.bind(1, key);
      prepared.bind(2, value);
      prepared.step();
      return database_.changed() == 1;
    });
  }

  mutable std::mutex mutex_;
  Database database_;
  Statement get_{database_, "select value from pairs where key = ?"};
  Statement insert_{database_, "insert or ignore into pairs values (?, ?)"};
  Statement update_{database_, "update pairs set value = ?2 where key = ?1"};
  Statement erase_{database_, "delete from pairs where key = ?"};
  Statement scan_{database_, "select key, value from pairs where key >= ? order by key limit ?"};
};

std::string sqlite_settings(const Setup& setup) {
  return fmt::format("{}, WAL, synchronous {}, one transaction per operation, one connection",
                     sqlite3_libversion(), setup.synced() ? "full" : "off");
}

}  // namespace

std::vector<System> sqlite_systems() {
  return {{"sqlite", "SQLite, a B-tree and a write-ahead log", true, open_store<SqliteMap>,
           sqlite_settings, calls_of<SqliteMap>()}};
}

}  // namespace perdix::bench
