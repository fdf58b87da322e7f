// ElimDa's promise that lookups never wait. A writer stops for good at an event, in turn at each
// event of its operations. Lookups of all keys must still return, with the right results. The
// writes fill logs, relocate buckets, split segments and get more logs, so the writer stops while
// it holds any of their locks. And what lookups see of two sets of logs, if there are more logs
// while they search.
#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/elimda.h>
#include <perdix/pool.h>

#include "index/elimda/shape.h"
#include "index/elimda/test_traits.h"
#include "pm/probe.h"
#include "suspender.h"
#include "util/test_directory.h"
#include "util/test_eventually.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;
using Index = ElimDa<Number, Number>;

constexpr Number kStay = 60, kCome = 40;

using detail::index::NamedOptions;
using detail::index::elimda::TestTraits;
constexpr const auto& kTraits = TestTraits::kTraits;

ElimDaOptions small_options(NamedOptions named) {
  ElimDaOptions options = detail::index::options_of(TestTraits::kOptions, "elimda", named());
  options.resume_in_background = false;
  return options;
}

/// Keys below kStay are there all the time, kCome others come, and some of those go.
void write(Index& index) {
  for (Number i = kStay; i < kStay + kCome; ++i) {
    index.insert_ahead(i, i);
    index.insert_ahead(i % kStay, 0);  // a duplicate, without effect
    if (i % 4 == 0 && i > kStay) index.erase(i - 2);
    if (i % 5 == 0) index.update(i, i);
  }
}

/// Whether all that stays is there, and nothing that was never written.
bool read(const Index& index) {
  bool right = true;
  for (Number i = 0; i < kStay; ++i) right &= index.get(i) == std::optional<Number>(i + 1);
  for (Number i = 0; i < kStay; ++i) right &= !index.contains(1000 + i);
  std::vector<Number> keys(kStay);
  for (Number i = 0; i < kStay; ++i) keys[i] = i;
  std::vector<std::optional<Number>> values(kStay);
  index.get_many(keys, values);
  for (Number i = 0; i < kStay; ++i) right &= values[i] == std::optional<Number>(i + 1);
  Number shown = 0;
  index.for_each([&](Number key, Number value) {
    right &= key >= kStay || value == key + 1;
    shown += key < kStay ? 1 : 0;
    return true;
  });
  return right && shown == kStay;
}

class ElimDaLookups
    : public ::testing::TestWithParam<std::tuple<DomainChoice, bool, NamedOptions>> {};

TEST_P(ElimDaLookups, WaitForNoWriter) {
  const auto [domain, cold, named] = GetParam();
  PoolOptions options;
  options.durability = Durability::process;
  options.domain = domain;
  options.max_size = std::uint64_t{64} << 20;
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  std::uint64_t suspensions = 0;
  for (std::uint64_t event = 1;; event += 1 + event / 16) {
    SCOPED_TRACE(fmt::format("suspended at event {}", event));
    const std::filesystem::path path = folder.path() / fmt::format("pool-{}", event);
    const Pool pool = Pool::create(path, options);
    std::filesystem::remove(path);  // it stays until it is closed
    std::optional<Index> index(std::in_place, pool, "t", small_options(named));
    for (Number i = 0; i < kStay; ++i) index->put(i, i + 1);
    if (cold) {
      index.reset();
      index.emplace(pool, "t", small_options(named));
    }
    Suspender probe;
    probe.count_steps(true);
    detail::pm::Probe* const before = detail::pm::install_probe(&probe);
    bool suspended = false;
    std::thread writer([&] {
      probe.watch(event);
      write(*index);
      suspended = probe.end();
    });
    probe.wait_for_suspension();
    auto reader = std::async(std::launch::async, [&] { return read(*index); });
    EXPECT_TRUE(detail::util::comes_about([&] { return detail::util::is_ready(reader); }))
        << "a lookup waits for the suspended writer";
    probe.release();
    writer.join();
    EXPECT_TRUE(reader.get());
    detail::pm::install_probe(before);
    EXPECT_EQ(index->check().problems, std::vector<std::string>());
    if (HasFailure()) return;
    if (!suspended) break;  // there are no more events
    ++suspensions;
  }
  EXPECT_GE(suspensions, 50u);
}

INSTANTIATE_TEST_SUITE_P(
    Domains, ElimDaLookups,
    ::testing::Combine(::testing::Values(DomainChoice::cpu_cache, DomainChoice::memory_controller),
                       ::testing::Bool(),
                       ::testing::Values(kTraits.small, kTraits.growing, kTraits.straight)));

/// Numbers with that first bit of their hash, in an index that was made while a probe watched.
std::vector<Number> numbers_with(unsigned bit, std::size_t count) {
  const detail::index::elimda::Hasher hash_of(detail::pm::kWatchedHashSeed);
  std::vector<Number> numbers;
  for (Number number = 0; numbers.size() < count; ++number) {
    if (hash_of(number).bit(0) == bit) numbers.push_back(number);
  }
  return numbers;
}

/// Calls functions at events.
class Hooks final : public detail::pm::Probe {
 public:
  Hooks() : before_(detail::pm::install_probe(this)) {}
  ~Hooks() override { detail::pm::install_probe(before_); }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  std::function<void(const void*)> at_read;
  std::function<void(const void*, std::size_t)> at_flush;
  std::function<void(std::string_view)> at_step;
  std::function<void(const void*, std::size_t)> at_retirement;

