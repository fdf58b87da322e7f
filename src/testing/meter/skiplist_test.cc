// What an operation of the skip list costs, by the meter: lines flushed, fences, lines read.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/skiplist.h>
#include <perdix/pool.h>

#include "testing/meter/insert_traffic.h"
#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

constexpr Meter::Kind kInsert = 1, kUpdate = 2, kGet = 3, kAbsent = 4, kErase = 5;

class SkipListTraffic : public ::testing::Test {
 protected:
  SkipListTraffic() { before_ = detail::pm::install_probe(&meter_); }
  ~SkipListTraffic() override { detail::pm::install_probe(before_); }

  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    return options;
  }

  template <class Call>
  void count(Meter::Kind kind, Call call) {
    const Meter::Operation operation(meter_, kind);
    call();
  }

  double each(Meter::Kind kind, std::uint64_t Traffic::*what) const {
    const Traffic traffic = meter_.traffic(kind);
    return static_cast<double>(traffic.*what) / static_cast<double>(traffic.operations);
  }

  Meter meter_;
  detail::pm::Probe* before_ = nullptr;
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(folder_.path() / "pool", options());
  SkipList<std::uint64_t, std::uint64_t> list_{pool_, "t"};
};

TEST_F(SkipListTraffic, Rows) {
  constexpr std::uint64_t kKeys = 100'000;
  detail::util::Random random(2);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(random() | 1);
  for (const auto key : keys) count(kInsert, [&] { list_.insert(key, 1); });
  for (const auto key : keys) count(kGet, [&] { list_.get(key); });
  for (const auto key : keys) count(kAbsent, [&] { list_.get(key - 1); });
  for (const auto key : keys) count(kUpdate, [&] { list_.update(key, 2); });
  for (const auto key : keys) count(kErase, [&] { list_.erase(key); });
  for (const auto& [kind, name] :
       {std::pair{kInsert, "insert"}, std::pair{kUpdate, "update"}, std::pair{kGet, "get"},
        std::pair{kAbsent, "absent"}, std::pair{kErase, "erase"}}) {
    fmt::print("{}: {:.3f} lines flushed, {:.3f} fences, {:.3f} lines written, {:.3f} read\n", name,
               each(kind, &Traffic::flushes), each(kind, &Traffic::fences),
               each(kind, &Traffic::lines_written), each(kind, &Traffic::lines_read));
  }
  // Three of the allocator's record, and one more for each level above the second.
  EXPECT_NEAR(each(kInsert, &Traffic::fences), 3 + 1.0 / 12, 0.02);
  // The node, the record twice, a mark, and the links before the node: one and a third.
  EXPECT_LE(each(kInsert, &Traffic::flushes), 7);
  EXPECT_EQ(each(kUpdate, &Traffic::flushes), 1);
  EXPECT_EQ(each(kUpdate, &Traffic::fences), 1);
  EXPECT_EQ(each(kUpdate, &Traffic::lines_written), 1);
  // One more than an insert: before the marks say that the node is free.
  EXPECT_NEAR(each(kErase, &Traffic::fences), 4 + 1.0 / 12, 0.05);
  for (const Meter::Kind kind : {kGet, kAbsent}) {
    EXPECT_EQ(each(kind, &Traffic::flushes) + each(kind, &Traffic::fences), 0) << kind;
    EXPECT_EQ(each(kind, &Traffic::lines_written), 0) << kind;
    // Three nodes on each of eight levels, and one behind the last of each that is looked at.
    EXPECT_LE(each(kind, &Traffic::lines_read), 44) << kind;
  }
}

/// What write buffers save of an insert.
TEST(SkipListBufferTraffic, OfBuffers) {
  using Index = SkipList<std::uint64_t, std::uint64_t>;
  const Row none = measure<Index>("none", Technique::none);
  const Row buffered = measure<Index>("b", Technique::b);
  const Row out_of_place = measure<Index>("bo", Technique::bo);
  EXPECT_LE(buffered.media_written, none.media_written / 2);
  EXPECT_LT(buffered.fences, none.fences);
  EXPECT_EQ(out_of_place.flushes, buffered.flushes);
}

}  // namespace
}  // namespace perdix::testing
