// Free space that is kept for one user, in a pool that others fill.
#include "alloc/claim.h"

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "alloc/test_space.h"

namespace perdix::detail::alloc {
namespace {

constexpr std::uint64_t kSmall = 48;
constexpr std::uint64_t kInASpan = kSizeClasses[size_class_of(kSmall)].blocks;

class ClaimTest : public ::testing::Test {
 protected:
  ClaimTest() {
    Calloc::format(space_);
    calloc_ = std::make_unique<Calloc>(space_);
  }
  ~ClaimTest() override {
    CheckReport report;
    calloc_->check(report);
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }

  static bool has_space(const std::function<void()>& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
      return false;
    }
  }
  bool takes(std::uint64_t bytes) {
    return has_space([&] { allocate(*calloc_, bytes); });
  }
  bool takes(std::uint64_t bytes, Claim& claim) {
    return has_space([&] {
      Session session = calloc_->session();
      const Offset block = session.reserve(bytes, claim);
      session.log();
      session.finish();
      EXPECT_TRUE(calloc_->validate_block(block, bytes));
    });
  }
  /// Blocks of all sizes, until there is no more space.
  void fill() {
    for (std::uint64_t bytes = 2 * kChunkSize; bytes >= 16; bytes /= 2)
      while (takes(bytes)) continue;
  }

  TestSpace space_{256 * kMiB};
  std::unique_ptr<Calloc> calloc_;
};

TEST_F(ClaimTest, KeepsItsSpansInAFullPool) {
  space_.set_limit(2 * kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(10);
  fill();
  EXPECT_EQ(claim.spans(), 10U);
  for (std::uint64_t i = 0; i < 7 * kInASpan; ++i) ASSERT_TRUE(takes(kSmall, claim)) << i;
  EXPECT_EQ(claim.spans(), 3U);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(takes(kSpanSize / 2 - 64, claim)) << i;
  EXPECT_EQ(claim.spans(), 0U);
  EXPECT_FALSE(takes(kSmall, claim));
  EXPECT_FALSE(takes(kSpanSize / 2 - 64, claim));
}

TEST_F(ClaimTest, KeepsTheRestOfASpanThatItHasBegun) {
  space_.set_limit(kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(1);
  fill();
  ASSERT_TRUE(takes(kSmall, claim));
  EXPECT_FALSE(takes(kSmall)) << "others";
  for (std::uint64_t i = 1; i < kInASpan; ++i) ASSERT_TRUE(takes(kSmall, claim)) << i;
  EXPECT_FALSE(takes(kSmall, claim));
}

TEST_F(ClaimTest, GivesUpASpanThatItHasBegun) {
  space_.set_limit(kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(1);
  fill();
  ASSERT_TRUE(takes(kSmall, claim));
  claim.surrender();
  EXPECT_FALSE(takes(kSmall, claim));
  for (std::uint64_t i = 1; i < kInASpan; ++i) ASSERT_TRUE(takes(kSmall)) << i;
  EXPECT_FALSE(takes(kSmall));
}

TEST_F(ClaimTest, TakesARunOfItsSpans) {
  space_.set_limit(kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(7);
  fill();
  EXPECT_TRUE(takes(3 * kSpanSize, claim));
  EXPECT_TRUE(takes(2 * kSpanSize + 1, claim));
  EXPECT_FALSE(takes(2 * kSpanSize, claim)) << "one is left";
  EXPECT_EQ(claim.spans(), 1U);
}

TEST_F(ClaimTest, AnOperationThatEndsUnloggedHasTakenNothing) {
  space_.set_limit(kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(1);
  fill();
  ASSERT_TRUE(takes(kSmall, claim));
  for (std::uint64_t i = 0; i < 3 * kInASpan; ++i) {
    Session session = calloc_->session();
    ASSERT_TRUE(has_space([&] { session.reserve(kSmall, claim); })) << i;
  }
}

TEST_F(ClaimTest, LetsThePoolGrow) {
  space_.set_limit(3 * kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(2 * kSpansPerChunk);
  EXPECT_EQ(space_.size(), 3 * kChunkSize);
  EXPECT_FALSE(has_space([&] { claim.raise(kSpansPerChunk); }));
  EXPECT_EQ(claim.spans(), 2U * kSpansPerChunk);
  claim.lower(kSpansPerChunk);
  claim.raise(kSpansPerChunk - 1);
  EXPECT_EQ(claim.spans(), 2U * kSpansPerChunk - 1);
}

TEST_F(ClaimTest, GivesLargeObjectsNoChunkOfIt) {
  space_.set_limit(kChunkSize);
  while (takes(kSpanSize)) continue;
  space_.set_limit(2 * kChunkSize);
  Claim claim(*calloc_, 0);
  claim.raise(kMaxRun);  // a chunk, of which no span is in use
  EXPECT_FALSE(takes(kChunkSize - kLargeHeader));
  claim.lower(kMaxRun - 1);
  EXPECT_FALSE(takes(kChunkSize - kLargeHeader));
  claim.lower(1);
  EXPECT_TRUE(takes(kChunkSize - kLargeHeader));
}

TEST_F(ClaimTest, TakesWhatOthersHaveFreed) {
  space_.set_limit(kChunkSize);
  std::vector<Offset> blocks;
  while (has_space([&] { blocks.push_back(allocate(*calloc_, kSmall)); })) continue;
  Claim claim(*calloc_, 0);
  EXPECT_FALSE(has_space([&] { claim.raise(1); }));
  for (const Offset block : blocks) deallocate(*calloc_, block);
  calloc_->reclaim();
  claim.raise(200);
  EXPECT_EQ(claim.spans(), 200U);
}

TEST_F(ClaimTest, TwoClaimsAreApart) {
  space_.set_limit(kChunkSize);
  Claim one(*calloc_, 0), other(*calloc_, 0);
  one.raise(2), other.raise(3);
  fill();
  while (takes(kSmall, one)) continue;
  EXPECT_EQ(other.spans(), 3U);
  for (std::uint64_t i = 0; i < 3 * kInASpan; ++i) ASSERT_TRUE(takes(kSmall, other)) << i;
}

TEST_F(ClaimTest, IsKeptFromTheOpeningOn) {
  space_.set_limit(kChunkSize);
  for (int i = 0; i < 100; ++i) allocate(*calloc_, kSpanSize);
  calloc_ = std::make_unique<Calloc>(space_);
  calloc_->restore_claims(20);
  fill();
  Claim claim(*calloc_, 20);
  for (std::uint64_t i = 0; i < 20 * kInASpan; ++i) ASSERT_TRUE(takes(kSmall, claim)) << i;
  EXPECT_FALSE(takes(kSmall, claim));
}

// More may be noted than was left at the crash.
TEST_F(ClaimTest, GrowsThePoolBeyondClaimsThatItCanNotKeep) {
  calloc_->restore_claims(2 * kSpansPerChunk);
  EXPECT_TRUE(takes(kSpanSize));
  EXPECT_TRUE(takes(kSmall));
  EXPECT_GE(space_.size(), 3 * kChunkSize);
}

}  // namespace
}  // namespace perdix::detail::alloc
