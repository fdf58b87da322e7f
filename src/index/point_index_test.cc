// What the public bases promise whatever the engine: a function that takes one takes all.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/cceh.h>
#include <perdix/index.h>
#include <perdix/ordered_index.h>
#include <perdix/papers/fastfair.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "util/test_directory.h"

namespace perdix {
namespace {

using Number = std::uint64_t;

struct PublicBases : testing::Test {
  testing_files::TempDirectory directory;
  Pool pool = Pool::create(directory.file("pool"));
};

Number fill(PointIndex<Number, std::string>& index) {
  for (Number i = 0; i < 100; ++i) index.put(i, std::to_string(i));
  return index.size();
}

std::vector<Number> keys_from(const OrderedIndex<Number, std::string>& index, Number from) {
  std::vector<Number> keys;
  for (const auto& [key, value] : index.range(from)) keys.push_back(key);
  return keys;
}

TEST_F(PublicBases, AreOneClassForAllEngines) {
  SpTree<Number, std::string> sptree(pool, "sptree");
  FastFair<Number, std::string> fastfair(pool, "fastfair");
  Cceh<Number, std::string> cceh(pool, "cceh");
  EXPECT_EQ(fill(sptree), 100U);
  EXPECT_EQ(fill(fastfair), 100U);
  EXPECT_EQ(fill(cceh), 100U);
  EXPECT_EQ(keys_from(sptree, 98), (std::vector<Number>{98, 99}));
  EXPECT_EQ(keys_from(fastfair, 98), (std::vector<Number>{98, 99}));
}

TEST_F(PublicBases, SayWhichIndexHasNoOrder) {
  { Cceh<Number, std::string> cceh(pool, "cceh"); }
  const auto index = Index::open(pool, "cceh");
  const auto expect_refused = [&](const auto& call) {
    try {
      call();
      ADD_FAILURE() << "an index without order was scanned";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported);
      EXPECT_NE(std::string(error.what()).find("'cceh'"), std::string::npos) << error.what();
    }
  };
  const std::string last(8, '\xff');  // behind which no key can be
  std::vector<Index::Pair> pairs;
  expect_refused([&] { index->scan("", [](auto, auto) { return true; }); });
  expect_refused([&] { (void)index->scan("", 10); });
  expect_refused([&] { (void)index->after(last); });
  expect_refused([&] { (void)index->last(); });
  expect_refused([&] { (void)index->read_beyond(last, Direction::up, 1, pairs); });
  expect_refused([&] { (void)index->read_beyond(last, Direction::down, 1, pairs); });
  expect_refused([&] { index->erase_range(last); });
}

}  // namespace
}  // namespace perdix
