// ElfTable against a table by brute force, in all types.
#include "index/elf_table/elf_table.h"

#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/elf_table.h>
#include <perdix/error.h>

#include "index/elf_table/test_points.h"
#include "pool/pool_core.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::detail::index::elf_table {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using P = ElfPredicate;

/// A pool with a table "t" in it.
class ElfTableTest : public ::testing::Test {
 protected:
  ElfTableTest() { create(kAllTypes); }

  void create(const std::vector<ElfColumn>& columns) {
    table_.reset();
    if (pool_) pool_->close();
    pool_.emplace(Pool::create(directory_.path() / std::to_string(++pools_), options()));
    table_.emplace(*pool_, "t", columns);
    model_.emplace(columns);
  }

  void reopen() {
    table_.reset();
    pool_->close();
    pool_.emplace(Pool::open(directory_.path() / std::to_string(pools_), options()));
    table_.emplace(*pool_, "t");
  }

  /// Also that no block is lost.
  void expect_sound() {
    EXPECT_THAT(table_->check().problems, IsEmpty());
    table_.reset();
    EXPECT_THAT(pool_->check().problems, IsEmpty());
    table_.emplace(*pool_, "t");
  }

  void build(std::uint64_t rows, const ElfBuildOptions& build_options = {}) {
    TypedColumns columns(model_->columns);
    model_->rows.clear();
    for (std::uint32_t tid = 0; tid < rows; ++tid) {
      model_->rows[tid] = random_row(random_, model_->columns);
      columns.add(model_->rows[tid]);
    }
    EXPECT_TRUE(table_->build(columns.data(), build_options));
  }

  void insert() {
    const ElfTable::Row row = random_row(random_, model_->columns);
    const std::uint32_t tid = table_->insert(row);
    EXPECT_TRUE(model_->rows.emplace(tid, row).second);
  }

  void erase() {
    const auto tid = static_cast<std::uint32_t>(random_.below(300));
    EXPECT_EQ(table_->erase(tid), model_->rows.erase(tid) == 1);
  }

  void expect_answers(const std::vector<P>& where) {
    const std::vector<std::uint32_t> expected = model_->select(where);
    std::vector<std::uint32_t> found = table_->select(where);
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, expected);
    EXPECT_EQ(table_->count(where), expected.size());
    std::map<std::uint32_t, ElfTable::Row> rows;
    table_->rows(where, [&](std::uint32_t tid, std::span<const ElfValue> row) {
      return rows.emplace(tid, ElfTable::Row(row.begin(), row.end())).second;
    });
    EXPECT_EQ(rows.size(), expected.size());
    for (const auto& [tid, row] : rows) EXPECT_EQ(row, model_->rows[tid]);
  }

  void expect_rows() {
    EXPECT_EQ(table_->size(), model_->rows.size());
    expect_answers({});
    for (int i = 0; i < 60; ++i) expect_answers(random_where(random_, model_->columns));
    for (std::uint32_t tid = 0; tid < 300; ++tid) {
      const auto row = model_->rows.find(tid);
      const auto found = table_->row(tid);
      EXPECT_EQ(found.has_value(), row != model_->rows.end());
      if (found) {
        EXPECT_EQ(*found, row->second);
      }
    }
  }

  /// The message of the Error that call() must throw, with this code.
  template <class Call>
  std::string error_of(Errc code, const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  util::Random random_{7};
  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  int pools_ = 0;
  std::optional<Pool> pool_;
  std::optional<ElfTable> table_;
  std::optional<TableModel> model_;
};

TEST_F(ElfTableTest, AnEmptyTableHasNoRows) {
  expect_rows();
  expect_sound();
  reopen();
  EXPECT_EQ(table_->columns(), kAllTypes);
  expect_rows();
}

TEST_F(ElfTableTest, AnswersAsBruteForceInAllTypes) {
  for (const std::uint64_t rows : {1, 40, 250}) {
    build(rows);
    expect_rows();
    expect_sound();
  }
  build(0);
  expect_rows();
  expect_sound();
}

