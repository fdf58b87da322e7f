// Tests of the explorer: it counts as many images as a count by hand, finds each planted error, and
// accepts correct structures.
#include "testing/explorer.h"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "fake_maps.h"
#include "testing/subjects/subjects.h"

namespace perdix::testing {
namespace {

using detail::pm::Domain;
using fakes::CellBug;

constexpr Domain kDomains[] = {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache};

std::string text_of(const Failure& failure) {
  std::string text = "seed " + std::to_string(failure.seed) + " at " + to_string(failure.path) +
                     ", " + failure.moment + ":";
  for (const std::string& problem : failure.problems) text += "\n  " + problem;
  return text;
}

ExplorerOptions thorough(Domain domain) {
  ExplorerOptions options;
  options.domain = domain;
  options.steps = 6;
  options.images_of_round = 1 << 20;
  options.nested_one_in = 2;
  return options;
}

/// The failure's place alone must bring it back.
template <class S>
void expect_replayed(const Failure& failure, const ExplorerOptions& options) {
  S subject(options.domain);
  Explorer explorer(subject, options);
  const auto replayed = explorer.replay(failure.seed, failure.path);
  ASSERT_TRUE(replayed.has_value());
  EXPECT_EQ(replayed->problems, failure.problems);
}

template <class S>
std::optional<Failure> explore(Domain domain, ExplorerOptions options, unsigned rounds = 3) {
  S subject(domain);
  options.domain = domain;
  Explorer explorer(subject, options);
  std::optional<Failure> failure;
  for (std::uint64_t seed = 1; seed <= rounds && !failure; ++seed) failure = explorer.round(seed);
  // With several threads, when one gets a lock that became free is not part of the schedule.
  if (failure && options.threads == 1) expect_replayed<S>(*failure, options);
  return failure;
}

template <class S>
void expect_sound() {
  for (const Domain domain : kDomains) {
    const auto failure = explore<S>(domain, thorough(domain));
    EXPECT_FALSE(failure.has_value()) << detail::pm::to_string(domain) << ": " << text_of(*failure);
  }
}

template <class S>
void expect_found(std::initializer_list<Domain> domains, unsigned rounds = 3) {
  for (const Domain domain : domains) {
    EXPECT_TRUE(explore<S>(domain, thorough(domain), rounds).has_value())
        << detail::pm::to_string(domain);
  }
}

TEST(Explorer, PassesSoundFakes) {
  expect_sound<fakes::Numbers<fakes::Cells<CellBug::none>>>();
  expect_sound<fakes::TwinNumbers<false>>();
  expect_sound<fakes::Numbers<fakes::Blocks<false>>>();
  expect_sound<fakes::UndoNumbers<false>>();
  expect_sound<fakes::Numbers<fakes::LateUndo<false>>>();
}

TEST(Explorer, FindsAMissingFlush) {
  expect_found<fakes::Numbers<fakes::Cells<CellBug::no_flush>>>(
      {Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsAMissingFence) {
  expect_found<fakes::Numbers<fakes::Cells<CellBug::no_fence>>>(
      {Domain::memory_controller, Domain::page_cache});
}

// Any moment of the copied block has more images than a round may.
TEST(Explorer, FindsAMissingFenceBehindManyLines) {
  ExplorerOptions options;
  options.images_of_round = 24;
  const auto torn =
      explore<fakes::Numbers<fakes::WideCells<false>>>(Domain::memory_controller, options, 20);
  EXPECT_TRUE(torn.has_value());
  const auto whole =
      explore<fakes::Numbers<fakes::WideCells<true>>>(Domain::memory_controller, options, 20);
  EXPECT_FALSE(whole.has_value()) << text_of(*whole);
}

TEST(Explorer, FindsAFlushOfTheWrongLine) {
  expect_found<fakes::Numbers<fakes::Cells<CellBug::wrong_line>>>(
      {Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsASwappedOrder) {
  expect_found<fakes::Numbers<fakes::Cells<CellBug::swapped>>>(
      {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsATornUpdateOfTwoWords) {
  expect_found<fakes::TwinNumbers<true>>(
      {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsALeak) {
  expect_found<fakes::Numbers<fakes::Blocks<true>>>(
      {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsARecoveryThatDoesNotBearACrash) {
  expect_found<fakes::UndoNumbers<true>>(
      {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsARecoveryThatWritersDoNotWaitFor) {
  expect_found<fakes::Numbers<fakes::LateUndo<true>>>(
      {Domain::cpu_cache, Domain::memory_controller, Domain::page_cache});
}

TEST(Explorer, FindsReadsOfUnpersistedValues) {
  ExplorerOptions options = thorough(Domain::memory_controller);
  options.threads = 2;
  options.steps = 12;  // half of them by threads that work at the same time
  const auto dirty = explore<fakes::SharedNumbers<true>>(Domain::memory_controller, options, 20);
  EXPECT_TRUE(dirty.has_value());
  const auto clean = explore<fakes::SharedNumbers<false>>(Domain::memory_controller, options, 20);
  EXPECT_FALSE(clean.has_value()) << text_of(*clean);
}

// Another thread's fence is none for what the thread flushed that opened.
TEST(Explorer, TheThreadThatOpensIsNoneOfTheWorkers) {
  ExplorerOptions options = thorough(Domain::memory_controller);
  const auto alone = explore<fakes::Numbers<fakes::Marked>>(Domain::memory_controller, options);
  EXPECT_FALSE(alone.has_value()) << text_of(*alone);
  options.threads = 2;
  const auto others = explore<fakes::Numbers<fakes::Marked>>(Domain::memory_controller, options);
  EXPECT_TRUE(others.has_value());
}

template <class S>
Counts counts_of(Domain domain) {
  ExplorerOptions options;
  options.domain = domain;
  options.steps = 1;
  options.steps_after = 0;
  options.images_of_round = 1 << 20;
  options.nested_one_in = options.deep_one_in = std::uint64_t{1} << 62;
  S subject(domain);
  Explorer explorer(subject, options);
  EXPECT_FALSE(explorer.round(1).has_value());
  return explorer.counts();
}

// A crash during n stores that are flushed together leaves, of n words in units of their own, any
// subset; in one unit, any prefix.
TEST(Explorer, CountsImagesAsByHand) {
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<6, 8>>(Domain::memory_controller).images),
            64u);  // six lines
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<6, 1>>(Domain::memory_controller).images),
            7u);  // one line
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<4, 4>>(Domain::memory_controller).images),
            9u);  // two lines of two words
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<6, 8>>(Domain::page_cache).images),
            64u);  // six lines of one sector
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<6, 64>>(Domain::page_cache).images),
            64u);  // six sectors
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<6, 512>>(Domain::page_cache).images),
            64u);  // six pages
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<6, 8>>(Domain::cpu_cache).images),
            7u);  // program order
  EXPECT_EQ((counts_of<fakes::ScratchNumbers<12, 8>>(Domain::memory_controller).images),
            4096u);  // still all
  // 13 lines: each store has at most 2^12 images that are new with it, so all 2^13 are opened. With
  // 14 not any more.
  const Counts thirteen = counts_of<fakes::ScratchNumbers<13, 8>>(Domain::memory_controller);
  EXPECT_EQ(thirteen.images, 8192u);
  EXPECT_EQ(thirteen.exhaustive, thirteen.moments);
  const Counts sampled = counts_of<fakes::ScratchNumbers<14, 8>>(Domain::memory_controller);
  EXPECT_EQ(sampled.exhaustive, sampled.moments - 1);
}

