// Failures of the device of a pool that must survive power failures. For every engine x kinds, the
// power fails at the n-th sync, or that sync fails. The content of the device must then be valid
// and contain everything that was acknowledged. No call may return a value that the device lacks.
// The next opening must show the content of the device, not the kernel's cache.
#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "health/name_of.h"
#include "pm/test_device.h"
#include "pool/claim_image.h"
#include "support/compare.h"
#include "support/engines.h"
#include "support/model.h"
#include "support/settings.h"
#include "support/values.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using testing_files::Device;
using testing_files::TempDirectory;

constexpr std::uint64_t kKeys = 300;
constexpr int kSteps = 120;

/// An operation that was called, and whether it returned.
struct InFlight {
  Datum key;
  std::optional<Datum> before;
  std::optional<Datum> after;
};

class FailedSync : public ::testing::TestWithParam<IndexType> {
 protected:
  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::power;
    options.domain = DomainChoice::page_cache;
    options.max_size = 64 << 20;
    return options;
  }

  static Datum key(std::uint64_t i) {
    const std::uint64_t mixed = i * 0x9e3779b97f4a7c15ull % 100000;
    return GetParam().key_kind == Kind::u64 ? Datum(mixed)
                                            : Datum("key " + std::to_string(100000 + mixed));
  }
  static Datum value(std::uint64_t tag) { return tagged_value(GetParam().value_kind, tag); }
  static AnyIndex open(const Pool& pool) { return GetParam().open(pool, "index"); }

  /// A closed pool with half of the keys.
  void SetUp() override {
    auto pool = Pool::create(base_, options());
    {
      AnyIndex index = open(pool);
      for (std::uint64_t i = 0; i < kKeys / 2; ++i) {
        index.put(key(i), value(i));
        before_.put(key(i), value(i));
      }
    }
    pool.close();
  }
  void TearDown() override { Device::detach(); }

  void restart_from_base() {
    Device::detach();
    std::filesystem::copy_file(base_, path_, std::filesystem::copy_options::overwrite_existing);
    Device::attach(path_);
  }

  /// Up to that many random operations, fewer if one fails or the power goes; what returned is in
  /// `model`, the last one is returned.
  static std::optional<InFlight> work(AnyIndex& index, int steps, Model& model) {
    detail::util::Random random(1);
    for (int step = 0; step < steps; ++step) {
      const Datum k = key(random.below(kKeys));
      const Datum v = value(1000 + static_cast<std::uint64_t>(step));
      const std::uint64_t which = random.below(4);
      InFlight now{k, model.get(k), model.get(k)};
      if (which == 0 || now.before.has_value() == (which == 2)) now.after = v;
      if (which == 3) now.after.reset();
      try {
        switch (which) {
          case 0: index.put(k, v); break;
          case 1: index.insert(k, v); break;
          case 2: index.update(k, v); break;
          default: index.erase(k); break;
        }
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
        return now;
      }
      if (Device::crashed()) return now;
      if (now.after)
        model.put(k, *now.after);
      else
        model.erase(k);
    }
    return std::nullopt;
  }

  static void expect_refused(Pool& pool, AnyIndex& index) {
    const auto refused = [](const char* what, auto call) {
      try {
        call();
        ADD_FAILURE() << what << " returned";
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << what;
        EXPECT_NE(std::string(error.what()).find("open it again"), std::string::npos) << what;
      }
    };
    refused("put", [&] { index.put(key(0), value(1)); });
    refused("insert", [&] { index.insert(key(0), value(1)); });
    refused("update", [&] { index.update(key(0), value(1)); });
    refused("erase", [&] { index.erase(key(0)); });
    refused("get", [&] { index.get(key(0)); });
    refused("contains", [&] { index.contains(key(0)); });
    refused("get_many", [&] { index.get_many({key(0), key(1)}); });
    if (index.ordered()) refused("scan", [&] { index.scan(key(0), 10); });
    refused("visit", [&] { index.visit_all([](DatumView, DatumView) { return true; }); });
    refused("size", [&] { index.size(); });
    refused("stats", [&] { index.stats(); });
    refused("check", [&] { index.check(); });
    refused("info", [&] { pool.info(); });
    refused("indexes", [&] { pool.indexes(); });
    refused("check of the pool", [&] { pool.check(); });
    refused("drop", [&] { pool.drop("index"); });
    refused("opening an index", [&] { GetParam().open(pool, "another"); });
  }

  static std::vector<char> bytes_of_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes(std::filesystem::file_size(path));
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }

  /// What the device holds, as if it had been in the image's file.
  void take_image() const {
    Device::copy_to(image_);
    detail::pool::claim_image(image_);
  }

  /// Opens the pool: it is sound, and has what was acknowledged, and what was in flight or what was
  /// before that. Returns what is there of the key that was in flight. If a path is given, what a
  /// power failure leaves at the moment when all has been shown is put there.
  static std::optional<Datum> expect_consistent(const std::filesystem::path& path,
                                                const Model& model, const InFlight& in_flight,
                                                const std::filesystem::path& left_behind = {},
                                                bool may_be_closed = false) {
    auto pool = Pool::open(path, options());
    EXPECT_TRUE(may_be_closed || !pool.info().was_clean);
    std::optional<Datum> found;
    {
      const AnyIndex index = open(pool);
      found = index.get(in_flight.key);
      const auto is = [&](const std::optional<Datum>& value) {
        return value.has_value() == found.has_value() &&
               (!found || DatumView(*value) == DatumView(*found));
      };
      EXPECT_TRUE(is(in_flight.before) || is(in_flight.after)) << "torn";
      Model expected = model;
      expected.erase(in_flight.key);
      if (found) expected.put(in_flight.key, *found);
      EXPECT_EQ("", compare_pairs(index, expected))
          << "acknowledged pairs are missing, or others are there";
      if (!left_behind.empty()) {
        Device::copy_to(left_behind);
        detail::pool::claim_image(left_behind);
      }
      const CheckReport report = index.check();
      EXPECT_TRUE(report.ok()) << report.problems.front();
    }
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
    return found;
  }

  /// How many syncs the work takes if none fails.
  void count_syncs(std::size_t& total) {
    restart_from_base();
    auto pool = Pool::open(path_, options());
    AnyIndex index = open(pool);
    Model model = before_;
    Device::fail(0, false);
    ASSERT_FALSE(work(index, kSteps, model));
    total = Device::syncs();
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path base_ = directory_.file("base.pool");
  std::filesystem::path path_ = directory_.file("test.pool");
  std::filesystem::path image_ = directory_.file("image.pool");
  Model before_;
};

