// Pages that the device does not give while an index works, for every engine x kinds: the pool must
// fail, not the process, and its file must have what was acknowledged. Zeros that stand for a lost
// page must neither be shown nor reach the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/bus_errors.h>

#include "health/failing_pool.h"
#include "health/name_of.h"
#include "pm/test_lost_page.h"
#include "support/settings.h"
#include "util/random.h"

namespace perdix::test {
namespace {

constexpr std::size_t kPage = 4096;

class LostPage : public FailingPool {
 protected:
  LostPage() : FailingPool(small()) { handle_bus_errors(); }

  static PoolOptions small() {
    PoolOptions options = options_for_all_engines();
    options.durability = Durability::process;
    options.max_size = 64 << 20;
    return options;
  }

  PoolOptions opening(bool survives_power) const {
    PoolOptions options = options_;
    if (survives_power) {
      options.durability = Durability::power;
      options.domain = DomainChoice::page_cache;
    }
    return options;
  }

  /// Offsets of the pages that hold anything.
  static std::vector<std::size_t> pages_in_use(const std::filesystem::path& path) {
    const std::vector<char> bytes = bytes_of_file(path);
    std::vector<std::size_t> pages;
    for (std::size_t page = 0; page < bytes.size(); page += kPage) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(page);
      const auto zero = [](char byte) { return byte == 0; };
      if (!std::all_of(begin, begin + kPage, zero)) pages.push_back(page);
    }
    return pages;
  }

  /// Operations of all kinds, until one fails. Those that change nothing find what the model has.
  static std::optional<InFlight> work_and_read(AnyIndex& index, Model& model) {
    if (auto in_flight = work(index, kSteps / 2, model)) return in_flight;
    const InFlight nothing{key(0), model.get(key(0)), model.get(key(0))};
    try {
      for (std::uint64_t i = 0; i < kKeys; ++i) {
        const auto found = index.get(key(i)), expected = model.get(key(i));
        EXPECT_TRUE(found.has_value() == expected.has_value() &&
                    (!found || DatumView(*found) == DatumView(*expected)));
      }
      EXPECT_EQ("", compare_pairs(index, model));
      EXPECT_TRUE(index.check().ok());
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
      return nothing;
    }
    return std::nullopt;
  }
};

// But Tips: its plug-ins are programs that follow the pointers that they find.
TEST_P(LostPage, KeepsAcknowledgedWrites) {
  if (GetParam().name.starts_with("tips:")) GTEST_SKIP() << "zeros may end it";
  const std::vector<std::size_t> pages = pages_in_use(base_);
  const auto failures_needed = static_cast<int>(scaled(16));
  detail::util::Random random(GetParam().name.size() * 100 + GetParam().kinds().size());
  int failures = 0;
  for (int run = 0; failures < failures_needed && !HasFailure(); ++run) {
    SCOPED_TRACE(run);
    ASSERT_LT(run, 20 * failures_needed) << failures << " runs met their lost page";
    std::filesystem::copy_file(base_, path_, std::filesystem::copy_options::overwrite_existing);
    Model model = before_;
    std::optional<InFlight> in_flight;
    auto pool = Pool::open(path_, opening(run % 2 == 1));
    {
      AnyIndex index = open(pool);
      ASSERT_FALSE(work(index, kSteps / 4, model));
      const auto* const base = reinterpret_cast<const std::byte*>(pool.info().address);
      testing_files::lose_page(base + pages[random.below(pages.size())]);
      in_flight = work_and_read(index, model);
      if (in_flight) expect_refused(pool, index);
    }
    if (!in_flight) continue;  // the page was not needed
    ++failures;
    EXPECT_THROW(pool.close(), Error);
    expect_consistent(path_, model, *in_flight);
  }
}

// The pool fails while it, or an index of it, is opened.
TEST_P(LostPage, OfAnOpeningIsAnError) {
  const std::vector<std::size_t> pages = pages_in_use(base_);
  std::filesystem::copy_file(base_, path_, std::filesystem::copy_options::overwrite_existing);
  for (std::size_t i = 0; i < pages.size(); i += 1 + pages.size() / scaled(16)) {
    SCOPED_TRACE(pages[i]);
    {
      auto pool = Pool::open(path_, opening(false));
      const auto* const base = reinterpret_cast<const std::byte*>(pool.info().address);
      testing_files::lose_page(base + pages[i]);
      try {
        AnyIndex index = open(pool);
        EXPECT_EQ("", compare_pairs(index, before_));
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
      }
    }
    auto pool = Pool::open(path_, opening(false));
    const AnyIndex index = open(pool);
    ASSERT_EQ("", compare_pairs(index, before_));
    ASSERT_TRUE(index.check().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, LostPage, ::testing::ValuesIn(few_index_types()), name_of);

}  // namespace
}  // namespace perdix::test