TEST_F(ElfTableTest, RowsComeAndGo) {
  build(150);
  for (int i = 0; i < 100; ++i) random_.one_in(3) ? erase() : insert();
  expect_rows();
  reopen();
  expect_rows();
  expect_sound();
}

TEST_F(ElfTableTest, RowsMayBeInsertedBeforeABuild) {
  for (int i = 0; i < 50; ++i) random_.one_in(4) ? erase() : insert();
  expect_rows();
  ASSERT_TRUE(table_->compact());
  expect_rows();
  expect_sound();
}

TEST_F(ElfTableTest, CompactTakesNewWordsAndKeepsRowNumbers) {
  build(100);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 40; ++i) random_.one_in(3) ? erase() : insert();
    EXPECT_GT(table_->stats().delta_rows, 0U);
    ASSERT_TRUE(table_->compact());
    EXPECT_EQ(table_->stats().delta_rows, 0U);
    expect_rows();
    expect_sound();
    if (round == 1) reopen();
  }
}

TEST_F(ElfTableTest, DictionariesHaveTheUsedWords) {
  create({{"s", ElfType::string}});
  table_->build(std::vector<ElfColumnData>{
      std::span<const std::string_view>(std::vector<std::string_view>{"b", "d", "b"})});
  EXPECT_EQ(table_->stats().columns[0].words, 2U);
  table_->insert({"c"});
  table_->insert({""});
  EXPECT_EQ(table_->count({P::less("s", "c")}), 3U);
  EXPECT_EQ(table_->count({P::equal("s", "c")}), 1U);
  EXPECT_TRUE(table_->erase(1));  // the only d
  ASSERT_TRUE(table_->compact());
  EXPECT_EQ(table_->stats().columns[0].words, 3U);
  EXPECT_EQ(table_->count({P::less("s", "c")}), 3U);
  EXPECT_EQ(table_->row(3), ElfTable::Row{"c"});
  EXPECT_EQ(table_->row(1), std::nullopt);
}

TEST_F(ElfTableTest, DoesNotReuseTids) {
  build(3);
  EXPECT_EQ(table_->insert(model_->rows[0]), 3U);
  EXPECT_TRUE(table_->erase(3));
  reopen();
  EXPECT_EQ(table_->insert(model_->rows[0]), 4U);
  EXPECT_TRUE(table_->erase(4));
  EXPECT_FALSE(table_->erase(4));
  ASSERT_TRUE(table_->compact());
  EXPECT_EQ(table_->insert(model_->rows[0]), 5U);
  EXPECT_EQ(table_->count(), 4U);
  expect_sound();
}

TEST_F(ElfTableTest, ColumnsAreOrderedByCardinalityUnlessGiven) {
  create({{"many", ElfType::int64}, {"one", ElfType::string}, {"few", ElfType::int32}});
  const std::vector<std::int64_t> many = {1, 2, 3, 4};
  const std::vector<std::string> one(4, "x");
  const std::vector<std::int32_t> few = {1, 1, 2, 2};
  const std::vector<ElfColumnData> data = {std::span(many), std::span(one), std::span(few)};
  const auto dimensions = [&] {
    std::vector<unsigned> all;
    for (const ElfColumnStats& column : table_->stats().columns) all.push_back(column.dimension);
    return all;
  };
  table_->build(data);
  EXPECT_THAT(dimensions(), ElementsAre(2, 0, 1));
  table_->build(data, {{"many"}, nullptr});
  EXPECT_THAT(dimensions(), ElementsAre(0, 1, 2));
  table_->compact();
  EXPECT_THAT(dimensions(), ElementsAre(0, 1, 2));
  EXPECT_THAT(error_of(Errc::invalid_argument,
                       [&] {
                         table_->build(data, {{"none"}, nullptr});
                       }),
              HasSubstr("many, one, few"));
  error_of(Errc::invalid_argument, [&] { table_->build(data, {{"one", "one"}, nullptr}); });
}

