// Histories written by hand: the checker accepts what is linearizable and refuses what is not.
#include "testing/linearizability/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Key kKey = 5;

Operation call(Action action, Tick called, Tick ended, Value value = 0) {
  return {.action = action,
          .key = kKey,
          .value = value,
          .returned = true,
          .called = called,
          .ended = ended};
}
Operation put(Tick called, Tick ended, Value value) {
  return call(Action::put, called, ended, value);
}
Operation insert(Tick called, Tick ended, Value value, bool success) {
  Operation operation = call(Action::insert, called, ended, value);
  operation.success = success;
  return operation;
}
Operation update(Tick called, Tick ended, Value value, bool success) {
  Operation operation = insert(called, ended, value, success);
  operation.action = Action::update;
  return operation;
}
Operation erase(Tick called, Tick ended, bool success) {
  Operation operation = insert(called, ended, 0, success);
  operation.action = Action::erase;
  return operation;
}
Operation get(Tick called, Tick ended, std::optional<Value> found) {
  Operation operation = call(Action::get, called, ended);
  operation.found = found;
  return operation;
}
Operation in_flight(Operation operation) {
  operation.returned = false;
  return operation;
}

TEST(Checker, AcceptsASequence) {
  EXPECT_TRUE(linearizable({}));
  EXPECT_TRUE(
      linearizable({get(1, 2, {}), insert(3, 4, 10, true), insert(5, 6, 11, false), get(7, 8, 10),
                    update(9, 10, 12, true), get(11, 12, 12), put(13, 14, 13), erase(15, 16, true),
                    erase(17, 18, false), update(19, 20, 14, false), get(21, 22, {})}));
}

TEST(Checker, RefusesEachWrongAnswer) {
  EXPECT_FALSE(linearizable({get(1, 2, 10)}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), get(3, 4, {})}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), put(3, 4, 11), get(5, 6, 10)}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), insert(3, 4, 11, true)}));
  EXPECT_FALSE(linearizable({insert(1, 2, 10, false)}));
  EXPECT_FALSE(linearizable({update(1, 2, 10, true)}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), update(3, 4, 11, false)}));
  EXPECT_FALSE(linearizable({erase(1, 2, true)}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), erase(3, 4, false)}));
}

TEST(Checker, OverlappingOperationsMayHaveHappenedInEitherOrder) {
  for (const Value seen : {10, 11})
    EXPECT_TRUE(linearizable({put(1, 4, 10), put(2, 3, 11), get(5, 6, seen)})) << seen;
  EXPECT_TRUE(linearizable({put(1, 10, 10), get(2, 3, {}), get(4, 5, 10)}));
  EXPECT_FALSE(linearizable({put(1, 10, 10), get(2, 3, 10), get(4, 5, {})})) << "it goes back";
  EXPECT_FALSE(linearizable({insert(1, 4, 10, true), insert(2, 3, 11, true)})) << "both won";
  EXPECT_FALSE(linearizable({put(1, 2, 9), erase(3, 6, true), erase(4, 5, true), get(7, 8, {})}));
  EXPECT_TRUE(
      linearizable({put(1, 2, 9), erase(3, 6, true), insert(4, 5, 10, true), get(7, 8, 10)}));
}

TEST(Checker, OperationsInFlightAtACrashMayHaveHappened) {
  const Operation late = in_flight(put(3, 10, 11));
  EXPECT_TRUE(linearizable({put(1, 2, 10), late, get(11, 12, 10)}));
  EXPECT_TRUE(linearizable({put(1, 2, 10), late, get(11, 12, 11)}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), late, get(11, 12, {})}));
  EXPECT_FALSE(linearizable({put(1, 2, 10), late, get(11, 12, 10), get(13, 14, 11)}))
      << "it can't happen after the crash";
  EXPECT_FALSE(linearizable({put(1, 2, 10), late, get(4, 5, 11), get(11, 12, 10)}))
      << "somebody saw it before the crash";
}

TEST(Checker, FindsTheOneWrongValueInALongRandomHistory) {
  constexpr std::uint64_t kSeed = 20;
  detail::util::Random random(kSeed);
  std::vector<Operation> history;
  std::optional<Value> state;
  for (Tick t = 1; t < 400; ++t) {  // each overlaps several of its neighbours
    const Tick at = 10 * t;
    const Tick called = at - random.below(30) % at;
    const Tick ended = at + random.below(30);
    if (random.one_in(3)) {
      state = t;
      history.push_back(put(called, ended, t));
    } else if (random.one_in(4)) {
      history.push_back(erase(called, ended, state.has_value()));
      state.reset();
    } else {
      history.push_back(get(called, ended, state));
    }
  }
  EXPECT_TRUE(linearizable(history)) << "seed " << kSeed;
  history.push_back(get(10'000, 10'001, Value{7}));
  EXPECT_FALSE(linearizable(history)) << "seed " << kSeed;
}

