// Users' indexes that are plugged into Tips: the promises that the library makes for them only.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/index.h>
#include <perdix/pool.h>
#include <perdix/tips_c.h>
#include <perdix/tips_indexes.h>

#include "index/tips/c_plugin.h"
#include "index/tips/layout.h"
#include "install/outside/list.h"
#include "pool/pool_core.h"
#include "tips_c/expect_map.h"
#include "tips_c/skiplist.h"
#include "util/test_directory.h"

extern "C" {
#include "install/outside/table.h"
}

namespace perdix {
namespace {

using U64 = std::uint64_t;
using detail::index::tips::CPlugin;
using detail::index::tips::Header;

using Lists = tips::User<"list", SortedList>;
template <class K, class V>
using List = Tips<Lists, K, V>;

/// A SortedList under the name of Lists, with a larger object.
template <class Memory, class Keys>
class LaterList : public SortedList<Memory, Keys> {
  U64 more_ = 0;
};
using LaterLists = tips::User<"list", LaterList>;

/// An index of one node, in no order, under the same name. Its put does what a test wants.
template <class Memory, class Keys>
struct Lone {
  using Word = tips::Word;

  static std::function<void()>& on_put() {
    static std::function<void()> call;  // plug-ins know no context
    return call;
  }

  bool put(Word, Word, Word&) { return on_put()(), false; }
  bool erase(Word, Word&, Word&) { return false; }
  bool find(Word, Word&) const { return false; }
  U64 size() const { return 0; }
  U64 walk(U64, void*, tips::ShowPair) const { return 0; }
  bool inspect(tips::Inspector&) const { return true; }
  static constexpr tips::PutTakes put_takes() { return {}; }
};
using Lones = tips::User<"lone", Lone>;
using LonesAsLists = tips::User<"list", Lone>;

template <class Call>
std::optional<Errc> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

class UserPlugin : public ::testing::Test {
 protected:
  Pool open(std::vector<const tips::Plugin*> plugins,
            std::uint64_t max_size = U64{64} << 20) const {
    PoolOptions options;
    options.max_size = max_size;
    options.durability = Durability::process;
    options.plugins = std::move(plugins);
    return Pool::open_or_create(path_, options);
  }

  /// A pool with a list of a few pairs.
  void make_list() const {
    const Pool pool = open(Lists::plugins());
    List<U64, std::string> list(pool, "t");
    for (U64 key = 0; key < kPairs; ++key) list.put(key, std::to_string(key));
  }

  void expect_list(const Pool& pool) const {
    const List<U64, std::string> list(pool, "t");
    EXPECT_EQ(list.size(), kPairs);
    for (U64 key = 0; key < kPairs; ++key) EXPECT_EQ(list.get(key), std::to_string(key));
  }

  /// The header of an index, which is closed.
  static Header& header_of(const Pool& pool) {
    detail::pool::PoolCore& core = *pool.core();
    return *core.at<Header>(core.open_existing_index("t")->root());
  }

