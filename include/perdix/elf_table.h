// ElfTable: a durable table with named, typed columns over an Elf.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <perdix/elf.h>
#include <perdix/pool.h>
#include <perdix/types.h>

struct ArrowSchema;
struct ArrowArray;

namespace perdix {

namespace detail::index::elf_table {
class Table;
}

/// A day, counted from 1970-01-01; earlier ones are negative.
struct ElfDate {
  /// Days since 1970-01-01.
  std::int32_t days = 0;
  friend auto operator<=>(const ElfDate&, const ElfDate&) = default;
};

/// The type of a column.
enum class ElfType : std::uint8_t {
  int32 = 1,
  int64 = 2,
  float64 = 3,  ///< double, but NaN; -0.0 is stored as 0.0
  date = 4,     ///< ElfDate
  string = 5,   ///< any bytes, also none and zeros; compared as unsigned bytes
};

/// The name of a type as it is written in the enumeration; "double" for float64.
std::string_view to_string(ElfType type) noexcept;

/// A column: its name and its type.
struct ElfColumn {
  /// 1 to ElfTable::kMaxColumnName bytes without control characters.
  std::string name;
  /// The type of its values.
  ElfType type;
  friend bool operator==(const ElfColumn&, const ElfColumn&) = default;
};

/// A value of a column, in the order of ElfType.
using ElfValue = std::variant<std::int32_t, std::int64_t, double, ElfDate, std::string>;

/// The values of a column for a build, row by row.
using ElfColumnData = std::variant<std::span<const std::int32_t>, std::span<const std::int64_t>,
                                   std::span<const double>, std::span<const ElfDate>,
                                   std::span<const std::string>, std::span<const std::string_view>>;

/// A condition on one column. A value has the column's type; an int32 may stand for an int64 or a
/// float64.
struct ElfPredicate {
  /// How a value is compared with those of the condition.
  enum class Op : std::uint8_t { equal, less, at_most, greater, at_least, between, in, prefix };

  /// The name of the column.
  std::string column;
  /// How it is compared.
  Op op;
  std::vector<ElfValue> values;  ///< two for between, any number for in, else one

  /// Values that equal this one.
  static ElfPredicate equal(std::string column, ElfValue value) {
    return {std::move(column), Op::equal, {std::move(value)}};
  }
  /// Values below this one.
  static ElfPredicate less(std::string column, ElfValue value) {
    return {std::move(column), Op::less, {std::move(value)}};
  }
  /// Values not above this one.
  static ElfPredicate at_most(std::string column, ElfValue value) {
    return {std::move(column), Op::at_most, {std::move(value)}};
  }
  /// Values above this one.
  static ElfPredicate greater(std::string column, ElfValue value) {
    return {std::move(column), Op::greater, {std::move(value)}};
  }
  /// Values not below this one.
  static ElfPredicate at_least(std::string column, ElfValue value) {
    return {std::move(column), Op::at_least, {std::move(value)}};
  }
  /// Both bounds are included.
  static ElfPredicate between(std::string column, ElfValue lower, ElfValue upper) {
    return {std::move(column), Op::between, {std::move(lower), std::move(upper)}};
  }
  /// Values that equal one of these.
  static ElfPredicate in(std::string column, std::vector<ElfValue> values) {
    return {std::move(column), Op::in, std::move(values)};
  }
  /// Strings that begin with these bytes.
  static ElfPredicate prefix(std::string column, std::string bytes) {
    return {std::move(column), Op::prefix, {std::move(bytes)}};
  }
};

/// How a table is built.
struct ElfBuildOptions {
  /// Names of columns that come first in the Elf. The others follow, those with the fewest
  /// different values first.
  std::vector<std::string> order;

  /// As Elf::Progress.
  Elf::Progress progress;
};

/// Facts about one column.
struct ElfColumnStats {
  /// Its name and type.
  ElfColumn column;
  unsigned dimension = 0;              ///< its place in the Elf, from 0
  std::uint64_t words = 0;             ///< values in its dictionary; 0 if it has none
  std::uint64_t dictionary_bytes = 0;  ///< bytes of the dictionary in the pool
};

/// Sizes of a table, at the moment of the call.
struct ElfTableStats {
  std::uint64_t rows = 0;        ///< rows in the table
  std::uint64_t delta_rows = 0;  ///< of those, rows that were inserted since the last compact()
  std::uint64_t pm_bytes = 0;    ///< bytes of the pool's blocks
  /// Facts about each column.
  std::vector<ElfColumnStats> columns;
  /// Sizes and counts of the Elf below.
  ElfStats elf;
};

/// How a query is answered.
struct ElfPlan {
  /// The conditions of a query on one column.
  struct Step {
    /// The name of the column.
    std::string column;
    std::vector<ElfInterval> codes;  ///< of the Elf's numbers, those that the conditions admit
  };
  std::vector<Step> steps;       ///< one for each column with a condition, in the Elf's order
  bool walks = false;            ///< over the Elf; false: none of its rows can match
  std::uint64_t delta_rows = 0;  ///< inserted rows, which are looked at one by one

