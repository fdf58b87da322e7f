#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <sqlite3.h>

#include <perdix/error.h>

#include "special/elf/systems.h"

namespace perdix::bench::points {
namespace {

constexpr unsigned kSqliteDimensions = 5;

class Sqlite final : public System {
 public:
  explicit Sqlite(const Data& data) : data_(data) {
    require(sqlite3_open(":memory:", &database_));
    std::string names, bounds, marks = "?";
    for (unsigned d = 0; d < kSqliteDimensions; ++d) {
      names += fmt::format(", l{0}, u{0}", d);
      marks += ", ?, ?";
      bounds += fmt::format("{} l{} between ? and ?", d == 0 ? "where" : " and", d);
    }
    run(fmt::format("create virtual table t using rtree_i32(id{})", names));
    insert(fmt::format("insert into t values ({})", marks));
    prepare(query_, fmt::format("select id from t {}", bounds));
  }

  ~Sqlite() override {
    sqlite3_finalize(query_);
    sqlite3_close(database_);
  }

  void exact(const Query& query, Tids& tids) override {
    range(query, tids);
    if (tids.size() > 1) tids = {*std::ranges::min_element(tids)};
  }

  void range(const Query& query, Tids& tids) override {
    sqlite3_reset(query_);
    for (unsigned d = 0; d < kSqliteDimensions; ++d) {
      const int first = static_cast<int>(2 * d + 1);
      sqlite3_bind_int(query_, first, static_cast<int>(query.lower[d]));
      sqlite3_bind_int(query_, first + 1, static_cast<int>(std::min(query.upper[d], kMaxValue)));
    }
    int result = 0;
    while ((result = sqlite3_step(query_)) == SQLITE_ROW) {
      const auto tid = static_cast<std::uint32_t>(sqlite3_column_int64(query_, 0));
      if (meets_others(query, tid)) tids.push_back(tid);
    }
    if (result != SQLITE_DONE) require(result);
  }

  std::uint64_t bytes() const override { return static_cast<std::uint64_t>(sqlite3_memory_used()); }

 private:
  void require(int result) const {
    if (result != SQLITE_OK) {
      throw Error(Errc::unsupported, fmt::format("SQLite: {}", sqlite3_errmsg(database_)));
    }
  }

  void run(const std::string& sql) {
    require(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr));
  }

  void prepare(sqlite3_stmt*& statement, const std::string& sql) {
    require(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr));
  }

  void insert(const std::string& sql) {
    run("begin");
    sqlite3_stmt* statement = nullptr;
    prepare(statement, sql);
    for (std::uint64_t row = 0; row < data_.rows(); ++row) {
      sqlite3_reset(statement);
      sqlite3_bind_int64(statement, 1, static_cast<sqlite3_int64>(row));
      for (unsigned d = 0; d < kSqliteDimensions; ++d) {
        const int value = static_cast<int>(data_.column(d)[row]);
        sqlite3_bind_int(statement, static_cast<int>(2 * d + 2), value);
        sqlite3_bind_int(statement, static_cast<int>(2 * d + 3), value);
      }
      if (sqlite3_step(statement) != SQLITE_DONE) require(sqlite3_errcode(database_));
    }
    sqlite3_finalize(statement);
    run("commit");
  }

  bool meets_others(const Query& query, std::uint32_t tid) const {
    for (unsigned d = kSqliteDimensions; d < kDimensions; ++d) {
      const std::uint32_t value = data_.column(d)[tid];
      if (value < query.lower[d] || value > query.upper[d]) return false;
    }
    return true;
  }

  const Data& data_;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* query_ = nullptr;
};

}  // namespace

std::unique_ptr<System> make_sqlite(const Data& data) { return std::make_unique<Sqlite>(data); }

}  // namespace perdix::bench::points
