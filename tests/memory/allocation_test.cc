// Allocations fail, one in a run or all from one on: in writes, in openings, in reads and in
// closing, for every engine and kinds. A call that throws has changed nothing, and afterwards the
// index holds what the model holds, is sound, and so is the pool that is opened again.
//
//   PERDIX_ALLOCATION_STEP=n   every n-th allocation (default: the first ones, then ever fewer)
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <perdix/index.h>
#include <perdix/pool.h>

#include "support/failing_memory.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using Model = std::map<std::string, std::string>;

struct Case {
  std::string engine;
  Kind key_kind, value_kind;
  bool buffered;

  std::string name() const {
    return engine + (buffered ? "_buffered" : "") + "_" + std::string(to_string(key_kind)) + "_" +
           std::string(to_string(value_kind));
  }
};

std::string datum(Kind kind, std::uint64_t number, std::uint64_t salt) {
  if (kind == Kind::u64) {
    const auto bytes = encode_u64(number * 7 + salt);
    return {bytes.data(), bytes.size()};
  }
  std::string text = "k" + std::to_string(1000000 + number) + "." + std::to_string(salt);
  if (number % 23 == 5) text += std::string(700 + 100 * salt, 'z');
  return text;
}

/// A pool with one index, and what the index must hold.
class Scene {
 public:
  Scene(const Case& test_case, const std::filesystem::path& path) : case_(test_case), path_(path) {
    pool_.emplace(Pool::create(path_, options()));
    open_index();
    for (std::uint64_t i = 0; i < kPairs; ++i) put(i, 0);
  }

  PoolOptions options() const {
    PoolOptions options;
    options.durability = Durability::process;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  void open_pool() { pool_.emplace(Pool::open(path_, options())); }
  void open_index() {
    IndexOptions index;
    index.dram_budget = case_.buffered ? IndexOptions::kUnlimited : 0;
    index_ = Index::open_or_create(
        *pool_, IndexInfo{"a", case_.engine, case_.key_kind, case_.value_kind}, index);
  }
  void close_index() { index_.reset(); }
  void close_pool() { pool_.reset(); }
  Index& index() { return *index_; }
  Pool& pool() { return *pool_; }
  bool has_pool() const { return pool_.has_value(); }
  bool has_index() const { return index_ != nullptr; }
  const Model& model() const { return model_; }

  std::string key(std::uint64_t number) const { return datum(case_.key_kind, number, 0); }
  std::string value(std::uint64_t number, std::uint64_t salt) const {
    return datum(case_.value_kind, number, salt);
  }

  void put(std::uint64_t number, std::uint64_t salt) {
    index_->put(key(number), value(number, salt));
    model_[key(number)] = value(number, salt);
  }

  /// One write, whose allocations count. If it throws it has changed nothing.
  void write(util::Random& random, std::uint64_t step) {
    std::optional<FailingMemory::Pause> pause(std::in_place);
    const std::uint64_t number = random.below(2) == 0 ? kPairs + step : random.below(kPairs);
    const std::string k = key(number), v = value(number, 1 + step % 3);
    const bool there = model_.contains(k);
    const bool erases = random.below(3) == 0;
    try {
      pause.reset();
      const bool done = erases ? index_->erase(k) : (index_->put(k, v), true);
      pause.emplace();
      EXPECT_EQ(done, !erases || there);
      erases ? (void)model_.erase(k) : (void)(model_[k] = v);
    } catch (const std::exception& error) {
      pause.emplace();
      const auto found = index_->get(k);
      EXPECT_EQ(found.has_value(), there) << "a call that threw " << error.what();
      if (found && there) EXPECT_EQ(*found, model_[k]) << "a call that threw " << error.what();
    }
  }

  void expect_right(const char* when) {
    Model found;
    index_->scan(case_.key_kind == Kind::u64 ? std::string(8, '\0') : "",
                 [&](std::string_view k, std::string_view v) {
                   found.emplace(k, v);
                   return true;
                 });
    EXPECT_EQ(found, model_) << when;
    EXPECT_EQ(index_->size(), model_.size()) << when;
    for (const auto& [k, v] : model_) ASSERT_EQ(index_->get(k), v) << when;
    const CheckReport report = index_->check();
    EXPECT_TRUE(report.ok()) << when << ": " << (report.ok() ? "" : report.problems[0]);
  }

  void expect_sound_pool(const char* when) {
    const CheckReport report = pool_->check();
    EXPECT_TRUE(report.ok()) << when << ": " << (report.ok() ? "" : report.problems[0]);
  }

  /// What must work after all that.
  void finish() {
    if (!has_pool()) open_pool();
    if (!has_index()) open_index();
    expect_right("afterwards");
    for (std::uint64_t i = 0; i < 40; ++i) put(3 * i, 7);
    close_index();
    expect_sound_pool("when closed");
    close_pool();
    open_pool();
    open_index();
    expect_right("opened again");
    close_index();
    expect_sound_pool("opened again");
  }

  static constexpr std::uint64_t kPairs = 260;

 private:
  Case case_;
  std::filesystem::path path_;
  std::optional<Pool> pool_;
  std::unique_ptr<Index> index_;
  Model model_;
};

/// What happens while the n-th allocation fails.
using Act = std::function<void(Scene&)>;

void write_some(Scene& scene) {
  util::Random random(scene.model().size());
  for (std::uint64_t step = 0; step < 120; ++step) scene.write(random, step);
}

void ignore_failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception&) {
    // It may fail; what it must not do is looked at later.
  }
}