  /// Counts of the walk over the Elf, for each dimension. Empty if there is no walk.
  std::vector<ElfStep> dimensions;
};

/// Shows rows to a query without owning the callable: a reference to any `bool(std::uint32_t tid,
/// std::span<const ElfValue>)`; false stops the query.
class ElfRowVisitor {
 public:
  /// Refers to `visit`, which must outlive the query.
  template <class F>
  requires std::is_invocable_r_v<bool, F&, std::uint32_t, std::span<const ElfValue>> ElfRowVisitor(
      F&& visit)  // NOLINT(google-explicit-constructor): lambdas are passed directly
      : object_(const_cast<void*>(static_cast<const void*>(&visit))),
        call_([](void* object, std::uint32_t tid, std::span<const ElfValue> row) -> bool {
          return (*static_cast<std::remove_reference_t<F>*>(object))(tid, row);
        }) {}

  /// Calls the visitor.
  bool operator()(std::uint32_t tid, std::span<const ElfValue> row) const {
    return call_(object_, tid, row);
  }

 private:
  void* object_;
  bool (*call_)(void*, std::uint32_t, std::span<const ElfValue>);
};

/// A durable table of rows with named, typed columns, which answers conditions on any of them.
///
///   perdix::ElfTable table(pool, "lineitem", {{"quantity", ElfType::int32},
///                                             {"shipmode", ElfType::string}});
///   table.build({quantities, shipmodes});                        // bulk load
///   table.count({ElfPredicate::between("quantity", 1, 10),
///                ElfPredicate::equal("shipmode", "AIR")});       // conditions are combined by and
///   table.insert({7, "AIR"});
///
/// Each column's values are encoded as 32-bit numbers of the same order: int32 and date directly,
/// the others by a sorted dictionary in the pool. Inserted rows are kept as they are, so they may
/// have values that no dictionary has; compact() gives them numbers and folds them into the Elf.
/// There are no nulls. docs/elf-table.md says what is stored and what calls cost.
///
/// A row has a number, its TID, which it keeps for its life and which is not used again until
/// build().
///
/// Every call is thread-safe. Queries wait for no writer. insert() and erase() wait for each other,
/// and for the moment in which a build() or compact() puts its result in place. All four are
/// durable when they return, and a crash leaves all of a call or nothing. Queries are no snapshots,
/// as those of an Elf.
///
/// Calls throw invalid_argument for columns that do not exist, values of the wrong type, NaN,
/// bounds that cross, and columns of unequal length; too_large for strings above kMaxString bytes
/// and for more than Elf::kMaxRows rows; out_of_space, no_memory, corrupt, and what PointIndex says
/// of failed syncs and forks. A call that throws has changed nothing.
class ElfTable {
 public:
  /// The number of a row.
  using Tid = Elf::Tid;
  /// Conditions, all of which a row must meet.
  using Where = std::span<const ElfPredicate>;
  /// The values of a row, one for each column.
  using Row = std::vector<ElfValue>;

  /// Columns that a table may have.
  static constexpr std::size_t kMaxColumns = Elf::kMaxDimensions;
  static constexpr std::size_t kMaxString = (std::size_t{1} << 16) - 1;  ///< bytes
  static constexpr std::size_t kMaxColumnName = 127;                     ///< bytes

  /// Opens the table of that name, or creates it empty. Names of columns are different, of 1 to
  /// kMaxColumnName bytes without control characters. Throws wrong_kind if the table exists with
  /// other columns, wrong_engine, in_use.
  ElfTable(const Pool& pool, std::string_view name, const std::vector<ElfColumn>& columns);

  /// Opens the table of that name. Throws not_found.
  ElfTable(const Pool& pool, std::string_view name);

  /// Takes over the open table; the other object can then only be assigned to or destroyed.
  ElfTable(ElfTable&&) noexcept;
  /// Closes the table that this object had, then takes over the other one as the constructor does.
  ElfTable& operator=(ElfTable&&) noexcept;
  ~ElfTable();

