// Elf: a durable table of points for analytical queries over many columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

namespace perdix {

namespace detail::index::elf {
class Table;
}

/// Which parts of an Elf are copied to DRAM (Jibril et al., Section IV-B). Policies are combined by
/// `|`: CachePolicy::static_levels(2) | CachePolicy::dynamic(1 << 20).
class CachePolicy {
 public:
  /// Which list a full dynamic cache gives up.
  enum class Eviction : std::uint8_t {
    recency,      ///< one that no query has visited for the longest time, about
    probability,  ///< the one that a query visits least probably
  };

  /// No bound.
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  /// Pure PM: nothing is copied.
  static CachePolicy none() { return {}; }

  /// The hybrid Elf: all of it is copied.
  static CachePolicy hybrid() {
    CachePolicy policy;
    policy.full = true;
    return policy;
  }

  /// The lists of the first `n` dimensions.
  static CachePolicy static_levels(unsigned n) {
    CachePolicy policy;
    policy.levels = n;
    return policy;
  }

  /// Lists that queries visit more than once, up to this number of bytes. Only the first 256 lists
  /// of a query are looked up in it: a query that visits more reads them faster in the order of the
  /// pool.
  static CachePolicy dynamic(std::uint64_t bytes, Eviction eviction = Eviction::recency) {
    CachePolicy policy;
    policy.dynamic_bytes = bytes;
    policy.eviction = eviction;
    return policy;
  }

  /// The lists that a query visits most probably, up to this number of bytes. The first list has
  /// the probability 1; any other has the share of the rows that lie below it.
  static CachePolicy probability(std::uint64_t bytes) {
    CachePolicy policy;
    policy.probable_bytes = bytes;
    return policy;
  }

  /// Returns this policy with a bound on the bytes of all its parts. The dynamic part gets what the
  /// others leave; what exceeds the budget of the static part is chosen by probability.
  CachePolicy within(std::uint64_t bytes) const {
    CachePolicy policy = *this;
    policy.budget = bytes;
    return policy;
  }

  friend CachePolicy operator|(const CachePolicy& a, const CachePolicy& b);
  friend bool operator==(const CachePolicy&, const CachePolicy&) = default;

  /// All lists are copied: hybrid().
  bool full = false;
  /// The dimensions whose lists are copied, from the first: static_levels().
  unsigned levels = 0;
  /// Bytes of the dynamic part: dynamic().
  std::uint64_t dynamic_bytes = 0;
  /// The choice of the list that a full dynamic part gives up.
  Eviction eviction = Eviction::recency;
  /// Bytes of the part that is chosen by probability: probability().
  std::uint64_t probable_bytes = 0;
  /// Bytes of all parts together: within().
  std::uint64_t budget = kUnlimited;
};

/// Bounds of one value, both included.
struct ElfInterval {
  /// The least value that fulfils it.
  std::uint32_t lower = 0;
  /// The greatest value that fulfils it.
  std::uint32_t upper = ~std::uint32_t{0};
};

/// A condition on one dimension, counted from 0.
struct ElfCondition {
  /// Which dimension, from 0.
  unsigned dimension;
  /// Where its value must lie.
  ElfInterval interval;
};

/// Counts of one dimension's lists, since the policy was set.
struct ElfLevel {
  std::uint64_t hits = 0;    ///< lists that queries read in DRAM
  std::uint64_t misses = 0;  ///< lists that queries read in PM
};

/// Sizes and counts of an Elf, at the moment of the call.
struct ElfStats {
  std::uint64_t rows = 0;        ///< rows in the table
  std::uint64_t delta_rows = 0;  ///< of those, rows that were inserted since the last compact()
  std::uint64_t pm_bytes = 0;    ///< bytes of the pool's blocks
  std::uint64_t elf_bytes = 0;   ///< of those, bytes of lists
  std::uint64_t dram_bytes = 0;  ///< bytes of DRAM, caches among them