TEST(Checker, KeysAreIndependentAndNamed) {
  History history;
  history.operations = {put(1, 2, 10), get(3, 4, 10)};
  history.operations.push_back(get(5, 6, 1));
  history.operations.back().key = 6;
  const auto problems = check(history, {});
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(problems[0], HasSubstr("key 6"));
  EXPECT_THAT(problems[0], HasSubstr("get(6) -> 1"));
}

class ScanTest : public ::testing::Test {
 protected:
  ScanTest() { history_.operations = {put(1, 2, 10)}; }

  std::vector<std::string> with(Key from, std::vector<Shown> pairs, bool exhausted) {
    history_.scans = {{0, from, exhausted, std::move(pairs), 20, 30}};
    return check(history_, keys_);
  }

  History history_;
  std::vector<Key> keys_ = {3, kKey, 9};
};

TEST_F(ScanTest, ShowsEveryKeyOfItsRange) {
  EXPECT_THAT(with(0, {{kKey, 10, 25}}, true), IsEmpty());
  EXPECT_THAT(with(6, {}, true), IsEmpty());
  EXPECT_THAT(with(0, {}, false), IsEmpty()) << "it was stopped before";
  EXPECT_THAT(with(0, {}, true), SizeIs(1)) << "the key is missing";
  EXPECT_THAT(with(0, {{kKey, 11, 25}}, true), SizeIs(1)) << "a wrong value";
  EXPECT_THAT(with(0, {{3, 1, 24}, {kKey, 10, 25}}, true), SizeIs(1)) << "a key that is not there";
}

TEST_F(ScanTest, PassesOverAKeyOnlyWhenItIsAbsent) {
  history_.operations.push_back(put(3, 4, 12));
  history_.operations.back().key = 9;
  EXPECT_THAT(with(0, {{kKey, 10, 24}, {9, 12, 25}}, true), IsEmpty());
  EXPECT_THAT(with(0, {{9, 12, 25}}, true), SizeIs(1)) << "it passed over the other key";
}

TEST_F(ScanTest, Ascends) {
  EXPECT_THAT(with(0, {{kKey, 10, 24}, {kKey, 10, 25}}, true), SizeIs(1));
  EXPECT_THAT(with(6, {{kKey, 10, 24}}, true), SizeIs(1)) << "it lies before the beginning";
}

TEST_F(ScanTest, MaySeeEachKeyAtAnotherMoment) {
  history_.operations.push_back(put(21, 22, 11));  // while it ran
  EXPECT_THAT(with(0, {{kKey, 10, 25}}, true), IsEmpty());
  EXPECT_THAT(with(0, {{kKey, 11, 25}}, true), IsEmpty());
  history_.operations.push_back(put(26, 27, 12));
  EXPECT_THAT(with(0, {{kKey, 12, 25}}, true), SizeIs(1)) << "shown before it was written";
}

TEST_F(ScanTest, WithoutOrderShowsEachKeyOnce) {
  history_.operations.push_back(put(3, 4, 12));
  history_.operations.back().key = 3;
  history_.scans = {{0, 0, true, {{kKey, 10, 24}, {3, 12, 25}}, 20, 30, false}};
  EXPECT_THAT(check(history_, keys_), IsEmpty());
  history_.scans[0].pairs.push_back({kKey, 10, 26});
  EXPECT_THAT(check(history_, keys_), SizeIs(1)) << "a key twice";
  history_.scans[0].pairs = {{3, 12, 25}};
  EXPECT_THAT(check(history_, keys_), SizeIs(1)) << "the other key is missing";
  history_.scans[0].exhausted = false;
  EXPECT_THAT(check(history_, keys_), IsEmpty()) << "it was stopped before";
  history_.scans[0].pairs = {{3, 10, 25}};
  EXPECT_THAT(check(history_, keys_), SizeIs(1)) << "another key's value";
}

TEST(Cut, LeavesEarlierCalls) {
  History history;
  history.operations = {put(1, 2, 10), put(3, 8, 11), put(9, 10, 12)};
  history.scans = {{0, 0, true, {{1, 1, 4}, {2, 2, 7}}, 3, 8}};
  const History before = cut(history, 6);
  ASSERT_THAT(before.operations, SizeIs(2));
  EXPECT_TRUE(before.operations[0].returned);
  EXPECT_FALSE(before.operations[1].returned);
  EXPECT_EQ(before.operations[1].ended, 6u);
  ASSERT_THAT(before.scans, SizeIs(1));
  EXPECT_FALSE(before.scans[0].exhausted);
  EXPECT_THAT(before.scans[0].pairs, SizeIs(1));
}

}  // namespace
}  // namespace perdix::testing
