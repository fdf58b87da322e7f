// The converted indexes in a pool, which is opened again and again, behave like a map.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <perdix/index.h>
#include <perdix/pool.h>

#include "converted/indexes.h"
#include "tips_c/expect_map.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using U64 = std::uint64_t;

class ConvertedIndex : public ::testing::Test {
 protected:
  template <class K, class V>
  void expect_maps() const {
    for (const tips::Plugin* plugin : converted_plugins()) {
      if (plugin->keys != kKindOf<K>) continue;
      const IndexInfo info{plugin->engine() + std::string(to_string(kKindOf<K>)), plugin->engine(),
                           kKindOf<K>, kKindOf<V>};
      const auto open = [&] {
        Pool pool = open_pool();
        auto index = Index::open_or_create(pool, info);
        return std::pair(std::move(pool), std::move(index));
      };
      expect_map<K, V>(open, plugin->ordered, 1500);
    }
  }

  Pool open_pool() const {
    PoolOptions options;
    options.durability = Durability::process;
    options.plugins = converted_plugins();
    return Pool::open_or_create(path_, options);
  }

  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(ConvertedIndex, IsAMapOfIntegers) { expect_maps<U64, U64>(); }
TEST_F(ConvertedIndex, IsAMapOfStrings) { expect_maps<std::string, std::string>(); }

/// Tables with a reserve for their first arrays only: what a full pool has acknowledged is found,
/// and reaches the index when there is room.
TEST_F(ConvertedIndex, KeepsWhatAFullPoolAcknowledged) {
  for (const tips::Plugin* plugin : converted_plugins()) {
    if (plugin->keys != Kind::u64) continue;
    std::filesystem::remove(path_);
    PoolOptions options;
    options.durability = Durability::process;
    options.plugins = converted_plugins();
    options.initial_size = options.max_size = U64{16} << 20;
    const IndexInfo info{"t", plugin->engine(), Kind::u64, Kind::bytes};
    U64 done = 0;
    const auto word = [](U64 number) {
      const auto bytes = encode_u64(number);
      return std::string(bytes.data(), bytes.size());
    };
    const auto value = [](U64 number) { return std::string(200, 'v') + std::to_string(number); };
    {
      Pool pool = Pool::create(path_, options);
      auto index = Index::open_or_create(pool, info);
      try {
        for (; done < 500'000; ++done) index->put(word(done), value(done));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::out_of_space) << error.what();
      }
      EXPECT_GT(done, 10'000U);
      EXPECT_LT(done, 500'000U);
      for (U64 key = 0; key < done; ++key) ASSERT_EQ(index->get(word(key)), value(key)) << key;
      for (U64 key = 0; key < done; key += 2) ASSERT_TRUE(index->erase(word(key))) << key;
    }
    Pool pool = Pool::open(path_, options);
    auto index = Index::open_or_create(pool, info);
    for (U64 key = 0; key < done; ++key) ASSERT_EQ(index->get(word(key)).has_value(), key % 2 == 1);
    EXPECT_EQ(index->size(), done / 2);
    EXPECT_TRUE(index->check().ok());
    index.reset();
    EXPECT_TRUE(pool.check().ok());
  }
}

}  // namespace
}  // namespace perdix::test