void open_again(Scene& scene) {
  {
    const FailingMemory::Pause pause;
    scene.close_index();
    scene.close_pool();
  }
  ignore_failure([&] { scene.open_pool(); });
  if (scene.has_pool()) ignore_failure([&] { scene.open_index(); });
}

void read_some(Scene& scene) {
  const Index& index = scene.index();
  ignore_failure([&] { index.stats(); });
  ignore_failure([&] { index.size(); });
  ignore_failure([&] { index.check(); });
  ignore_failure([&] { index.scan("", [](auto, auto) { return true; }); });
}

void close_all(Scene& scene) {
  scene.close_index();
  ignore_failure([&] { scene.pool().close(); });
  scene.close_pool();
}

std::uint64_t next_of(std::uint64_t n) {
  if (const char* step = std::getenv("PERDIX_ALLOCATION_STEP")) return n + std::stoull(step);
  return n + 1 + n / 4;
}

/// Calls act() once for each allocation that it makes.
void fail_each(const Case& test_case, const Act& act, Failing which) {
  const testing_files::TempDirectory directory(testing_files::memory_directory());
  bool hit = true;
  for (std::uint64_t n = 1; hit && !testing::Test::HasFailure(); n = next_of(n)) {
    SCOPED_TRACE(test_case.name() + ", allocation " + std::to_string(n));
    const auto path = directory.file(std::to_string(n));
    Scene scene(test_case, path);
    {
      const FailingMemory failing(n, which);
      act(scene);
      hit = FailingMemory::hit();
    }
    scene.finish();
    scene.close_pool();
    std::filesystem::remove(path);
  }
}

class AllocationTest : public testing::TestWithParam<Case> {};

TEST_P(AllocationTest, Writes) { fail_each(GetParam(), write_some, Failing::once); }
TEST_P(AllocationTest, WritesWithoutAnyMemoryFromThenOn) {
  fail_each(GetParam(), write_some, Failing::onwards);
}
TEST_P(AllocationTest, Openings) { fail_each(GetParam(), open_again, Failing::once); }
TEST_P(AllocationTest, Reads) { fail_each(GetParam(), read_some, Failing::once); }
TEST_P(AllocationTest, Closing) { fail_each(GetParam(), close_all, Failing::once); }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& engine : Index::engines()) {
    for (const Kind key : {Kind::u64, Kind::bytes}) {
      for (const Kind value : {Kind::u64, Kind::bytes}) {
        cases.push_back({engine, key, value, false});
        if (engine == "sptree") cases.push_back({engine, key, value, true});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, AllocationTest, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace perdix::test
