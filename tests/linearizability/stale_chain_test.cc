// A merge out of place commits by replacing the old segment (Cceh) or leaf (FastFair), and then
// ends the chain of the buffer. A crash in between leaves a stale chain. Recovery must end it, and
// none of its pairs may reappear, whatever has been written to their keys since.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/cceh.h>
#include <perdix/papers/fastfair.h>
#include <perdix/pool.h>

#include "index/common/test_options.h"
#include "pm/probe.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;

/// Counts the steps of one name. Keeps the pool's file as it is at the first one.
class Photographer final : public detail::pm::Probe {
 public:
  explicit Photographer(std::string_view step, std::filesystem::path pool = {},
                        std::filesystem::path picture = {})
      : step_(step),
        pool_(std::move(pool)),
        picture_(std::move(picture)),
        before_(detail::pm::install_probe(this)) {}
  ~Photographer() override { detail::pm::install_probe(before_); }
  Photographer(const Photographer&) = delete;
  Photographer& operator=(const Photographer&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const detail::pm::Site&) override { return true; }
  bool on_fence(const detail::pm::Site&) override { return true; }
  void on_step(const char* name) override {
    if (name != step_) return;
    if (++seen_ == 1 && !picture_.empty()) std::filesystem::copy_file(pool_, picture_);
  }
  unsigned seen() const { return seen_; }

 private:
  const std::string_view step_;
  const std::filesystem::path pool_, picture_;
  detail::pm::Probe* const before_;
  unsigned seen_ = 0;
};

detail::index::BufferOptions options() {
  return {.dram_budget = kUnlimited,
          .technique = Technique::bo,
          .resume_in_background = false,
          .segment_bytes = 576};
}

template <class Engine>
class StaleChain : public ::testing::Test {};

using Engines = ::testing::Types<Cceh<Number, Number>, FastFair<Number, Number>>;
TYPED_TEST_SUITE(StaleChain, Engines);

TYPED_TEST(StaleChain, IsEndedAndLeavesItsPairsAlone) {
  using Index = TypeParam;
  PoolOptions pool_options;
  pool_options.durability = Durability::process;
  pool_options.max_size = std::uint64_t{64} << 20;
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  const auto path = folder.path() / "pool", picture = folder.path() / "picture";
  Number count = 0;
  {
    const Photographer probe("buffers: a merge ends a chain", path, picture);
    const Pool pool = Pool::create(path, pool_options);
    Index index(pool, "t", options());
    for (; probe.seen() == 0; ++count) index.put(count, count + 1);
  }
  const Photographer probe("buffers: end a stale chain");
  const Pool pool = Pool::open(picture, pool_options);
  Index index(pool, "t", options());
  // The last put had not returned when the picture was taken. Half of the pairs go before the log
  // is resumed, which check() sees to.
  for (Number key = 0; key + 1 < count; key += 2) EXPECT_TRUE(index.erase(key)) << key;
  EXPECT_EQ(probe.seen(), 0U);
  EXPECT_EQ(index.check().problems, std::vector<std::string>());
  EXPECT_EQ(probe.seen(), 1U);
  for (Number key = 0; key + 1 < count; ++key) {
    const bool there = key % 2 == 1;
    EXPECT_EQ(index.get(key), there ? std::optional<Number>(key + 1) : std::nullopt) << key;
  }
}

}  // namespace
}  // namespace perdix::testing