  static constexpr U64 kPairs = 50;
  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(UserPlugin, IsAMapInCxx) {
  const auto open_as = [&](Kind key, Kind value) {
    return [&, key, value] {
      Pool pool = open(Lists::plugins());
      auto index = Index::open_or_create(
          pool, {"t" + std::string(to_string(key)), std::string(Lists::kEngine), key, value});
      return std::pair(std::move(pool), std::move(index));
    };
  };
  test::expect_map<U64, std::string>(open_as(Kind::u64, Kind::bytes), true);
  test::expect_map<std::string, U64>(open_as(Kind::bytes, Kind::u64), true);
}

TEST_F(UserPlugin, IsAMapInC) {
  const CPlugin table(hash_table), list(skip_list);
  const auto open_as = [&](const char* engine, Kind key, Kind value) {
    return [&, engine, key, value] {
      Pool pool = open({&table, &list});
      auto index = Index::open_or_create(pool, {engine, engine, key, value});
      return std::pair(std::move(pool), std::move(index));
    };
  };
  test::expect_map<U64, std::string>(open_as("tips:user:table", Kind::u64, Kind::bytes), false);
  test::expect_map<std::string, U64>(open_as("tips:user:skiplist", Kind::bytes, Kind::u64), true);
}

TEST_F(UserPlugin, StaysWhereItsPluginIsUnknown) {
  make_list();
  {
    Pool pool = open({});
    EXPECT_EQ(error_of([&] { List<U64, std::string>(pool, "t"); }), Errc::unsupported);
    EXPECT_EQ(error_of([&] { Index::open(pool, "t"); }), Errc::unsupported);
    EXPECT_EQ(error_of([&] { pool.drop("t"); }), Errc::unsupported);
    EXPECT_EQ(error_of([&] { List<U64, U64>(pool, "new"); }), Errc::unsupported);
    EXPECT_EQ(pool.indexes().size(), 1U);
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.unknown.size(), 1U);
  }
  Pool pool = open(Lists::plugins());
  expect_list(pool);
  EXPECT_TRUE(pool.check().unknown.empty());
  pool.drop("t");
  EXPECT_EQ(pool.check().blocks, 0U);
}

// Their names are those that pools know from when they were a part of the library.
TEST_F(UserPlugin, IsWhatTheFurtherIndexesAre) {
  const auto engines = Index::engines(tips::further_plugins());
  for (const auto& [engine, plugins] : {std::pair(tips::Bst::kEngine, &tips::Bst::plugins),
                                        std::pair(tips::Art::kEngine, &tips::Art::plugins),
                                        std::pair(tips::Clht::kEngine, &tips::Clht::plugins),
                                        std::pair(tips::LfHash::kEngine, &tips::LfHash::plugins),
                                        std::pair(tips::LfBst::kEngine, &tips::LfBst::plugins)}) {
    EXPECT_EQ(std::count(engines.begin(), engines.end(), engine), 1) << engine;
    std::filesystem::remove(path_);
    const IndexInfo info{"t", std::string(engine), Kind::u64, Kind::bytes};
    const auto key = encode_u64(7);
    const std::string_view seven(key.data(), key.size());
    Index::open_or_create(open(plugins()), info)->put(seven, "pears");
    {
      Pool pool = open(Lists::plugins());
      EXPECT_EQ(error_of([&] { Index::open(pool, "t"); }), Errc::unsupported) << engine;
      EXPECT_EQ(error_of([&] { pool.drop("t"); }), Errc::unsupported) << engine;
      const CheckReport report = pool.check();
      EXPECT_TRUE(report.ok()) << engine;
      EXPECT_EQ(report.unknown.size(), 1U) << engine;
    }
    Pool pool = open(tips::further_plugins());
    EXPECT_EQ(Index::open(pool, "t")->get(seven), "pears") << engine;
    EXPECT_TRUE(pool.check().unknown.empty()) << engine;
    pool.drop("t");
  }
}

TEST_F(UserPlugin, IsNoEngineOfPoolsWithoutIt) {
  const auto engines = Index::engines(), more = Index::engines(Lists::plugins());
  ASSERT_EQ(more.size(), engines.size() + 1) << "both plug-ins are one engine";
  EXPECT_EQ(more.back(), Lists::kEngine);
  EXPECT_EQ(std::count(engines.begin(), engines.end(), tips::Art::kEngine), 0);
  EXPECT_EQ(std::count(engines.begin(), engines.end(), tips::BTree::kEngine), 1);
}

TEST_F(UserPlugin, HasItsLogsCheckedWhereItIsUnknown) {
  make_list();
  Pool pool = open({});
  Header& header = header_of(pool);
  const auto undo = header.undo, head = header.rings[0].head;
  header.undo = header.memory;  // smaller blocks
  EXPECT_FALSE(pool.check().ok());
  header.undo = undo;
  header.rings[0].head = 1;
  EXPECT_FALSE(pool.check().ok());
  header.rings[0].head = head;
  const auto memory = header.memory;
  header.memory = undo;  // reached in two ways
  EXPECT_FALSE(pool.check().ok());
  header.memory = memory;
  header.former_reserve = undo;  // of an earlier release
  EXPECT_FALSE(pool.check().ok());
  header.former_reserve = 0;
  EXPECT_TRUE(pool.check().ok());
}

TEST_F(UserPlugin, IsDroppedWhenItsPluginIsThereAgain) {
  make_list();
  {
    const Pool pool = open(Lists::plugins());
    pool.core()->begin_drop("t");  // a crash comes next
  }
  EXPECT_EQ(open({}).info().unfinished_drops.size(), 1U);
  const Pool pool = open(Lists::plugins());
  EXPECT_TRUE(pool.info().unfinished_drops.empty());
  EXPECT_EQ(pool.check().blocks, 0U);
}

TEST_F(UserPlugin, IsNotOpenedByAnotherOfItsName) {
  make_list();
  {
    const Pool pool = open(LaterLists::plugins());
    EXPECT_EQ(error_of([&] { Tips<LaterLists, U64, std::string>(pool, "t"); }), Errc::wrong_engine);
    EXPECT_EQ(error_of([&] { List<U64, std::string>(pool, "t"); }), Errc::wrong_engine);
  }
  {
    const Pool pool = open(LonesAsLists::plugins());
    EXPECT_EQ(error_of([&] { List<U64, std::string>(pool, "t"); }), Errc::wrong_engine);
    // Nor is one made whose calls the plug-in does not have.
    EXPECT_EQ(error_of([&] { List<U64, std::string>(pool, "new"); }), Errc::wrong_engine);
    EXPECT_EQ(pool.indexes().size(), 1U);
  }
  expect_list(open(Lists::plugins()));
}

TEST_F(UserPlugin, NeedsAPluginForItsKeys) {
  const Pool pool = open({&Lists::plugin<U64>()});
  List<U64, U64>(pool, "t").put(1, 2);
  EXPECT_EQ(error_of([&] { List<std::string, U64>(pool, "strings"); }), Errc::unsupported);
  EXPECT_EQ(pool.indexes().size(), 1U);
}

/// A call of C, which leaves pools open as before.
TEST_F(UserPlugin, IsAddedForCOnceAndOnlyIfPoolsTakeIt) {
  using OnePlugin = tips::PluginOf<Lone<tips::Durable, tips::IntegerKeys>>;
  static constexpr OnePlugin kGood("user:added", Kind::u64), kTwin("user:added", Kind::u64),
      kRefused("user:refused", Kind::u64), kBad("added", Kind::u64);
  const auto add = [](std::vector<const tips::Plugin*> plugins) {
    return tips::add_for_c(plugins);
  };
  const auto opens = [&](const char* engine) {
    perdix_pool* const pool = perdix_pool_open_or_create(path_.c_str(), nullptr);
    EXPECT_NE(pool, nullptr) << perdix_last_error();
    if (pool == nullptr) return false;
    perdix_tips* const index = perdix_tips_open(pool, engine, engine, PERDIX_U64, PERDIX_U64);
    perdix_tips_close(index);
    EXPECT_EQ(perdix_pool_close(pool), 1);
    return index != nullptr;
  };
  for (const tips::Plugin* bad :
       {static_cast<const tips::Plugin*>(nullptr), static_cast<const tips::Plugin*>(&kBad)}) {
    EXPECT_EQ(add({&kRefused, bad}), -PERDIX_INVALID_ARGUMENT);
    EXPECT_EQ(perdix_last_code(), PERDIX_INVALID_ARGUMENT);
    EXPECT_FALSE(opens("tips:user:refused")) << "nothing is kept";
  }
  EXPECT_EQ(add({&kGood, &kTwin}), 1);
  EXPECT_EQ(add({&kTwin}), 1) << "as a second copy of the library adds it";
  EXPECT_EQ(add({&kGood}), 1);
  EXPECT_TRUE(opens("tips:user:added"));
}

TEST_F(UserPlugin, HasANameOfItsOwn) {
  using detail::index::tips::Durable;
  using detail::index::tips::IntegerKeys;
  using OnePlugin = tips::PluginOf<Lone<Durable, IntegerKeys>>;
  const auto refuses = [&](const std::vector<const tips::Plugin*>& plugins) {
    const auto code = error_of([&] { open(plugins); });
    return code == Errc::invalid_argument && !std::filesystem::exists(path_);
  };
  for (const char* name :
       {"", "list", "user:", "user:a b", "user:\x7f", "user:01234567890123456789"})
    EXPECT_TRUE(refuses({std::make_unique<OnePlugin>(name, Kind::u64).get()})) << name;
  EXPECT_TRUE(refuses({&Lists::plugin<U64>(), &LaterLists::plugin<U64>()}));
  EXPECT_TRUE(refuses({nullptr}));
  const OnePlugin longest("user:0123456789012345678", Kind::u64);
  EXPECT_FALSE(refuses({&longest}));
}

TEST_F(UserPlugin, MustBeCompleteInC) {
  for (const auto spoil : {+[](perdix_tips_plugin& table) { table.name = nullptr; },
                           +[](perdix_tips_plugin& table) { table.put = nullptr; },
                           +[](perdix_tips_plugin& table) { table.object_bytes = 0; },
                           +[](perdix_tips_plugin& table) { table.find_last = nullptr; },
                           +[](perdix_tips_plugin& table) { table.keys = {}; }}) {
    perdix_tips_plugin table = skip_list;
    spoil(table);
    EXPECT_EQ(error_of([&] { const CPlugin plugin(table); }), Errc::invalid_argument);
  }
}

// --- What a plug-in may ask ---

TEST_F(UserPlugin, GetsMemoryInItsOperationsOnly) {
  EXPECT_EQ(error_of([] { tips::allocate(8); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([] { tips::undo_log_add(nullptr, 8); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([] { tips::free(nullptr); }), Errc::invalid_argument);
}

TEST_F(UserPlugin, ChangesMemoryOfItsPoolOnly) {
  static U64 elsewhere = 0;
  for (const auto call : {+[] { tips::undo_log_add(&elsewhere, sizeof elsewhere); },
                          +[] { tips::free(&elsewhere); }}) {
    std::filesystem::remove(path_);
    const Pool pool = open(Lones::plugins());
    Tips<Lones, U64, U64> index(pool, "t");
    Lone<tips::Durable, tips::IntegerKeys>::on_put() = call;
    index.put(1, 1);
    EXPECT_EQ(error_of([&] { (void)index.size(); }), Errc::invalid_argument);
    EXPECT_NE(error_of([&] { (void)index.size(); }),
              std::nullopt);  // what it has changed is unknown
    Lone<tips::Durable, tips::IntegerKeys>::on_put() = [] {};
  }
}

// --- Space and damage ---

/// Fills an index until there is no space, and goes on. Whatever was acknowledged is there.
template <class Key>
void expect_all_in_full_pool(Index& index, const Key& key) {
  std::map<std::string, std::string> model;
  const std::string value(900, 'v');
  U64 i = 0;
  EXPECT_EQ(error_of([&] {
              for (;; ++i) index.put(key(i), value), model[key(i)] = value;
            }),
            Errc::out_of_space);
  for (U64 gone = 0; gone < i; gone += 3) {
    EXPECT_TRUE(index.erase(key(gone)));
    model.erase(key(gone));
  }
  for (U64 more = i; more < i + 100; ++more) index.put(key(more), value), model[key(more)] = value;
  std::map<std::string, std::string> shown;
  index.for_each(
      [&](std::string_view k, std::string_view v) { return shown.emplace(k, v).second; });
  EXPECT_EQ(shown.size(), model.size());
  EXPECT_TRUE(shown == model);  // not printed: it is large
  EXPECT_TRUE(index.check().ok());
}

TEST_F(UserPlugin, LosesNothingInAFullPool) {
  constexpr U64 kSmall = U64{16} << 20;
  const CPlugin list(skip_list), table(hash_table);
  const auto expect_all = [&](const char* engine, Kind kind, const auto& key) {
    std::filesystem::remove(path_);
    const Pool pool = open({&list, &table}, kSmall);
    auto index = Index::open_or_create(pool, {"t", engine, kind, Kind::bytes});
    expect_all_in_full_pool(*index, key);
    index.reset();
    EXPECT_TRUE(pool.check().ok());
  };
  expect_all("tips:user:skiplist", Kind::bytes, [](U64 i) { return fmt::format("key {}", i); });
  expect_all("tips:user:table", Kind::u64, [](U64 i) {
    const auto bytes = encode_u64(i);
    return std::string(bytes.data(), bytes.size());
  });
}

TEST_F(UserPlugin, IsInspectedBeforeItIsRead) {
  constexpr U64 kMany = 12'000;  // an index whose lookups doubt would be inspected later
  const Pool pool = open(Lists::plugins());
  {
    List<U64, U64> list(pool, "t");
    for (U64 key = kMany; key > 0; --key) list.put(key, key);  // each becomes the first
  }
  auto* const words = reinterpret_cast<U64*>(&header_of(pool) + 1);
  const std::size_t last = sizeof(SortedList<tips::Durable, tips::IntegerKeys>) / sizeof(U64) - 1;
  U64& first = words[last - 1];  // the address of the first node
  for (const U64 damage : {U64{0}, first + 1, U64{0x1000}}) {
    const U64 before = std::exchange(first, damage);
    EXPECT_EQ(error_of([&] { List<U64, U64>(pool, "t"); }), Errc::corrupt);
    EXPECT_FALSE(pool.check().ok());
    first = before;
  }
  EXPECT_EQ((List<U64, U64>(pool, "t").get(kMany)), kMany);
}

}  // namespace
}  // namespace perdix