TEST_F(ElfTableTest, AListIsOneWalk) {
  create({{"i", ElfType::int32}, {"s", ElfType::string}});
  build(250);
  std::vector<ElfValue> numbers;
  for (std::int32_t i = -200; i < 200; i += 2) numbers.emplace_back(i);
  const std::vector<P> where = {P::in("i", numbers), P::prefix("s", "a")};
  const ElfPlan plan = table_->explain(where);
  EXPECT_EQ(plan.steps.size(), 2U);
  EXPECT_TRUE(plan.walks);
  expect_answers(where);
  EXPECT_FALSE(table_->explain(std::vector{P::in("i", {})}).walks);
}

TEST_F(ElfTableTest, ZerosAreEqualAndInfinitiesHaveAPlace) {
  create({{"g", ElfType::float64}});
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {-0.0, 0.0, infinity, -infinity};
  table_->build(std::vector<ElfColumnData>{std::span(values)});
  EXPECT_EQ(table_->count({P::equal("g", 0.0)}), 2U);
  EXPECT_EQ(table_->count({P::equal("g", -0.0)}), 2U);
  EXPECT_EQ(table_->count({P::less("g", 0.0)}), 1U);
  EXPECT_EQ(table_->count({P::greater("g", 1e308)}), 1U);
  EXPECT_FALSE(std::signbit(std::get<double>((*table_->row(0))[0])));
  EXPECT_EQ(table_->count({P::at_least("g", 0)}), 3U) << "an int32 stands for a float64";
}

TEST_F(ElfTableTest, BadInputIsRefusedAndChangesNothing) {
  build(20);
  const ElfTable::Row row = model_->rows[3];
  const auto refuse = [&](const auto& call) { return error_of(Errc::invalid_argument, call); };
  refuse([&] { table_->insert({1}); });
  ElfTable::Row nan = row;
  nan[2] = std::nan("");
  EXPECT_THAT(refuse([&] { table_->insert(nan); }), HasSubstr("NaN"));
  ElfTable::Row typed = row;
  typed[0] = "text";
  EXPECT_THAT(refuse([&] { table_->insert(typed); }), HasSubstr("column 'i' is of type int32"));
  ElfTable::Row large = row;
  large[4] = std::string(ElfTable::kMaxString + 1, 'x');
  error_of(Errc::too_large, [&] { table_->insert(large); });
  EXPECT_THAT(refuse([&] { table_->count({P::equal("x", 1)}); }), HasSubstr("i, l, g, d, s"));
  refuse([&] { table_->count({P::equal("g", std::nan(""))}); });
  refuse([&] { table_->count({P::between("i", 2, 1)}); });
  refuse([&] { table_->count({P::between("s", "b", "a")}); });
  refuse([&] { table_->count({P::prefix("i", "1")}); });
  refuse([&] { table_->count({P{"i", P::Op::between, {1}}}); });
  refuse([&] { table_->count({P{"i", P::Op::equal, {}}}); });
  refuse([&] { table_->count({P{"i", static_cast<P::Op>(9), {1}}}); });
  refuse([&] { table_->count({P::equal("i", std::int64_t{1})}); });
  expect_rows();
}

TEST_F(ElfTableTest, ABuildOfBadColumnsChangesNothing) {
  create({{"i", ElfType::int32}, {"g", ElfType::float64}});
  build(20);
  const std::vector<std::int32_t> numbers = {1, 2, 3};
  const std::vector<double> values = {1, 2, std::nan("")};
  const auto refuse = [&](const std::vector<ElfColumnData>& data) {
    return error_of(Errc::invalid_argument, [&] { table_->build(data); });
  };
  refuse({std::span(numbers)});
  refuse({std::span(numbers), std::span(numbers)});
  refuse({std::span(numbers), std::span(values).first(2)});
  EXPECT_THAT(refuse({std::span(numbers), std::span(values)}), HasSubstr("column 'g', row 2"));
  expect_rows();
  expect_sound();
}