  void on_read(const void* p, std::size_t) override {
    if (at_read) at_read(p);
  }
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site&) override {
    if (at_flush) at_flush(p, n);
    return true;
  }
  bool on_fence(const detail::pm::Site&) override { return true; }
  void on_step(const char* name) override {
    if (at_step) at_step(name);
  }
  void on_retired(const void* p, std::size_t n) override {
    if (at_retirement) at_retirement(p, n);
  }

 private:
  detail::pm::Probe* const before_;
};

// Between a lookup's look at a bucket and its read of a value, the bucket is replaced, and an
// update has stored a value that is not durable yet. The lookup must make it durable: it knows only
// of updates of the bucket before.
TEST(ElimDaReads, AValueIsDurableAlsoIfItsBucketWasReplaced) {
  constexpr Number kKey = 1, kOthers = 14;
  for (const NamedOptions named : {kTraits.small, kTraits.straight}) {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    options.max_size = std::uint64_t{64} << 20;
    const testing_files::TempDirectory folder{testing_files::memory_directory()};
    Hooks hooks;
    const Pool pool = Pool::create(folder.path() / "pool", options);
    Index index(pool, "t", small_options(named));
    Number next = kKey;
    for (; next <= kOthers; ++next) index.put(next, 0);  // to P-buckets
    const void* word = nullptr;
    hooks.at_read = [&](const void* p) { word = p; };
    ASSERT_EQ(index.get(kKey), std::optional<Number>(0));  // reads its value last
    const std::thread::id reader = std::this_thread::get_id();
    std::promise<void> stored, shown;
    std::thread writer;
    unsigned flushes = 0;
    hooks.at_flush = [&](const void* p, std::size_t n) {
      const auto* const begin = static_cast<const std::byte*>(p);
      if (word < begin || word >= begin + n) return;
      if (std::this_thread::get_id() == reader && writer.joinable()) {
        ++flushes;
      } else if (std::this_thread::get_id() != reader) {
        stored.set_value();
        shown.get_future().wait();
      }
    };
    hooks.at_read = [&](const void* p) {
      if (p != word || std::this_thread::get_id() != reader || writer.joinable()) return;
      for (; next <= 2 * kOthers; ++next) index.put(next, 0);
      writer = std::thread([&] { index.update(kKey, 2); });
      stored.get_future().wait();
    };
    EXPECT_EQ(index.get(kKey), std::optional<Number>(2));
    EXPECT_EQ(flushes, 1u);
    shown.set_value();
    writer.join();
  }
}

/// An index in persistent caches, whose logs become more when it grows.
class ElimDaSets : public ::testing::Test {
 protected:
  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::cpu_cache;
    options.max_size = std::uint64_t{64} << 20;
    return options;
  }

  const testing_files::TempDirectory folder_{testing_files::memory_directory()};
  const Pool pool_ = Pool::create(folder_.path() / "pool", options());
  Hooks hooks_;
  Index index_{pool_, "t", small_options(kTraits.growing)};
};

// While a lookup reads the pair of its key in the P-bucket, there are more logs, and the key is
// erased. The logs before keep a duplicate that never counted: the lookup must not see that.
TEST_F(ElimDaSets, ALookupTakesThemAfterTheBucket) {
  const auto ours = numbers_with(0, 60), others = numbers_with(1, 4000);
  for (const Number key : ours) index_.put(key, key);
  for (std::size_t i = 0; i < 60; ++i) index_.put(others[i], 0);
  Number key = 0;
  bool watching = false, more_logs = false, in_logs = false, beside = false;
  hooks_.at_step = [&](std::string_view step) {
    more_logs |= step == "elimda: there are more logs in PM";
    in_logs |= step == "elimda: a lookup goes on to the logs";
  };
  hooks_.at_read = [&](const void*) {
    if (!std::exchange(watching, false) || in_logs) return;
    more_logs = false;
    for (std::size_t i = 60; i < others.size() && !more_logs; ++i) index_.put(others[i], 0);
    ASSERT_TRUE(more_logs);
    EXPECT_TRUE(index_.erase(key));
    beside = true;
  };
  for (std::size_t i = 0; i < ours.size() && !beside; ++i) {
    key = ours[i];
    index_.insert_ahead(key, 1'000'000);  // a duplicate, without effect
    in_logs = false;
    watching = true;  // reads the pair in its P-bucket, or goes on to the logs
    const std::optional<Number> found = index_.get(key);
    EXPECT_EQ(found, beside ? std::nullopt : std::optional<Number>(key)) << key;
    watching = false;
  }
  EXPECT_TRUE(beside);
  EXPECT_EQ(index_.check().problems, std::vector<std::string>());
}

// When the area of the logs before is free for those that come later, no lookup that begins reads
// it.
TEST_F(ElimDaSets, OnesThatWereReplacedAreNotReadOnceTheyAreFree) {
  bool replaced = false;
  unsigned sets = 0;
  std::vector<Number> keys;
  hooks_.at_step = [&](std::string_view step) {
    replaced |= step == "elimda: there are more logs in PM";
  };
  hooks_.at_retirement = [&](const void* block, std::size_t size) {
    if (!std::exchange(replaced, false)) return;
    ++sets;
    const auto* const begin = static_cast<const std::byte*>(block);
    unsigned reads = 0;
    hooks_.at_read = [&](const void* p) {
      const auto* const at = static_cast<const std::byte*>(p);
      reads += at >= begin && at < begin + size;
    };
    for (const Number key : keys) EXPECT_EQ(index_.get(key), std::optional<Number>(key));
    hooks_.at_read = nullptr;
    EXPECT_EQ(reads, 0u);
  };
  for (Number key = 0; key < 400; ++key) {
    index_.put(key, key);
    keys.push_back(key);
  }
  EXPECT_GE(sets, 2u);
}

}  // namespace
}  // namespace perdix::testing
