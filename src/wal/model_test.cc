// Random operations against a map of chains, with restarts at random points: what the checkpoint
// and the records behind it say is what was appended.
#include <array>
#include <map>

#include "util/random.h"
#include "wal/log.h"
#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

class LogModel : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::size_t kOwners = 200;

  /// Mostly two stripes, so that those grow and are reclaimed often.
  void go_anywhere() {
    static constexpr std::array<unsigned, 2> kFavourites = {1, 6};
    fixture_.log().go_to(static_cast<unsigned>(random_.one_in(50) ? random_.below(kStripes)
                                                                  : kFavourites[random_.below(2)]));
  }

  Owner any_owner() { return owners_[random_.below(owners_.size())]; }

  /// Cleaning ended these chains.
  void forget_cleaned() {
    for (const Owner owner : fixture_.take_cleaned()) model_.erase(owner);
  }

  void append(Owner owner) {
    const auto type = static_cast<Type>(random_.below(3));
    const Word key = random_(), value = random_();
    go_anywhere();
    fixture_.put(owner, key, value, type);
    forget_cleaned();
    model_[owner].emplace_back(type, key, value);
  }

  /// A burst, so that segments fill up.
  void append_much() {
    for (std::uint64_t n = random_.below(4000); n > 0; --n) append(any_owner());
  }

  void end(Owner owner) {
    go_anywhere();
    fixture_.end(owner);
    model_.erase(owner);
  }

  void end_many() {
    for (const Owner owner : owners_) {
      if (random_.one_in(2)) end(owner);
    }
  }

  /// A restart during which writers go on.
  void restart_under_load() {
    fixture_.open_log();
    std::vector<Owner> left = owners_;
    std::shuffle(left.begin(), left.end(), random_);
    for (const Owner owner : left) {
      fixture_.adopt(owner);
      if (random_.one_in(4)) append(owner);
      if (random_.one_in(8)) end(owner);
    }
    fixture_.log().resumed();
  }

  void restart() {
    std::vector<Owner> order = owners_;
    std::shuffle(order.begin(), order.end(), random_);
    fixture_.restart(random_.one_in(4), order);
  }

  void step() {
    switch (random_.below(9)) {
      case 0: return append_much();
      case 1: return end_many();
      case 2: return fixture_.log().checkpoint();
      case 3: return fixture_.log().reclaim();
      case 4: return restart();
      case 5: return restart_under_load();
      case 6: fixture_.clean(); return forget_cleaned();
      case 7: return end(any_owner());
      default: return append(any_owner());
    }
  }

  void compare() {
    ASSERT_EQ(fixture_.problems(), Strings{});
    for (const Owner owner : owners_) {
      const auto it = model_.find(owner);
      ASSERT_EQ(fixture_.read(owner), it == model_.end() ? Changes{} : it->second)
          << "owner " << owner;
    }
  }

  util::Random random_{GetParam()};
  std::vector<Owner> owners_ = first_owners(kOwners);
  Fixture fixture_;
  std::map<Owner, Changes> model_;
};

TEST_P(LogModel, ChainsAreWhatWasAppended) {
  for (int i = 0; i < 120; ++i) {
    step();
    if (random_.one_in(4)) compare();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << GetParam() << ", step " << i;
  }
  EXPECT_GT(fixture_.log().appended() * sizeof(Record), 4 * kSegmentSize);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LogModel, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace perdix::detail::wal
