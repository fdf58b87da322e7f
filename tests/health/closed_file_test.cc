// A program that closes the descriptor of its pool's file, whose number becomes another file's, for
// every engine x kinds: no other file is touched, the pool is read on, and the next opening has
// what was acknowledged.
#include <filesystem>

#include <gtest/gtest.h>

#include "health/failing_pool.h"
#include "health/name_of.h"
#include "pm/test_files.h"
#include "pool/pool_core.h"

namespace perdix::test {
namespace {

using testing_files::content_of;
using testing_files::descriptor_of;
using testing_files::expect_error;
using testing_files::ReplacedDescriptor;

class ClosedFile : public FailingPool {
 protected:
  ClosedFile() : FailingPool(small()) {}

  static PoolOptions small() {
    PoolOptions options = options_for_all_engines();
    options.durability = Durability::process;
    options.max_size = 64 << 20;
    return options;
  }

  static void expect_read(Pool& pool, const AnyIndex& index, const Model& model) {
    EXPECT_EQ("", compare_pairs(index, model));
    for (std::uint64_t i = 0; i < kKeys; ++i)
      EXPECT_EQ(index.get(key(i)).has_value(), model.get(key(i)).has_value());
    EXPECT_EQ(index.size(), model.size());
    EXPECT_GT(index.stats().pm_bytes, 0u);
    EXPECT_TRUE(index.check().ok());
    EXPECT_EQ(pool.indexes().size(), 1u);
    EXPECT_GT(pool.info().size, 0u);
  }

  static void expect_not_written(Pool& pool, AnyIndex& index) {
    const auto refused = [](auto call) { expect_error(Errc::io_error, "only be read", call); };
    refused([&] { index.put(key(0), value(1)); });
    refused([&] { index.insert(key(0), value(1)); });
    refused([&] { index.update(key(0), value(1)); });
    refused([&] { index.erase(key(0)); });
    refused([&] { GetParam().open(pool, "another"); });
  }
};

TEST_P(ClosedFile, IsReadOnAndLosesNothing) {
  std::filesystem::copy_file(base_, path_);
  const std::filesystem::path other = directory_.file("app.log");
  Model model = before_;
  {
    auto pool = Pool::open(path_, options_);
    const ReplacedDescriptor replaced(descriptor_of(path_), other);
    {
      AnyIndex index = open(pool);
      ASSERT_FALSE(work(index, kSteps, model)) << "what needs no descriptor was refused";
      expect_error(Errc::io_error, "test.pool", [&] { pool.core()->extend(pool.info().size + 1); });
      expect_read(pool, index, model);
      expect_not_written(pool, index);
      expect_read(pool, index, model);
    }
    EXPECT_THROW(pool.close(), Error);
    EXPECT_EQ(content_of(other), ReplacedDescriptor::kContent);
  }
  const InFlight nothing{key(0), model.get(key(0)), model.get(key(0))};
  expect_consistent(path_, model, nothing);
}

INSTANTIATE_TEST_SUITE_P(Engines, ClosedFile, ::testing::ValuesIn(few_index_types()), name_of);

}  // namespace
}  // namespace perdix::test
