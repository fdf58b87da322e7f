// Scans beside writers and replays: each pair that is there all along is shown once, and each
// thread sees its own writes.
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/tips/test_tips.h"
#include "util/random.h"

namespace perdix::detail::index::tips {
namespace {

/// An index whose keys are numbers: multiples of kStep stay, those between them are a writer's own.
template <class Plugged>
class ScanStress : public TipsTest {
 protected:
  using Key = typename Plugged::Key;
  using Value = typename Plugged::Value;

  static constexpr U64 kStep = 4, kStable = 2000;

  /// In the order of their numbers.
  static Key key(U64 number) {
    if constexpr (std::is_same_v<Key, U64>)
      return number;
    else
      return "key " + std::to_string(100'000 + number);
  }

  ScanStress() {
    for (U64 i = 0; i < kStable; ++i) index_.put(key(i * kStep), datum<Value>(i));
  }

  /// Puts and erases keys of its own, and looks for each by scans.
  void write(U64 writer) {
    util::Random random(writer);
    std::map<U64, U64> own;
    for (U64 i = 0; i < 8000; ++i) {
      const U64 number = random.below(kStable) * kStep + writer;
      if (random.below(3) != 0) {
        index_.put(key(number), datum<Value>(i));
        own[number] = i;
      } else {
        EXPECT_EQ(index_.erase(key(number)), own.erase(number) == 1);
      }
      if (i % 8 == 0) expect_own(own, number);
    }
  }

  void expect_own(const std::map<U64, U64>& own, U64 number) const {
    const auto known = own.find(number);
    const auto check = [&](const auto& found) {
      const bool shown = found && found->first == key(number);
      ASSERT_EQ(shown, known != own.end()) << number;
      if (shown) {
        EXPECT_EQ(found->second, datum<Value>(known->second));
      }
    };
    check(index_.floor(key(number)));
    std::optional<std::pair<Key, Value>> first;
    for (const auto& [its_key, value] : index_.scan(key(number), 1)) first.emplace(its_key, value);
    check(first);
  }

  /// Scans until the writers have ended.
  void scan(U64 seed) {
    util::Random random(seed);
    while (writing_.load() > 0) {
      const U64 from = random.below(kStable), limit = 1 + random.below(300);
      U64 stable = from, shown = 0;
      std::optional<Key> last;
      for (const auto& [its_key, value] : index_.scan(key(from * kStep), limit)) {
        ++shown;
        EXPECT_TRUE(!last || *last < its_key);
        last.emplace(its_key);
        if (stable == kStable || its_key < key(stable * kStep)) continue;
        ASSERT_EQ(its_key, key(stable * kStep));
        EXPECT_EQ(value, datum<Value>(stable));
        ++stable;
      }
      EXPECT_TRUE(shown == limit || stable == kStable);
    }
  }

  const Pool pool_ = open();
  typename Plugged::Index index_{pool_, "t", options()};
  std::atomic<int> writing_{2};

 private:
  static TipsOptions options() {
    TipsOptions options = small_logs();
    options.min_workers = options.max_workers = 2;
    return options;
  }
};
using Ordered = ::testing::Types<Integers<perdix::tips::BTree>, Strings<perdix::tips::BTree>,
                                 Integers<perdix::tips::Art>>;
TYPED_TEST_SUITE(ScanStress, Ordered);

TYPED_TEST(ScanStress, ShowsWhatIsThereAllAlongAndOwnWrites) {
  std::vector<std::thread> threads;
  for (U64 writer = 1; writer <= 2; ++writer)
    threads.emplace_back([this, writer] { this->write(writer), --this->writing_; });
  for (U64 scanner = 1; scanner <= 2; ++scanner)
    threads.emplace_back([this, scanner] { this->scan(scanner); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(this->index_.check().ok());
}

}  // namespace
}  // namespace perdix::detail::index::tips