  /// The columns, in the order in which the table was created.
  const std::vector<ElfColumn>& columns() const;

  /// Replaces all rows: row i has the i-th value of each column and the TID i. Rows that are
  /// inserted or erased during the call count as if that had been before. Returns false if
  /// options.progress cancelled it; then nothing has changed. Throws in_use while another build()
  /// or compact() runs, and while a query shows a visitor rows of before the last one. Cost: DRAM
  /// of about 20 bytes for each row and 60 for each different value of one column, and what
  /// Elf::build() says; the space of both tables in the pool.
  bool build(std::span<const ElfColumnData> columns, const ElfBuildOptions& options = {});
  /// Like build() with a span, for columns in a vector.
  bool build(const std::vector<ElfColumnData>& columns, const ElfBuildOptions& options = {}) {
    return build(std::span(columns), options);
  }

  /// Builds from a struct array of the Arrow C data interface (<perdix/arrow_abi.h>), whose
  /// children have the table's names and types, in any order: formats i, l, g, tdD, and u, U, z or
  /// Z for strings. Columns that the table has not are ignored. The caller keeps both structures.
  /// Nulls and dictionary-encoded children are refused.
  bool build(const ArrowSchema& schema, const ArrowArray& array,
             const ElfBuildOptions& options = {});

  /// The columns that a table for such an array has. Throws unsupported for other types.
  static std::vector<ElfColumn> columns_of(const ArrowSchema& schema);

  /// Adds a row; returns its TID. Cost: a pair of a FAST&FAIR tree. An insert() that leaves more
  /// than Elf::kMinDelta inserted rows, and more than a quarter of the others, calls compact(),
  /// as that of an Elf does.
  Tid insert(std::span<const ElfValue> row);
  /// Like insert() with a span, for a row in a vector.
  Tid insert(const Row& row) { return insert(std::span(row)); }

  /// Removes a row; false if there is no row of that number.
  bool erase(Tid tid);

  /// Folds inserted and erased rows into the Elf, and their values into the dictionaries, out of
  /// place, while queries and writers run. Rows that are inserted meanwhile stay beside the Elf.
  /// TIDs and the order of columns stay; rows that were erased take no space any more. Returns
  /// false if `progress` cancelled it. Throws and costs as build().
  bool compact(const Elf::Progress& progress = nullptr);

  /// The TIDs of the rows that meet all conditions, in no order.
  std::vector<Tid> select(Where where = {}) const;
  /// Like select() with a span, for conditions in a vector.
  std::vector<Tid> select(const std::vector<ElfPredicate>& where) const {
    return select(Where(where));
  }

  /// Shows the TIDs one by one until the visitor returns false.
  void select(Where where, TidVisitor visit) const;

  /// How many rows select() would find.
  std::uint64_t count(Where where = {}) const;
  /// Like count() with a span, for conditions in a vector.
  std::uint64_t count(const std::vector<ElfPredicate>& where) const { return count(Where(where)); }

  /// Shows the rows with their values, until the visitor returns false.
  void rows(Where where, ElfRowVisitor visit) const;

  /// The values of a row; none if there is no row of that number.
  std::optional<Row> row(Tid tid) const;

  /// The rows as a struct array of the Arrow C data interface; the caller releases both structures.
  /// A column of strings has the format u if `utf8`, else z, and U or Z if it has 2 GiB and more.
  /// Cost: DRAM for all of it.
  void to_arrow(Where where, ArrowSchema& schema, ArrowArray& array, bool utf8 = true) const;

  /// Caches parts of the Elf's lists in DRAM, as Elf::cache() says. Dictionaries and columns are
  /// read where they are.
  void cache(const CachePolicy& policy);

  /// Returns when the cache is filled, or can't be for want of memory.
  void wait_for_cache() const;

  /// How a query with these conditions is answered. Cost: as Elf::explain().
  ElfPlan explain(Where where) const;

  /// Number of rows. Cost: the first call after an opening reads all inserted rows.
  std::uint64_t size() const;

  /// Sizes of the table and of its columns.
  ElfTableStats stats() const;

  /// Verifies every invariant of the table: also that the Elf has the rows that the columns have,
  /// and that dictionaries fit them. Writers must be idle. Cost: a query for each different row.
  CheckReport check() const;

 private:
  /// As Elf::Close.
  struct Close {
    void operator()(detail::index::elf_table::Table* table) const noexcept;
  };

  template <class Call>
  auto run(Call call) const;

  std::unique_ptr<detail::index::elf_table::Table, Close> table_;
};

}  // namespace perdix