// A set of one cell: nothing, the copy, the copy and the selector. The copy is persistent before
// the selector is stored.
TEST(Explorer, CountsImagesOfAProtocolAsByHand) {
  using Sound = fakes::Numbers<fakes::Cells<CellBug::none>>;
  EXPECT_EQ(counts_of<Sound>(Domain::cpu_cache).images, 3u);
  EXPECT_EQ(counts_of<Sound>(Domain::memory_controller).images, 3u);
  EXPECT_EQ(counts_of<Sound>(Domain::page_cache).images, 3u);
}

TEST(Explorer, SuppressionOfEachSiteOfASoundFakeIsFound) {
  using Sound = fakes::Numbers<fakes::Cells<CellBug::none>>;
  Sound subject(Domain::memory_controller);
  std::vector<Sites::Use> uses;
  {
    Explorer explorer(subject, thorough(Domain::memory_controller));
    ASSERT_FALSE(explorer.round(1).has_value());
    uses = explorer.sites().uses();
  }
  ASSERT_EQ(uses.size(), 2u);  // the persist of the copy and the publish of the selector
  for (const Sites::Use& use : uses) {
    EXPECT_GT(use.flushes, 0u);
    EXPECT_EQ(use.flushes, use.fences);
    for (const Event::Kind kind : {Event::Kind::flush, Event::Kind::fence}) {
      ExplorerOptions options = thorough(Domain::memory_controller);
      options.suppressed_site = use.name;
      options.suppressed_kind = kind;
      EXPECT_TRUE(explore<Sound>(Domain::memory_controller, options).has_value()) << use.name;
    }
  }
}