TEST_F(ElfTableTest, ABuildCanBeCancelledAtEachCall) {
  build(30);
  for (int i = 0; i < 3; ++i) insert();
  int calls = 0;
  ASSERT_TRUE(table_->compact([&](double) { return ++calls > 0; }));
  ASSERT_GT(calls, 0);
  insert();
  for (int last = 0; last < calls; ++last) {
    int left = last;
    EXPECT_FALSE(table_->compact([&](double) { return left-- > 0; }));
  }
  struct Stop {};
  EXPECT_THROW(table_->compact([](double) -> bool { throw Stop(); }), Stop);
  expect_rows();
  expect_sound();
}

TEST_F(ElfTableTest, AProgressFunctionMayCallTheTable) {
  build(200);
  insert();
  const auto call = [&](double) {
    EXPECT_EQ(table_->size(), model_->rows.size());
    EXPECT_EQ(table_->stats().rows, model_->rows.size());
    EXPECT_EQ(table_->row(0).has_value(), model_->rows.contains(0));
    EXPECT_FALSE(table_->explain({}).dimensions.empty());
    EXPECT_THAT(table_->check().problems, IsEmpty());
    table_->cache(CachePolicy::static_levels(2));
    insert();
    for (int i = 0; i < 5; ++i) erase();
    error_of(Errc::in_use, [&] { table_->compact(); });
    expect_answers({P::at_least("i", 0)});
    return true;
  };
  ASSERT_TRUE(table_->compact(call));
  expect_rows();
  reopen();
  expect_rows();
  expect_sound();
  TypedColumns columns(kAllTypes);
  columns.add(random_row(random_, kAllTypes));
  EXPECT_TRUE(table_->build(columns.data(), {{}, call}));
  EXPECT_EQ(table_->size(), 1U) << "rows of before a build go with it";
  EXPECT_EQ(table_->insert(random_row(random_, kAllTypes)), 1U);
  expect_sound();
}

// Rows that a compact has read, rows that it has not, and rows that come after it has begun.
TEST_F(ElfTableTest, RowsComeAndGoDuringACompact) {
  build(150);
  for (int i = 0; i < 50; ++i) insert();
  bool first = true;
  ASSERT_TRUE(table_->compact([&](double) {
    if (!std::exchange(first, false)) return true;
    for (int i = 0; i < 60; ++i) insert();
    for (std::uint32_t tid = 0; tid < 260; tid += 2) {
      EXPECT_TRUE(table_->erase(tid));
      EXPECT_FALSE(table_->erase(tid));
      model_->rows.erase(tid);
    }
    return true;
  }));
  expect_rows();
  EXPECT_EQ(table_->stats().delta_rows, 30U);
  reopen();
  expect_rows();
  expect_sound();
  ASSERT_TRUE(table_->compact());
  EXPECT_EQ(table_->stats().delta_rows, 0U);
  expect_rows();
  expect_sound();
}

TEST_F(ElfTableTest, AnErasedRowCostsNothingOnceItWasCompacted) {
  create({{"day", ElfType::date}, {"shop", ElfType::int32}});
  constexpr std::uint32_t kWindow = 2000;
  std::uint32_t next = 0;
  const auto move_window = [&] {
    for (std::uint32_t i = 0; i < kWindow; ++i, ++next) {
      EXPECT_EQ(table_->insert({ElfDate{static_cast<std::int32_t>(next)}, 7}), next);
      if (next >= kWindow) {
        EXPECT_TRUE(table_->erase(next - kWindow));
      }
    }
    ASSERT_TRUE(table_->compact());
    EXPECT_EQ(table_->size(), kWindow);
  };
  move_window();
  move_window();
  const std::uint64_t bytes = table_->stats().pm_bytes;
  for (int round = 0; round < 10; ++round) move_window();
  EXPECT_LE(table_->stats().pm_bytes, bytes + bytes / 10);
  EXPECT_EQ(table_->row(next - 1),
            (ElfTable::Row{ElfDate{static_cast<std::int32_t>(next) - 1}, 7}));
  EXPECT_EQ(table_->row(next - kWindow - 1), std::nullopt);
  expect_sound();
}

