// Options of indexes: those of a class, and by name. Each engine refuses what it does not have.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/papers/elimda.h>
#include <perdix/papers/fastfair.h>
#include <perdix/papers/nbtree.h>
#include <perdix/papers/skiplist.h>
#include <perdix/perdix.h>
#include <perdix/tips_indexes.h>

#include "pm/test_files.h"
#include "util/test_directory.h"

namespace perdix {
namespace {

using Names = std::set<std::string>;

const Names kOfAll = {"resume_in_background"};

/// What each engine of pairs has besides.
const std::map<std::string, Names> kOwn = {
    {"sptree", {"dram_budget", "scan_budget"}},
    {"fastfair", {"dram_budget", "technique"}},
    {"skiplist", {"dram_budget", "technique"}},
    {"nbtree", {"scan_budget"}},
    {"cceh", {"dram_budget", "technique", "segment_bytes", "lazy_depth"}},
    {"elimda",
     {"collecting_logs", "media_unit", "d_bucket_pairs", "p_bucket_pairs", "fingerprint_bits",
      "reserved_cache_ways", "media_units"}},
    {"tips",
     {"cache_share", "cached_pairs", "chain", "log_bytes", "undo_records", "min_workers",
      "max_workers"}}};

Names own_names(const std::string& engine) { return kOwn.at(engine.substr(0, engine.find(':'))); }

std::string key(std::uint64_t number) {
  const auto bytes = encode_u64(number);
  return {bytes.data(), bytes.size()};
}

std::vector<std::string> engines() { return Index::engines(tips::further_plugins()); }

std::string name_of(const testing::TestParamInfo<std::string>& engine) {
  std::string name = engine.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

class OptionsByName : public ::testing::TestWithParam<std::string> {
 protected:
  Pool make_pool() const {
    PoolOptions options;
    options.plugins = tips::further_plugins();
    options.max_size = std::uint64_t{64} << 20;
    return Pool::create(folder_.path() / "pool", options);
  }
  std::unique_ptr<Index> open(const Pool& pool, const std::string& name,
                              const std::string& value) const {
    return Index::open_or_create(pool, {"index", GetParam(), Kind::u64, Kind::bytes},
                                 {.named = {{name, value}}});
  }

 private:
  testing_files::TempDirectory folder_;
};

TEST_P(OptionsByName, AreThoseOfTheEngine) {
  Names names;
  for (const OptionInfo& option : Index::options(GetParam())) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " is there twice";
    EXPECT_FALSE(option.meaning.empty()) << option.name;
  }
  Names expected = own_names(GetParam());
  expected.insert(kOfAll.begin(), kOfAll.end());
  EXPECT_EQ(names, expected);
}

TEST_P(OptionsByName, TakeTheirDefaults) {
  const Pool pool = make_pool();
  for (const OptionInfo& option : Index::options(GetParam())) {
    const auto index = open(pool, option.name, option.default_value);
    index->put(key(7), option.name);
    EXPECT_EQ(index->get(key(7)), option.name);
  }
}

TEST_P(OptionsByName, RefusesOptionsOfOtherEnginesAndCreatesNothing) {
  const Pool pool = make_pool();
  const Names own = own_names(GetParam());
  Names foreign = {"", "dram-budget", "DRAM_BUDGET", "elimda.media_unit"};
  for (const auto& [engine, names] : kOwn) foreign.insert(names.begin(), names.end());
  for (const std::string& name : own) foreign.erase(name);
  for (const std::string& name : foreign) {
    try {
      open(pool, name, "1");
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      const std::string message = error.what();
      EXPECT_NE(message.find("'" + name + "'"), std::string::npos) << message;
      EXPECT_NE(message.find(GetParam()), std::string::npos) << message;
    }
    EXPECT_TRUE(pool.indexes().empty()) << name;
  }
}

TEST_P(OptionsByName, RefusesThemForAnExistingIndexAndChangesNothing) {
  const Pool pool = make_pool();
  open(pool, "resume_in_background", "true")->put(key(1), "one");
  EXPECT_THROW(open(pool, "none_of_any", "1"), Error);
  EXPECT_THROW(Index::open(pool, "index", {.named = {{"none_of_any", "1"}}}), Error);
  EXPECT_EQ(Index::open(pool, "index")->get(key(1)), "one");
}

INSTANTIATE_TEST_SUITE_P(Engines, OptionsByName, testing::ValuesIn(engines()), name_of);

TEST(OptionsByName, RefusesThoseOfAnUnknownEngine) {
  EXPECT_THROW(Index::options("nonesuch"), Error);
}

TEST(OptionsByName, OfWhatHoldsNoPairsAreRefused) {
  for (const std::string engine : {"elf", "elf_table", "tips_of"})
    testing_files::expect_error(Errc::invalid_argument, "the engine " + engine + " holds ",
                                [&] { Index::options(engine); });
}

TEST(OptionsByName, OfAnyPluginAreThoseOfTips) {
  EXPECT_EQ(Index::options("tips:user:nonesuch"), Index::options("tips:hash"));
}

/// What is wrong with the options is told before what is wrong with the index: nothing has been
/// opened or made.
TEST(Options, AreReadBeforeAnIndexIsOpened) {
  const testing_files::TempDirectory folder;
  const Pool pool = Pool::create(folder.path() / "pool");
  const SpTree<std::uint64_t, std::uint64_t> there(pool, "index");
  const IndexInfo other{"index", "cceh", Kind::u64, Kind::u64};
  for (const std::string name : {"none_of_any", "lazy_depth"})
    testing_files::expect_error(Errc::invalid_argument, name, [&] {
      Index::open_or_create(pool, other, {.named = {{name, "65"}}});
    });
  testing_files::expect_error(Errc::invalid_argument, "lazy_depth", [&] {
    const Cceh<std::uint64_t, std::uint64_t> table(pool, "index", {.lazy_depth = 65});
  });
}

/// Whether options have a member: what an engine does not have does not compile.
template <class Options>
constexpr bool has_dram_budget = requires(Options o) {
  o.dram_budget;
};
template <class Options>
constexpr bool has_technique = requires(Options o) {
  o.technique;
};
template <class Options>
constexpr bool has_scan_budget = requires(Options o) {
  o.scan_budget;
};
template <class Options>
constexpr bool has_media_unit = requires(Options o) {
  o.media_unit;
};

static_assert(has_dram_budget<SpTreeOptions> && !has_dram_budget<NbTreeOptions> &&
              !has_dram_budget<ElimDaOptions> && !has_dram_budget<TipsOptions> &&
              !has_dram_budget<IndexOptions>);
static_assert(has_technique<CcehOptions> && !has_technique<SpTreeOptions>);
static_assert(has_scan_budget<NbTreeOptions> && !has_scan_budget<FastFairOptions>);
static_assert(has_media_unit<ElimDaOptions> && !has_media_unit<SkipListOptions>);
static_assert(!std::is_constructible_v<SpTree<std::uint64_t, std::uint64_t>, const Pool&,
                                       std::string_view, CcehOptions>);

TEST(OptionsOfAClass, AreDesignated) {
  const testing_files::TempDirectory folder;
  const Pool pool = Pool::create(folder.path() / "pool");
  using U64 = std::uint64_t;
  Cceh<U64, U64> cceh(pool, "cceh", {.dram_budget = kUnlimited, .technique = Technique::bo});
  SpTree<U64, U64> sptree(pool, "sptree", {.dram_budget = 1 << 20, .scan_budget = 0});
  NbTree<U64, U64> nbtree(pool, "nbtree", {.resume_in_background = false});
  Tips<tips::BTree, U64, U64> tips(pool, "tips", {.chain = 3, .max_workers = 2});
  cceh.put(1, 2), sptree.put(1, 2), nbtree.put(1, 2), tips.put(1, 2);
  EXPECT_EQ(cceh.get(1), 2U);
  EXPECT_EQ(sptree.get(1), 2U);
  EXPECT_EQ(nbtree.get(1), 2U);
  EXPECT_EQ(tips.get(1), 2U);
}

}  // namespace
}  // namespace perdix
