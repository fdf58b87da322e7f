// A pool whose device fails, for every engine x kinds: random operations until one is refused, and
// what must be there after that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/engines.h"
#include "support/model.h"
#include "support/pool_options.h"
#include "support/values.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::test {

/// An operation that was called, and whether it returned.
struct InFlight {
  Datum key;
  std::optional<Datum> before;
  std::optional<Datum> after;
};

class FailingPool : public ::testing::TestWithParam<IndexType> {
 protected:
  static constexpr std::uint64_t kKeys = 300;
  static constexpr int kSteps = 120;

  explicit FailingPool(const PoolOptions& options) : options_(options) {}

  static Datum key(std::uint64_t i) {
    const std::uint64_t mixed = i * 0x9e3779b97f4a7c15ull % 100000;
    return GetParam().key_kind == Kind::u64 ? Datum(mixed)
                                            : Datum("key " + std::to_string(100000 + mixed));
  }
  static Datum value(std::uint64_t tag) { return tagged_value(GetParam().value_kind, tag); }
  static AnyIndex open(const Pool& pool) { return GetParam().open(pool, "index"); }

  /// A closed pool with half of the keys.
  void SetUp() override {
    auto pool = Pool::create(base_, options_);
    {
      AnyIndex index = open(pool);
      for (std::uint64_t i = 0; i < kKeys / 2; ++i) {
        index.put(key(i), value(i));
        before_.put(key(i), value(i));
      }
    }
    pool.close();
  }
  /// Up to that many random operations, fewer if one fails or `stopped`; what returned is in
  /// `model`, the last one is returned.
  static std::optional<InFlight> work(
      AnyIndex& index, int steps, Model& model,
      const std::function<bool()>& stopped = [] { return false; }) {
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
      if (stopped()) return now;
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

  /// Opens the pool: it is sound, and has what was acknowledged, and what was in flight or what was
  /// before that. Returns what is there of the key that was in flight. `when_shown` is called when
  /// all has been shown.
  std::optional<Datum> expect_consistent(
      const std::filesystem::path& path, const Model& model, const InFlight& in_flight,
      const std::function<void()>& when_shown = [] {}, bool may_be_closed = false) const {
    auto pool = Pool::open(path, options_);
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
      when_shown();
      const CheckReport report = index.check();
      EXPECT_TRUE(report.ok()) << report.problems.front();
    }
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
    return found;
  }

  const PoolOptions options_;
  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path base_ = directory_.file("base.pool");
  std::filesystem::path path_ = directory_.file("test.pool");
  Model before_;
};

}  // namespace perdix::test