  CachePolicy policy;             ///< the one in force
  bool filling = false;           ///< the cache is still being filled, in the background
  std::uint64_t cache_bytes = 0;  ///< bytes of cached lists
  std::uint64_t lines_saved = 0;  ///< lines of PM that queries did not read, about
  std::vector<ElfLevel> levels;   ///< one for each dimension; empty if nothing is cached
};

/// Counts of what a query does to one dimension.
struct ElfStep {
  std::uint64_t lists = 0;         ///< lists that the query visits
  std::uint64_t cached = 0;        ///< of those, lists in DRAM
  double highest_probability = 0;  ///< of a visited list: the share of all rows below it
  /// The share of all rows below the list that is visited least probably.
  double lowest_probability = 0;
};

/// Shows row numbers to a query without owning the callable: a reference to any
/// `bool(std::uint32_t)`; false stops the query.
class TidVisitor {
 public:
  /// Refers to `visit`, which must outlive the query.
  template <class F>
  requires std::is_invocable_r_v<bool, F&, std::uint32_t> TidVisitor(
      F&& visit)  // NOLINT(google-explicit-constructor): lambdas are passed directly
      : object_(const_cast<void*>(static_cast<const void*>(&visit))),
        call_([](void* object, std::uint32_t tid) -> bool {
          return (*static_cast<std::remove_reference_t<F>*>(object))(tid);
        }) {}

  /// Calls the visitor.
  bool operator()(std::uint32_t tid) const { return call_(object_, tid); }

 private:
  void* object_;
  bool (*call_)(void*, std::uint32_t);
};

/// A durable table of rows of 1 to 32 unsigned numbers, which answers conditions on any of the
/// columns (Broneske et al., ICDE 2017; kept in PM as Jibril et al. describe).
///
///   perdix::Elf elf(pool, "lineitem", 10);
///   elf.build(columns);                             // bulk load
///   elf.range(lower, upper);                        // TIDs of the rows within all bounds
///   elf.partial({{2, {10, 20}}, {5, {7, 7}}});      // bounds on some dimensions only
///   elf.cache(perdix::CachePolicy::static_levels(3));
///
/// Rows are ordered by the first dimension, then the second, and so on: columns with few different
/// values and selective conditions belong first. A row has a number, its TID, which it keeps for
/// its life and which is not used again until build(). Equal rows may occur any number of times.
///
/// Every call is thread-safe. Queries take no lock and wait for no writer; writers wait for each
/// other. insert() and erase() are durable when they return, and so are build() and compact(),
/// which leave the table before or after. Queries are no snapshots: each row that is reported was
/// in the table at some moment of the call, and each row that was there throughout is reported
/// once.
///
/// Calls throw invalid_argument for points or columns of the wrong shape and for bounds that
/// cross, out_of_space, too_large, no_memory, corrupt, and what PointIndex says of failed syncs and
/// forks. A call that throws has changed nothing.
class Elf {
 public:
  /// The number of a row.
  using Tid = std::uint32_t;
  /// The values of a row, one for each dimension.
  using Point = std::span<const std::uint32_t>;
  /// The values of many rows, one span for each dimension.
  using Columns = std::span<const std::span<const std::uint32_t>>;

  /// Called now and then with the share of the work that is done; false cancels it. May call
  /// everything of this table but build() and compact(), which throw in_use.
  using Progress = std::function<bool(double)>;

  /// Columns that a table may have.
  static constexpr unsigned kMaxDimensions = 32;
  static constexpr std::uint64_t kMaxRows = (std::uint64_t{1} << 31) - 1;  ///< and TIDs

  /// Opens the table of that name, or creates it empty. Throws wrong_kind if it exists with another
  /// number of dimensions, wrong_engine, in_use, invalid_argument, out_of_space, corrupt. Cost:
  /// reads a word for each 16 MiB of the table and one for each 4096 inserted rows.
  Elf(const Pool& pool, std::string_view name, unsigned dimensions);

  /// Opens the table of that name. Throws not_found.
  Elf(const Pool& pool, std::string_view name);

  /// Takes over the open table; the other object can then only be assigned to or destroyed.
  Elf(Elf&&) noexcept;
  /// Closes the table that this object had, then takes over the other one as the constructor does.
  Elf& operator=(Elf&&) noexcept;
  ~Elf();

  /// How many columns the table has.
  unsigned dimensions() const;