TEST_P(FailedSync, LeavesWhatWasAcknowledged) {
  std::size_t total = 0;
  ASSERT_NO_FATAL_FAILURE(count_syncs(total));
  detail::util::Random random(GetParam().name.size() * 100 + GetParam().kinds().size());
  const auto runs = static_cast<int>(scaled(16));
  for (int run = 0; run < runs; ++run) {
    SCOPED_TRACE(run);
    restart_from_base();
    Model model = before_;
    std::optional<InFlight> in_flight;
    {
      auto pool = Pool::open(path_, options());
      {
        AnyIndex index = open(pool);
        Device::fail(1 + random.below(total), random.below(2) == 0);
        in_flight = work(index, 20 * kSteps, model);  // some runs sync less than the first
        ASSERT_TRUE(in_flight);
        const std::size_t syncs = Device::syncs();
        expect_refused(pool, index);
        EXPECT_EQ(Device::syncs(), syncs);
      }
      const std::vector<char> at_failure = bytes_of_file(path_);
      EXPECT_THROW(pool.close(), Error);
      EXPECT_TRUE(at_failure == bytes_of_file(path_)) << "close() wrote";
      EXPECT_EQ(Device::failed_syncs(), 1u);
    }
    take_image();
    Device::fail(0, false);
    const auto again = directory_.file("again.pool");
    const auto shown = expect_consistent(path_, model, *in_flight, again);
    Device::detach();
    expect_consistent(image_, model, *in_flight);
    const auto left = expect_consistent(again, model, *in_flight);
    EXPECT_EQ(shown.has_value(), left.has_value());
    EXPECT_TRUE(!shown || !left || DatumView(*shown) == DatumView(*left));
    if (HasFailure()) return;
  }
}