TEST_F(ElfTableTest, APoolInWhichLittleLivesCanBeCompacted) {
  PoolOptions small;
  small.max_size = std::uint64_t{32} << 20;
  const Pool pool = Pool::create(directory_.file("small"), small);
  ElfTable table(pool, "t", {{"s", ElfType::string}, {"n", ElfType::int32}});
  std::uint32_t next = 0;
  for (int round = 0; round < 3; ++round) {
    error_of(Errc::out_of_space, [&] {
      for (;;) next = table.insert({std::string(2000, 'x') + std::to_string(next), 1}) + 1;
    });
    for (std::uint32_t tid = 0; tid + 100 < next; ++tid) table.erase(tid);
    EXPECT_EQ(table.size(), 100U);
    EXPECT_TRUE(table.compact());
    EXPECT_EQ(table.count({P::equal("n", 1)}), 100U);
  }
  EXPECT_LT(table.stats().pm_bytes, std::uint64_t{2} << 20);
  EXPECT_THAT(table.check().problems, IsEmpty());
}

TEST_F(ElfTableTest, SchemasAreChecked) {
  const auto refuse = [&](const std::vector<ElfColumn>& columns) {
    error_of(Errc::invalid_argument, [&] { ElfTable(*pool_, "u", columns); });
  };
  refuse({});
  refuse(std::vector<ElfColumn>(33, {"x", ElfType::int32}));
  refuse({{"x", ElfType::int32}, {"x", ElfType::int32}});
  refuse({{"", ElfType::int32}});
  refuse({{std::string(128, 'x'), ElfType::int32}});
  refuse({{"a\nb", ElfType::int32}});
  refuse({{"x", static_cast<ElfType>(6)}});
  error_of(Errc::in_use, [&] { ElfTable(*pool_, "t"); });
  table_.reset();
  EXPECT_THAT(error_of(Errc::wrong_kind,
                       [&] {
                         ElfTable(*pool_, "t", {{"i", ElfType::int64}});
                       }),
              HasSubstr("i int32, l int64"));
  error_of(Errc::not_found, [&] { ElfTable(*pool_, "u"); });
  Elf(*pool_, "e", 3);
  error_of(Errc::wrong_engine, [&] { ElfTable(*pool_, "e"); });
}

TEST_F(ElfTableTest, ADropFreesAll) {
  const std::uint64_t before = pool_->info().allocated;
  {
    ElfTable other(*pool_, "other", kAllTypes);
    TypedColumns columns(kAllTypes);
    for (int i = 0; i < 100; ++i) columns.add(random_row(random_, kAllTypes));
    other.build(columns.data());
    for (int i = 0; i < 100; ++i) other.insert(random_row(random_, kAllTypes));
  }
  EXPECT_GT(pool_->info().allocated, before);
  pool_->drop("other");
  EXPECT_EQ(pool_->info().allocated, before);
  expect_sound();
}

TEST_F(ElfTableTest, AFullPoolRefusesAndChangesNothing) {
  PoolOptions small;
  small.max_size = std::uint64_t{48} << 20;
  const Pool pool = Pool::create(directory_.file("small"), small);
  ElfTable table(pool, "t", {{"s", ElfType::string}});
  std::vector<std::string> words;
  for (int i = 0; i < 1000; ++i) words.push_back(std::to_string(i) + std::string(60000, 'x'));
  const auto first = [&](std::size_t rows) {
    return std::vector<ElfColumnData>{std::span<const std::string>(words).first(rows)};
  };
  EXPECT_TRUE(table.build(first(100)));
  error_of(Errc::out_of_space, [&] { table.build(first(1000)); });
  EXPECT_EQ(table.count(), 100U);
  EXPECT_TRUE(table.build(first(150))) << "what the failed build had made is free again";
  EXPECT_EQ(table.count({P::at_least("s", "99")}), 2U) << "9x… and 99x…";
  EXPECT_THAT(table.check().problems, IsEmpty());
}

