// Failures of the device of a pool that must survive power failures. For every workload, the power
// fails at the n-th sync, or that sync fails. The content of the device must then be valid
// and contain everything that was acknowledged. No call may return a value that the device lacks.
// The next opening must show the content of the device, not the kernel's cache.
#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "health/failing_pool.h"
#include "pm/test_device.h"
#include "pool/claim_image.h"
#include "support/settings.h"
#include "support/values.h"
#include "util/random.h"

namespace perdix::test {
namespace {

using testing_files::Device;

class FailedSync : public FailingPool {
 protected:
  FailedSync() : FailingPool(Durability::power, DomainChoice::page_cache) {}

  void TearDown() override { Device::detach(); }

  void restart_from_base() {
    Device::detach();
    std::filesystem::copy_file(base_, path_, std::filesystem::copy_options::overwrite_existing);
    Device::attach(path_);
  }

  /// What the device holds, as if it had been in the image's file.
  void take_image() const { take_image(image_); }
  static void take_image(const std::filesystem::path& path) {
    Device::copy_to(path);
    detail::pool::claim_image(path);
  }

  /// How many syncs the work takes if none fails.
  void count_syncs(std::size_t& total) {
    restart_from_base();
    auto pool = Pool::open(path_, options_);
    const auto instance = open(pool);
    Course course = course_so_far();
    Device::fail(0, false);
    ASSERT_FALSE(work(course, *instance, kSteps));
    total = Device::syncs();
  }

  std::filesystem::path image_ = directory_.file("image.pool");
};

TEST_P(FailedSync, KeepsAcknowledgedWrites) {
  std::size_t total = 0;
  ASSERT_NO_FATAL_FAILURE(count_syncs(total));
  detail::util::Random random(GetParam().name.size());
  const auto runs = static_cast<int>(scaled(16));
  for (int run = 0; run < runs; ++run) {
    SCOPED_TRACE(run);
    restart_from_base();
    Course course = course_so_far();
    {
      auto pool = Pool::open(path_, options_);
      {
        const auto instance = open(pool);
        Device::fail(1 + random.below(total), random.below(2) == 0);
        ASSERT_TRUE(work(course, *instance, 20 * kSteps));  // some sync less than the first run
        const std::size_t syncs = Device::syncs();
        expect_refused(pool, *instance);
        EXPECT_EQ(Device::syncs(), syncs);
      }
      const std::string at_failure = testing_files::content_of(path_);
      EXPECT_THROW(pool.close(), Error);
      EXPECT_TRUE(at_failure == testing_files::content_of(path_)) << "close() wrote";
      // At most one more, of the journal's background thread, at the same moment.
      EXPECT_GE(Device::failed_syncs(), 1u);
      EXPECT_LE(Device::failed_syncs(), 2u);
    }
    take_image();
    Device::fail(0, false);
    const auto again = directory_.file("again.pool");
    const bool shown = expect_consistent(path_, course, true, [&] { take_image(again); });
    Device::detach();
    expect_consistent(image_, course, true);
    EXPECT_EQ(expect_consistent(again, course, true), shown);
    if (HasFailure()) return;
  }
}

// Each sync of opening a pool, an index that is there and one that is new, and of closing. The pool
// is then opened again, in the same process.
TEST_P(FailedSync, OfAnOpeningPassesWithTheNextOpening) {
  const auto open_all = [&] {
    auto pool = Pool::open(path_, options_);
    const auto refuse_another_try = [&](const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
        EXPECT_THROW(call(), Error) << "the pool must be opened again";
        throw;
      }
    };
    refuse_another_try([&] { open(pool); });
    refuse_another_try([&] { GetParam().open(pool, "another"); });
    pool.close();
  };
  const Course course = course_so_far();
  std::size_t failures = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(failures + 1);
    restart_from_base();
    Device::fail(failures + 1, failures % 2 == 0);
    failed = false;
    try {
      open_all();
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
      failed = true;
      ++failures;
    }
    EXPECT_EQ(Device::failed_syncs() > 0, failed);
    Device::fail(0, false);
    auto pool = Pool::open(path_, options_);
    ASSERT_TRUE(open(pool)->shows(course.state()));
    EXPECT_TRUE(pool.check().ok());
    if (HasFailure()) return;
  }
  EXPECT_GE(failures, 3u);
}

/// At each sync, with any of what was not synced; and again while that is opened.
TEST_P(FailedSync, PowerFailuresKeepAcknowledgedWrites) {
  std::size_t total = 0;
  ASSERT_NO_FATAL_FAILURE(count_syncs(total));
  detail::util::Random random(GetParam().name.size() * 10);
  const auto crashes_needed = static_cast<int>(scaled(20));
  const auto again = directory_.file("again.pool");
  int crashes = 0, crashes_of_openings = 0;
  for (int run = 0; crashes < crashes_needed && !HasFailure(); ++run) {
    ASSERT_LT(run, 20 * crashes_needed) << crashes << " runs synced as often as the first";
    SCOPED_TRACE(run);
    restart_from_base();
    Course course = course_so_far();
    bool in_flight = false;
    {
      auto pool = Pool::open(path_, options_);
      const auto instance = open(pool);
      Device::crash_at(1 + random.below(total), image_, random());
      in_flight = work(course, *instance, kSteps, Device::crashed);
    }
    if (!in_flight) continue;  // threads of the pool synced less than in the first run
    ++crashes;
    detail::pool::claim_image(image_);
    Device::attach(image_);
    Device::crash_at(1 + random.below(8), again, random());
    expect_consistent(image_, course, true);
    if (!Device::crashed()) continue;
    ++crashes_of_openings;
    Device::detach();
    detail::pool::claim_image(again);
    expect_consistent(
        again, course, true, [] {}, true);
  }
  EXPECT_GT(crashes_of_openings, 0);
}