  /// Replaces all rows: row i has the values columns[0][i], columns[1][i], ... and the TID i.
  /// Returns false if `progress` cancelled it; then nothing has changed. Throws in_use while
  /// another build() or compact() runs. Cost: DRAM of 8 bytes for each row, and about
  /// 100,000 rows of all columns.
  bool build(Columns columns, const Progress& progress = nullptr);

  /// Queries look at inserted rows one by one. An insert() that leaves more than this number of
  /// them, and more than a quarter of the rows that were there at the last build() or compact(),
  /// calls compact().
  static constexpr std::uint64_t kMinDelta = 65'536;
  [[deprecated("it is kMinDelta")]] static constexpr std::uint64_t kLeastDelta = kMinDelta;

  /// Adds a row; returns its TID. Cost: the row's lines and a word in PM; now and then that of
  /// compact(), which takes several row's times for each inserted row. A pool that has no room for
  /// that takes further rows all the same, and tries again when a quarter more were inserted.
  Tid insert(Point point);

  /// Removes a row; false if there is no row of that number. Cost: one line of PM.
  bool erase(Tid tid);

  /// Folds inserted and erased rows into the lists, out of place, while queries and writers run.
  /// Returns false if `progress` cancelled it. Throws in_use as build(). Cost: as build(), and the
  /// rows that share a value of the first dimension lie in DRAM.
  bool compact(const Progress& progress = nullptr);

  /// The lowest TID of the rows that equal the point.
  std::optional<Tid> exact(Point point) const;

  /// The TIDs of all rows with lower[d] <= value <= upper[d] in each dimension d, in no order.
  std::vector<Tid> range(Point lower, Point upper) const;

  /// The TIDs of all rows that meet all conditions. Conditions on one dimension are intersected.
  std::vector<Tid> partial(std::span<const ElfCondition> conditions) const;
  /// Like partial() with a span, for conditions in braces.
  std::vector<Tid> partial(std::initializer_list<ElfCondition> conditions) const {
    return partial(std::span(conditions.begin(), conditions.size()));
  }

  /// How many rows range() or partial() would find. Rows that were erased since the last build() or
  /// compact() are counted among those of the lists, and subtracted: by their points, which counts
  /// collect in DRAM when they are asked often enough, else by a walk over the rows. Without
  /// bounds: size(). Fails for no want of memory.
  std::uint64_t count(Point lower, Point upper) const;
  /// How many rows partial() would find.
  std::uint64_t count(std::span<const ElfCondition> conditions) const;
  /// Like count() with a span, for conditions in braces.
  std::uint64_t count(std::initializer_list<ElfCondition> conditions) const {
    return count(std::span(conditions.begin(), conditions.size()));
  }

  /// Show the TIDs one by one until the visitor returns false. The visitor may call anything, and
  /// take any time: nothing waits for it. Rows inserted after the call began may be left out. Needs
  /// 4 KiB, however many rows there are.
  void range(Point lower, Point upper, TidVisitor visit) const;
  /// Shows the TIDs of the rows that meet all conditions, as range() with a visitor does.
  void partial(std::span<const ElfCondition> conditions, TidVisitor visit) const;

  /// Number of rows. Cost: after an opening the first call reads a bit for each row if any was
  /// erased.
  std::uint64_t size() const;

  /// Caches parts of the lists in DRAM from now on. The cache is filled in the background, by its
  /// own thread; queries use what is there. It stays in force after build() and compact(), which
  /// have it filled anew, and ends with this object.
  void cache(const CachePolicy& policy);

  /// Returns when the cache is filled, or can't be for want of memory.
  void wait_for_cache() const;

  /// Tells what a query with these bounds visits, for each dimension, without inserted rows. Cost:
  /// as the query, and as counting the rows below each list that it visits.
  std::vector<ElfStep> explain(Point lower, Point upper) const;

  /// Sizes and counts.
  ElfStats stats() const;

  /// Verifies every invariant of the table. Writers must be idle. Cost: reads all of it.
  CheckReport check() const;

 private:
  /// Ends the table; in a child of the process that opened it, leaves it alone.
  struct Close {
    void operator()(detail::index::elf::Table* table) const noexcept;
  };

  template <class Call>
  auto run(Call call) const;

  std::unique_ptr<detail::index::elf::Table, Close> table_;
};

}  // namespace perdix