// Of the images of one set, only that with the new selector and the old copy is due to a copy that
// is not fenced.
TEST(Explorer, UnderASuppressionOpensOnlyWhatIsDueToIt) {
  using Sound = fakes::Numbers<fakes::Cells<CellBug::none>>;
  ExplorerOptions options = thorough(Domain::memory_controller);
  options.steps = 1;
  options.nested_one_in = options.deep_one_in = std::uint64_t{1} << 62;
  Sound subject(options.domain);
  {
    Explorer explorer(subject, options);
    ASSERT_FALSE(explorer.round(1).has_value());
    options.suppressed_site = explorer.sites().uses().at(0).name;
  }
  options.suppressed_kind = Event::Kind::fence;
  Explorer explorer(subject, options);
  EXPECT_TRUE(explorer.round(1).has_value());
  EXPECT_EQ(explorer.counts().opened, 1u);

  options.suppressed_site = "src/nowhere.cc:1:1";
  Explorer nowhere(subject, options);
  EXPECT_FALSE(nowhere.round(1).has_value());
  EXPECT_EQ(nowhere.counts().opened, 0u);
}

/// With steps that only read, which have no value.
class ReadNumbers final : public fakes::Numbers<fakes::Cells<CellBug::none>> {
 public:
  using Numbers::Numbers;
  Effects effects(const Step& step, const State& state) const override {
    return step.value.empty() ? Effects() : Numbers::effects(step, state);
  }
};

// A read says something about a step under way only if nothing that was there since it began
// explains what it found: a thread may have stopped between looking and returning.
TEST(Expectation, AReadMayHaveFoundWhatWasThereWhenItBegan) {
  using Kind = Event::Kind;
  const ReadNumbers subject(Domain::memory_controller);
  enum : std::uint32_t { kAway, kBack, kRead };
  const std::vector<Call> calls = {{{0, "0", "2"}, StepResult::write(true)},
                                   {{0, "0", "1"}, StepResult::write(true)},
                                   {{0, "0", ""}, StepResult::read("1")}};
  const auto mark = [](Kind kind, std::uint32_t step) { return Event{kind, 0, 0, step, 0, 0}; };
  const State one = {{"0", "1"}}, two = {{"0", "2"}};
  for (const bool early : {true, false}) {
    Expectation expected(subject, one);
    if (early) expected.apply(mark(Kind::begin, kRead), calls, {});
    expected.apply(mark(Kind::begin, kAway), calls, {});
    expected.apply(mark(Kind::end, kAway), calls, {});
    if (!early) expected.apply(mark(Kind::begin, kRead), calls, {});
    expected.apply(mark(Kind::begin, kBack), calls, {});
    expected.apply(mark(Kind::end, kRead), calls, {});
    EXPECT_TRUE(expected.allows(digest(one)));
    EXPECT_EQ(expected.allows(digest(two)), early) << "not if only the step under way explains it";
  }
}