/// Of an index, which several threads use.
class FailedSyncOfIndex : public FailedSync {
 protected:
  static AnyIndex open(const Pool& pool) { return GetParam().type->open(pool, "of threads"); }
  static Datum key(std::uint64_t i) {
    return GetParam().type->key_kind == Kind::u64 ? Datum(i) : Datum("key " + std::to_string(i));
  }
  static Datum value(std::uint64_t tag) { return tagged_value(GetParam().type->value_kind, tag); }
};

// Writers with separate keys, whose values only grow, and readers. The device must have every value
// that a call has returned or shown.
TEST_P(FailedSyncOfIndex, NoCallReportsLostWrites) {
  constexpr std::uint64_t kKeysPerWriter = 20, kWriters = 2, kReaders = 2;
  constexpr std::uint64_t kAllKeys = kKeysPerWriter * kWriters;
  detail::util::Random random(7);
  const auto runs = static_cast<int>(scaled(6));
  for (int run = 0; run < runs; ++run) {
    SCOPED_TRACE(run);
    restart_from_base();
    std::array<std::atomic<std::uint64_t>, kAllKeys> told{};
    {
      auto pool = Pool::open(path_, options_);
      AnyIndex index = open(pool);
      for (std::uint64_t i = 0; i < kAllKeys; ++i) index.put(key(i), value(0));
      Device::fail(20 + random.below(300), run % 2 == 0);
      const auto tell = [&](std::uint64_t i, std::uint64_t tag) {
        std::uint64_t known = told[i].load();
        while (known < tag && !told[i].compare_exchange_weak(known, tag)) {
        }
      };
      const auto until_refused = [&](auto step) {
        try {
          for (std::uint64_t n = 0;; ++n) step(n);
        } catch (const Error& error) {
          EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
        }
      };
      std::vector<std::thread> threads;
      for (std::uint64_t w = 0; w < kWriters; ++w) {
        threads.emplace_back([&, w] {
          until_refused([&](std::uint64_t n) {
            const std::uint64_t i = w * kKeysPerWriter + n % kKeysPerWriter;
            index.put(key(i), value(n + 1));
            tell(i, n + 1);
          });
        });
      }
      for (std::uint64_t r = 0; r < kReaders; ++r) {
        threads.emplace_back([&, r] {
          until_refused([&](std::uint64_t n) {
            const std::uint64_t i = (n + r * 7) % kAllKeys;
            const auto found = index.get(key(i));
            ASSERT_TRUE(found);
            tell(i, *tag_of(*found));
          });
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    take_image();
    Device::detach();
    auto pool = Pool::open(image_, options_);
    const AnyIndex index = open(pool);
    for (std::uint64_t i = 0; i < kAllKeys; ++i) {
      const auto found = index.get(key(i));
      ASSERT_TRUE(found) << i;
      EXPECT_GE(*tag_of(*found), told[i].load()) << "key " << i << " has an older value";
    }
    EXPECT_TRUE(index.check().ok());
  }
}

/// Of so many writes that both halves of the journal are in use, at any sync of the writer or of
/// the thread that drains the other half.
TEST_P(FailedSyncOfIndex, PowerFailuresBesideADrainKeepAcknowledgedWrites) {
  constexpr std::uint64_t kKeys = 40;
  detail::util::Random random(11);
  const auto runs = static_cast<int>(scaled(4));
  for (int run = 0; run < runs; ++run) {
    SCOPED_TRACE(run);
    restart_from_base();
    std::array<std::uint64_t, kKeys> told{};
    {
      auto pool = Pool::open(path_, options_);
      AnyIndex index = open(pool);
      std::uint64_t puts = 0;
      const auto put = [&] {
        const std::uint64_t i = puts++ % kKeys;
        index.put(key(i), value(puts));
        if (!Device::crashed()) told[i] = puts;
      };
      Device::fail(0, false);
      const std::size_t before = 500 + random.below(1000);  // a half is full after 632 or less
      while (Device::syncs() < before) put();
      Device::crash_at(1 + random.below(100), image_, random());
      while (!Device::crashed()) put();
    }
    Device::detach();
    detail::pool::claim_image(image_);
    auto pool = Pool::open(image_, options_);
    const AnyIndex index = open(pool);
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const auto found = index.get(key(i));
      if (told[i] == 0) continue;
      ASSERT_TRUE(found) << i;
      EXPECT_GE(*tag_of(*found), told[i]) << "key " << i << " has an older value";
    }
    EXPECT_TRUE(index.check().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, FailedSync, ::testing::ValuesIn(few_workloads()), name_of);
INSTANTIATE_TEST_SUITE_P(Engines, FailedSyncOfIndex, ::testing::ValuesIn(index_workloads()),
                         name_of);

}  // namespace
}  // namespace perdix::test