// Each sync of opening a pool, an index that is there and one that is new, and of closing. The pool
// is then opened again, in the same process.
TEST_P(FailedSync, OfAnOpeningPassesWithTheNextOpening) {
  const auto open_all = [&] {
    auto pool = Pool::open(path_, options());
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
    auto pool = Pool::open(path_, options());
    {
      const AnyIndex index = open(pool);
      for (const auto& [key, value] : before_) {
        const auto found = index.get(key);
        ASSERT_TRUE(found && DatumView(*found) == DatumView(value));
      }
      EXPECT_EQ(index.size(), kKeys / 2);
    }
    EXPECT_TRUE(pool.check().ok());
    if (HasFailure()) return;
  }
  EXPECT_GE(failures, 3u);
}

/// At each sync, with any of what was not synced; and again while that is opened.
TEST_P(FailedSync, PowerFailuresLeaveWhatWasAcknowledged) {
  std::size_t total = 0;
  ASSERT_NO_FATAL_FAILURE(count_syncs(total));
  detail::util::Random random(GetParam().name.size() * 1000 + GetParam().kinds().size());
  const auto runs = static_cast<int>(scaled(20));
  const auto again = directory_.file("again.pool");
  int crashes = 0, crashes_of_openings = 0;
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    SCOPED_TRACE(run);
    restart_from_base();
    Model model = before_;
    std::optional<InFlight> in_flight;
    {
      auto pool = Pool::open(path_, options());
      AnyIndex index = open(pool);
      Device::crash_at(1 + random.below(total), image_, random());
      in_flight = work(index, kSteps, model);
    }
    if (!in_flight) continue;  // threads of the pool synced less than in the first run
    ++crashes;
    detail::pool::claim_image(image_);
    Device::attach(image_);
    Device::crash_at(1 + random.below(8), again, random());
    expect_consistent(image_, model, *in_flight);
    if (!Device::crashed()) continue;
    ++crashes_of_openings;
    Device::detach();
    detail::pool::claim_image(again);
    expect_consistent(again, model, *in_flight, {}, true);
  }
  EXPECT_GT(crashes, runs / 2);
  EXPECT_GT(crashes_of_openings, 0);
}

// Writers with separate keys, whose values only grow, and readers. The device must have every value
// that a call has returned or shown.
TEST_P(FailedSync, NoCallReportsWhatIsLost) {
  constexpr std::uint64_t kKeysPerWriter = 20, kWriters = 2, kReaders = 2;
  constexpr std::uint64_t kAllKeys = kKeysPerWriter * kWriters;
  detail::util::Random random(7);
  const auto runs = static_cast<int>(scaled(6));
  for (int run = 0; run < runs; ++run) {
    SCOPED_TRACE(run);
    restart_from_base();
    std::array<std::atomic<std::uint64_t>, kAllKeys> told{};
    {
      auto pool = Pool::open(path_, options());
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
    auto pool = Pool::open(image_, options());
    const AnyIndex index = open(pool);
    for (std::uint64_t i = 0; i < kAllKeys; ++i) {
      const auto found = index.get(key(i));
      ASSERT_TRUE(found) << i;
      EXPECT_GE(*tag_of(*found), told[i].load()) << "key " << i << " has an older value";
    }
    EXPECT_TRUE(index.check().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, FailedSync, ::testing::ValuesIn(few_index_types()), name_of);

}  // namespace
}  // namespace perdix::test
