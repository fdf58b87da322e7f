// What an opening does before its first answer is independent of the number of pairs: how many
// lines of PM it reads, how many segments it knows, and how many regions of the backup log it has
// read. And what comes back is all there.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "index/elimda/test_map.h"
#include "pm/probe.h"

namespace perdix::detail::index::elimda {
namespace {

using Number = std::uint64_t;

/// Knows the lines that were read while it lives.
class LinesRead : public pm::Probe {
 public:
  LinesRead() : before_(pm::install_probe(this)) {}
  ~LinesRead() override { pm::install_probe(before_); }
  LinesRead(const LinesRead&) = delete;
  LinesRead& operator=(const LinesRead&) = delete;

  std::size_t count() const { return lines_.size(); }

  void on_read(const void* p, std::size_t n) override {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    for (std::uintptr_t line = at / pm::kLineSize; line <= (at + n - 1) / pm::kLineSize; ++line)
      lines_.insert(line);
  }
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }

 private:
  pm::Probe* const before_;
  std::set<std::uintptr_t> lines_;
};

/// Lets the backup log have regions as soon as it has chunks.
class ManyRegions final : public LinesRead {
 public:
  explicit ManyRegions(unsigned max_depth) : max_depth_(max_depth) {}

  std::uint64_t on_limit(const char* name, std::uint64_t limit) override {
    const std::string_view what(name);
    if (what == "elimda: units of a region") return 0;
    return what == "elimda: depth of regions" ? max_depth_ : limit;
  }
  void on_read(const void*, std::size_t) override {}

 private:
  const unsigned max_depth_;
};

/// What an opening does up to its first answer.
struct Work {
  std::size_t lines;
  unsigned segments, regions, depth;
};

Work work_of_opening(TestMap<Number, Number>& map, Number key) {
  const LinesRead read;
  map.reopen_index();
  EXPECT_EQ(map->get(key), std::optional(~key));
  auto& backup = TestAccess::backup(*map);
  return {read.count(), TestAccess::known_segments(*map), backup.regions_read(),
          backup.lists().depth()};
}

class ElimDaOpening : public testing::TestWithParam<MediaUnits> {};

TEST_P(ElimDaOpening, WorkDoesNotGrowWithPairs) {
  constexpr Shape kManyLogs{1024, 4, 4, 16, 2};
  constexpr Number kFew = 50'000, kMany = 16 * kFew;
  TestMap<Number, Number> map(kManyLogs, GetParam());
  std::size_t of_few = 0;
  Number next = 0;
  for (const Number pairs : {kFew, kMany}) {
    {
      const ManyRegions limits(ChunkLists::kMaxDepth);
      for (; next < pairs; ++next) map->insert(next, ~next);
    }
    ASSERT_GT(TestAccess::segments(*map), pairs / 60);
    for (const Number key : {Number{0}, pairs / 2, pairs - 1}) {
      const Work work = work_of_opening(map, key);
      EXPECT_EQ(work.segments, 1u);
      EXPECT_LE(work.regions, work.depth + 1);
      if (pairs == kFew)
        of_few = std::max(of_few, work.lines);
      else
        EXPECT_LE(work.lines, of_few + of_few / 4);
      fmt::print("{} pairs: {} lines, {} regions\n", pairs, work.lines, work.regions);
    }
  }
  EXPECT_GT(TestAccess::backup(*map).lists().depth(), 2u);
}

INSTANTIATE_TEST_SUITE_P(All, ElimDaOpening,
                         testing::Values(MediaUnits::always, MediaUnits::never));

/// Also with chunks from before there were regions.
TEST_P(ElimDaOpening, PairsOfAllRegionsComeBack) {
  TestMap<Number, std::string> map(kSmall, GetParam());
  map.drop();
  const std::uint64_t empty = map.allocated();
  std::map<Number, std::string> model;
  const auto put = [&](Number from, Number to) {
    for (Number key = from; key < to; ++key) {
      map->put(key, datum<std::string>(key));
      model[key] = datum<std::string>(key);
    }
  };
  if (GetParam() == MediaUnits::always) {  // else a chunk would do for all that come later
    put(0, 1000);
    EXPECT_EQ(TestAccess::backup(*map).lists().depth(), 0u);
    EXPECT_GT(TestAccess::backup(*map).chunks(), 0u);
  }
  constexpr unsigned kDepth = 3, kDepthOfLogs = 2;
  const ManyRegions limits(kDepth);
  for (Number round = 1; round <= 3; ++round) {
    map.reopen();
    put(round * 5000, round * 5000 + 5000);
    for (Number key = round * 1000; key < round * 1000 + 1000; ++key)
      EXPECT_EQ(map->erase(key), model.erase(key) != 0);
    map.reopen();
    for (const auto& [key, value] : model) ASSERT_EQ(map->get(key), value) << key;
    map.expect_sound_pool();
  }
  EXPECT_EQ(TestAccess::backup(*map).lists().depth(),
            GetParam() == MediaUnits::never ? kDepth : kDepthOfLogs);
  map.drop();
  EXPECT_EQ(map.allocated(), empty);
}

/// Of an earlier release, whose logs did not say so: all units are looked at once.
TEST(ElimDaOldFormat, ACopyOfALogThatDoesNotSaySoIsFinished) {
  for (const bool growing : {false, true}) {
    Shape shape = kSmall;
    shape.logs_grow = growing;
    TestMap<Number, Number> map(shape);
    for (Number key = 0; TestAccess::log_set(*map).log(0).line().count < 3; ++key)
      map->insert(key, ~key);
    const Number pairs = map->size();
    const CollectingLog log = TestAccess::log_set(*map).log(0);
    auto& backup = TestAccess::backup(*map);
    const BackupLog::Unit unit = backup.take({0}, 0);
    for (unsigned i = 0; i < 3; ++i) backup.pairs(unit)[i] = log.pairs()[i];
    backup.words(unit)[0] = UnitWord{0x7, log.name(), LogWord::unpack(log.word()).number}.pack();
    map.root().magic = growing ? Root::kSilentGrowingMagic : Root::kSilentMagic;
    map.reopen();
    EXPECT_EQ(TestAccess::log_set(*map).log(0).line().count, 0);
    EXPECT_EQ(map.root().magic, growing ? Root::kGrowingMagic : Root::kMagic);
    EXPECT_EQ(map->size(), pairs);
    for (Number key = 0; key < pairs; ++key) EXPECT_EQ(map->get(key), ~key);
    map.expect_sound_pool();
  }
}

}  // namespace
}  // namespace perdix::detail::index::elimda