TEST_F(ElfTableTest, ACacheStaysOverACompact) {
  build(200);
  table_->cache(CachePolicy::hybrid());
  table_->wait_for_cache();
  EXPECT_GT(table_->stats().elf.cache_bytes, 0U);
  insert();
  ASSERT_TRUE(table_->compact());
  table_->wait_for_cache();
  EXPECT_GT(table_->stats().elf.cache_bytes, 0U);
  const std::vector<P> where = {P::at_least("i", 0)};
  std::uint64_t cached = 0;
  for (const ElfStep& step : table_->explain(where).dimensions) cached += step.cached;
  EXPECT_GT(cached, 0U);
  expect_rows();
}

TEST_F(ElfTableTest, QueriesRunWhileWritersWork) {
  build(200);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      table_->insert({1000, std::int64_t{1}, 1.0, ElfDate{1}, "new"});
      if (i % 50 == 0) table_->compact();
    }
    stop = true;
  });
  const std::vector<P> old = {P::less("i", 1000)};
  const std::uint64_t expected = model_->select(old).size();
  std::uint64_t seen = 0;
  while (!stop) {
    EXPECT_EQ(table_->count(old), expected);
    const std::uint64_t now = table_->count({P::equal("s", "new")});
    EXPECT_GE(now, seen);
    seen = now;
  }
  writer.join();
  EXPECT_EQ(table_->count({P::equal("s", "new")}), 300U);
  expect_sound();
}

/// A call may meet a generation that is being made, and one that is being freed.
TEST_F(ElfTableTest, StatsWorkBesideBuilds) {
  build(60);
  std::atomic<bool> done = false;
  std::thread builder([&] {
    for (unsigned i = 0; i < 40; ++i) {
      build(60);
      EXPECT_TRUE(table_->compact());
    }
    done = true;
  });
  do {
    const ElfTableStats stats = table_->stats();
    ASSERT_EQ(stats.rows, 60U);
    ASSERT_EQ(stats.delta_rows, 0U);
    ASSERT_GT(stats.pm_bytes, 0U);
    ASSERT_EQ(stats.columns.size(), kAllTypes.size());
  } while (!done);
  builder.join();
  expect_sound();
}

TEST_F(ElfTableTest, AVisitorMayWriteAndStop) {
  build(30);
  int shown = 0;
  table_->select({}, [&](std::uint32_t) {
    insert();
    return ++shown < 5;
  });
  EXPECT_EQ(shown, 5);
  expect_rows();
}

TEST_F(ElfTableTest, InsertsKeepTheDeltaSmall) {
  IndexInfo info{"small", std::string(kEngineName), Kind::u64, Kind::u64};
  info.model = DataModel::points;
  Table table(pool_->core()->open_index(info), kAllTypes, {elf::kMinSlotShift, 4, 20});
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    ASSERT_EQ(table.insert(random_row(random_, kAllTypes)), i);
    const std::uint64_t delta = table.table_stats().delta_rows;
    ASSERT_LE(delta, std::max(20U, i / 4));
    most = std::max(most, delta);
  }
  EXPECT_GT(most, 40U) << "a larger table may have a larger delta";
  EXPECT_EQ(table.size(), 300U);
  EXPECT_THAT(table.check().problems, IsEmpty());
}

TEST_F(ElfTableTest, AVisitorMayCompact) {
  build(30);
  std::map<std::uint32_t, ElfTable::Row> shown;
  table_->rows({}, [&](std::uint32_t tid, std::span<const ElfValue> row) {
    shown.emplace(tid, ElfTable::Row(row.begin(), row.end()));
    if (shown.size() == 5) {
      EXPECT_TRUE(table_->compact());
      EXPECT_THAT(table_->check().problems, IsEmpty());
    }
    // The query reads what the first one has replaced.
    if (shown.size() == 6) error_of(Errc::in_use, [&] { table_->compact(); });
    return true;
  });
  EXPECT_EQ(shown, model_->rows);
  const std::uint64_t blocks_of_both = table_->check().blocks;
  expect_sound();  // the opening frees what was replaced
  EXPECT_LT(table_->check().blocks, blocks_of_both);
  EXPECT_TRUE(table_->compact());
  expect_rows();
  expect_sound();
}

}  // namespace
}  // namespace perdix::detail::index::elf_table