// The hash that tells images apart is that of their bytes, whatever way led to them.
TEST(Explorer, HashesOfImagesAreThoseOfTheirBytes) {
  std::vector<std::byte> memory(4096);
  const std::vector<std::byte> before = memory;
  for (const Domain domain : kDomains) {
    memory = before;
    CrashModel model(domain, before.data(), std::nullopt);
    detail::util::Random random(1);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t word = random.below(memory.size() / 8) * 8, kind = random.below(8);
      if (kind == 0) {
        model.apply({Event::Kind::fence, 0, 0, 0, 0, 0});
      } else if (kind == 1) {
        model.apply({Event::Kind::flush, 0, 0, 0, word, 64});
      } else {
        model.apply({Event::Kind::store, 0, 8, 0, word, random.below(4)});
      }
      for (const CrashModel::Unit* unit : model.changes())
        std::copy(unit->persisted.begin(), unit->persisted.end(), memory.begin() + unit->offset);
      ASSERT_EQ(content_hash(memory.data(), memory.size()), model.hash()) << "event " << i;
    }
  }
}

SubjectEntry entry_of(const std::string& name) {
  for (const SubjectEntry& entry : subjects()) {
    if (entry.name == name) return entry;
  }
  throw std::invalid_argument(name);
}

ExplorerOptions brief() {
  ExplorerOptions options;
  options.steps = 6;
  options.images_of_round = 60;
  return options;
}

// Equal seeds make equal pools, crashes and openings: what a command for a replay relies on.
// All that is random in persistent memory, a pool's uuid and the seed of a log, follows from the
// seed of the round, and no block is free again because of the time that has passed.
TEST(Explorer, RoundsOfAllSubjectsRepeat) {
  ExplorerOptions options = brief();
  options.images_of_round = 15;  // only their equality is looked at
  for (const SubjectEntry& entry : subjects()) {
    SCOPED_TRACE(entry.name);
    const auto subject = entry.make(Domain::memory_controller);
    Explorer explorer(*subject, options);
    ASSERT_FALSE(explorer.round(7).has_value());
    const Counts first = explorer.counts();
    ASSERT_FALSE(explorer.round(7).has_value());
    EXPECT_GT(first.images, 0u);
    EXPECT_EQ(explorer.counts().states, 2 * first.states);
    EXPECT_EQ(explorer.counts().images, first.images) << "the second time, all were known";
  }
}

// In an engine, with all layers below it, and not only in a fake map.
TEST(Explorer, FindsAndReplaysAMissingFenceInAnEngine) {
  const auto make = entry_of("sptree:u64:u64").make;
  ExplorerOptions options = brief();
  {
    const auto subject = make(Domain::memory_controller);
    Explorer explorer(*subject, options);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) ASSERT_FALSE(explorer.round(seed).has_value());
    for (const Sites::Use& use : explorer.sites().uses()) {
      if (use.name.starts_with("src/index/sptree/leaf_store.h") && use.fences > use.flushes)
        options.suppressed_site = use.name;  // the fence between a pair and its bit
    }
  }
  ASSERT_FALSE(options.suppressed_site.empty());
  options.suppressed_kind = Event::Kind::fence;
  const auto subject = make(Domain::memory_controller);
  std::optional<Failure> failure;
  for (std::uint64_t seed = 1; seed <= 50 && !failure; ++seed)
    failure = Explorer(*subject, options).round(seed);
  ASSERT_TRUE(failure.has_value());
  const auto again =
      Explorer(*make(Domain::memory_controller), options).replay(failure->seed, failure->path);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->problems, failure->problems);
}

TEST(Explorer, PathsAreReadAsTheyAreWritten) {
  EXPECT_EQ(to_string(parse_path("12:3/4:5")), "12:3/4:5");
  EXPECT_TRUE(parse_path("").empty());
  EXPECT_ANY_THROW(parse_path("12:x"));
}

}  // namespace
}  // namespace perdix::testing
