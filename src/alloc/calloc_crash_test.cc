// Crashes the allocator at sampled events of random operations, in all ways that the persistence
// model allows, opens what is left, and crashes that recovery again. Only in the instrumented
// build.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "alloc/calloc.h"
#include "alloc/test_crash.h"
#include "alloc/test_space.h"
#include "epoch/guard.h"

namespace perdix::detail::alloc {
namespace {

constexpr unsigned kLinks = 24;
constexpr unsigned kWords = 2 * kLinks;  // links, and a word beside each that changes with it
constexpr std::uint64_t kSpaceSize = 256 * kMiB;

using Words = std::map<unsigned, std::uint64_t>;

/// What may be in the pool after a crash now.
struct Expected {
  struct Operation {
    Words before;
    Words after;
    bool may_be_undone = true;
    bool may_be_done = true;
  };
  std::array<std::uint64_t, kWords> words{};
  std::map<unsigned, Operation> running;  // by a number
};

struct Plan {
  std::uint64_t seed;
  unsigned operations = 150;
  unsigned work_sampling = 8;       // a crash comes once in this many events
  unsigned recovery_sampling = 40;  // of each recovery
  bool readers = false;             // a reader prevents that freed blocks are used again
  std::uint64_t disk = kSpaceSize;
  bool small_pool = false;  // nearly full
};

struct Counts {
  std::uint64_t crashes = 0;
  std::uint64_t crashes_in_recovery = 0;
  std::uint64_t out_of_space = 0;
  std::vector<std::string> violations;
};

class Campaign {
 public:
  explicit Campaign(const Plan& plan)
      : plan_(plan),
        random_(plan.seed),
        work_(kSpaceSize, pm::Domain::memory_controller),
        image_(kSpaceSize, pm::Domain::memory_controller),
        second_image_(kSpaceSize, pm::Domain::memory_controller),
        tracker_(work_.base(), kSpaceSize, [this] { on_work(); }),
        image_tracker_(image_.base(), kSpaceSize, [this] { on_recovery(); }),
        second_tracker_(second_image_.base(), kSpaceSize, [] {}) {
    work_.set_limit(plan.disk);
  }

  Counts run() {
    const TrackingProbe::Scope scope(probe_, tracker_);
    Calloc::format(work_);
    Calloc calloc(work_);
    calloc_ = &calloc;
    if (plan_.small_pool) fill();
    std::optional<epoch::Guard> guard;
    if (plan_.readers) guard.emplace();
    sampling_ = true;
    for (unsigned i = 0; i < plan_.operations && counts_.violations.empty(); ++i) step();
    while (!running_.empty()) advance(random_.below(running_.size()));
    sampling_ = false;
    return counts_;
  }

 private:
  struct Running {
    unsigned number;
    Session session;
    unsigned stage = 0;
    unsigned kind = 0;
    unsigned link = 0;
    unsigned other = 0;
    Offset block = 0;
    Offset second_block = 0;
  };

  enum Kind : unsigned {
    kAllocate,
    kFree,
    kReplace,
    kTwo,
    kByRecord,
    kWithUndo,
    kCancel,
    kAbandon,
    kKinds
  };

  // --- The operations
  // -----------------------------------------------------------------------------

  /// Leaves only a few spans, all of them in a lane's ring, to blocks of other sizes.
  void fill() {
    for (;;) {
      try {
        Session session = calloc_->session();
        const Offset block = session.reserve(30'000);
        session.log();
        session.finish();
        fillers_.push_back(block);
      } catch (const Error&) {
        break;
      }
    }
    for (unsigned i = 0; i < 40; ++i) {
      deallocate(*calloc_, fillers_.back());
      fillers_.pop_back();
    }
    work_.reclaimer().advance();
  }

  void step() {
    if (!plan_.readers && random_.one_in(4)) {
      sampling_ = false;
      work_.reclaimer().advance();
      sampling_ = true;
    }
    if (running_.size() < 3 && !random_.one_in(3)) {
      start();
    } else if (!running_.empty()) {
      advance(random_.below(running_.size()));
    }
  }

  std::size_t random_size() {
    constexpr std::array<std::size_t, 12> kSizes = {16,   64,   64,    100,   1120,   1120,
                                                    1120, 5000, 30000, 40000, 200000, 17 * kMiB};
    std::size_t size = kSizes[random_.below(kSizes.size())];
    if (size > kMiB && !random_.one_in(3)) size = 1120;
    return size;
  }

  bool busy(unsigned link) const {
    return std::any_of(running_.begin(), running_.end(), [&](const auto& running) {
      return running->link == link || running->other == link;
    });
  }

  unsigned free_link() {
    for (;;) {
      const auto link = static_cast<unsigned>(random_.below(kLinks));
      if (!busy(link)) return link;
    }
  }

  std::uint64_t& word(unsigned i) { return root(work_, i); }
  std::uint64_t value(unsigned i) const { return expected_.words[i]; }

  Offset new_block(Session& session, unsigned link) {
    const Offset block = session.reserve(random_size());
    // Its first word says whose it is; log() makes that durable.
    std::uint64_t& tag = work_.at<std::uint64_t>(block);
    work_.pm().store(tag, tag_of(link, block));
    work_.pm().flush(&tag, sizeof tag);
    return block;
  }
  static std::uint64_t tag_of(unsigned link, Offset block) { return block * 1000 + link + 1; }

  void start() {
    auto next = std::make_unique<Running>(Running{next_number_++, calloc_->session()});
    next->link = free_link();
    next->other = next->link;
    const bool linked = value(next->link) != 0;
    next->kind = static_cast<unsigned>(random_.below(kKinds));
    if (next->kind == kAllocate && linked) next->kind = kReplace;
    if (next->kind == kFree && !linked) next->kind = kAllocate;
    while (next->kind == kTwo && next->other == next->link) next->other = free_link();
    Expected::Operation operation;
    try {
      prepare(*next, operation);
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      ++counts_.out_of_space;
      return;
    }
    if (next->kind == kAbandon) return;
    for (const auto& [i, after] : operation.after) operation.before[i] = value(i);
    operation.may_be_done = next->kind != kCancel;
    Expected::Operation& running = expected_.running.emplace(next->number, operation).first->second;
    next->session.log();
    running.may_be_undone = next->kind != kByRecord;
    next->stage = 1;
    running_.push_back(std::move(next));
  }

  void prepare(Running& next, Expected::Operation& operation) {
    Session& session = next.session;
    if (next.kind != kFree) next.block = new_block(session, next.link);
    if (next.kind == kTwo) next.second_block = new_block(session, next.other);
    if (const Offset old = value(next.link) & kOffsetMask; old != 0) session.free(old);
    if (next.kind == kTwo && value(next.other) != 0) session.free(value(next.other) & kOffsetMask);

    // The upper bits of a link belong to the test: they change too, but don't decide.
    const std::uint64_t linked = next.block | (next.block != 0 ? random_.below(1 << 16) << 48 : 0);
    operation.after[next.link] = linked;
    if (next.kind == kByRecord) {
      session.redo(word(next.link), linked);
    } else {
      session.commit_when(word(next.link), kOffsetMask, next.block);
    }
    if (next.kind == kTwo) {
      operation.after[next.other] = next.second_block;
      session.redo(word(next.other), next.second_block);
    }
    if (next.kind == kWithUndo) {
      operation.after[kLinks + next.link] = linked ^ 1;
      session.undo(word(kLinks + next.link), value(kLinks + next.link));
    }
  }

  void advance(std::size_t i) {
    Running& running = *running_[i];
    const pm::Persister& pm = work_.pm();
    Expected::Operation& operation = expected_.running[running.number];
    if (running.kind == kCancel) {
      running.session.cancel();
      return end(i, operation.before);
    }
    if (running.stage == 1) {
      running.stage = 2;
      if (running.kind == kWithUndo) {
        std::uint64_t& beside = word(kLinks + running.link);
        pm.store(beside, operation.after[kLinks + running.link]);
        pm.persist(&beside, sizeof beside);
      }
      if (running.kind == kByRecord) {
        pm.store(word(running.link), operation.after[running.link]);
        pm.flush(&word(running.link), sizeof(std::uint64_t));
        return;
      }
      pm.publish(word(running.link), operation.after[running.link]);
      operation.may_be_undone = false;
      if (running.kind == kTwo) {
        pm.store(word(running.other), running.second_block);
        pm.flush(&word(running.other), sizeof(std::uint64_t));
      }
      return;
    }
    running.session.finish();
    end(i, operation.after);
  }

  void end(std::size_t i, const Words& words) {
    for (const auto& [number, word_value] : words) expected_.words[number] = word_value;
    expected_.running.erase(running_[i]->number);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // --- The crashes
  // --------------------------------------------------------------------------------

  void on_work() {
    if (!sampling_ || !random_.one_in(plan_.work_sampling)) return;
    sampling_ = false;
    ++counts_.crashes;
    const auto loss = static_cast<Loss>(random_.below(kLosses));
    tracker_.make_image(image_.base(), image_written_, loss, random_);
    image_.set_size(work_.size());
    image_tracker_.adopt(image_written_);
    examine(image_, image_tracker_, true);
    image_written_.insert(image_tracker_.pages().begin(), image_tracker_.pages().end());
    sampling_ = true;
  }

  void on_recovery() {
    if (!recovery_sampling_ || !random_.one_in(plan_.recovery_sampling)) return;
    recovery_sampling_ = false;
    ++counts_.crashes_in_recovery;
    const auto loss = static_cast<Loss>(random_.below(kLosses));
    image_tracker_.make_image(second_image_.base(), second_written_, loss, random_);
    second_image_.set_size(image_.size());
    second_tracker_.adopt(second_written_);
    examine(second_image_, second_tracker_, false);
    second_written_.insert(second_tracker_.pages().begin(), second_tracker_.pages().end());
    recovery_sampling_ = true;
  }

  void examine(TestSpace& space, CrashTracker& tracker, bool crash_again) {
    const TrackingProbe::Scope scope(probe_, tracker);
    try {
      recovery_sampling_ = crash_again;
      Calloc calloc(space);
      recovery_sampling_ = false;
      verify(space, calloc);
      use(calloc);
    } catch (const Error& error) {
      recovery_sampling_ = false;
      violate(std::string("it can't be opened: ") + error.what());
    }
  }

  void violate(const std::string& what) { counts_.violations.push_back(what); }

  void verify(const TestSpace& space, const Calloc& calloc) {
    CheckReport report;
    calloc.check(report);
    for (const std::string& problem : report.problems) violate(problem);
    verify_words(space);
    verify_blocks(space, calloc);
  }

  void verify_words(const TestSpace& space) {
    std::array<bool, kWords> seen{};
    for (const auto& [number, operation] : expected_.running) {
      const auto all = [&](const Words& words) {
        return std::all_of(words.begin(), words.end(),
                           [&](const auto& w) { return root(space, w.first) == w.second; });
      };
      const bool undone = operation.may_be_undone && all(operation.before);
      const bool done = operation.may_be_done && all(operation.after);
      if (!undone && !done) violate("an operation happened in part");
      for (const auto& [i, word] : operation.after) seen[i] = true;
    }
    for (unsigned i = 0; i < kWords; ++i) {
      if (!seen[i] && root(space, i) != value(i)) violate("a word has another value");
    }
  }

  void verify_blocks(const TestSpace& space, const Calloc& calloc) {
    std::vector<Offset> linked = fillers_;
    for (unsigned i = 0; i < kLinks; ++i) {
      const Offset block = root(space, i) & kOffsetMask;
      if (block == 0) continue;
      linked.push_back(block);
      if (!calloc.validate_block(block, 1)) violate("a linked block is not allocated");
      if (space.at<std::uint64_t>(block) != tag_of(i, block)) {
        std::ostringstream out;
        out << "block " << std::hex << block << " of link " << std::dec << i << " holds "
            << space.at<std::uint64_t>(block) << " instead of " << tag_of(i, block);
        violate(out.str());
      }
    }
    std::sort(linked.begin(), linked.end());
    std::vector<Offset> allocated;
    calloc.for_each_allocated([&](Offset block, std::uint64_t) { allocated.push_back(block); });
    if (allocated == linked) return;
    std::ostringstream out;
    out << std::hex << "linked:";
    for (const Offset block : linked) out << ' ' << block;
    out << "; allocated:";
    for (const Offset block : allocated) out << ' ' << block;
    violate(out.str());
  }

  /// Allocates and frees in what a crash left: nothing may be given out twice or be lost.
  void use(Calloc& calloc) {
    std::map<Offset, std::uint64_t> blocks;
    calloc.for_each_allocated([&](Offset block, std::uint64_t size) { blocks[block] = size; });
    const std::size_t before = blocks.size();
    std::vector<Offset> own;
    for (const std::size_t size : {16, 1120, 1120, 40000}) {
      try {
        own.push_back(allocate(calloc, size));
      } catch (const Error& error) {
        if (error.code() != Errc::out_of_space) throw;
        continue;
      }
      const auto [it, fresh] = blocks.emplace(own.back(), calloc.block_size(own.back()));
      const auto next = std::next(it);
      if (!fresh || it->second < size ||
          (next != blocks.end() && it->first + it->second > next->first) ||
          (it != blocks.begin() && std::prev(it)->first + std::prev(it)->second > it->first)) {
        violate("a block was given out twice");
      }
    }
    for (const Offset block : own) deallocate(calloc, block);
    std::size_t after = 0;
    calloc.for_each_allocated([&](Offset, std::uint64_t) { ++after; });
    if (after != before) violate("blocks leaked after recovery");
  }

  Plan plan_;
  util::Random random_;
  TestSpace work_;
  TestSpace image_;
  TestSpace second_image_;
  TrackingProbe probe_;
  CrashTracker tracker_;
  CrashTracker image_tracker_;
  CrashTracker second_tracker_;
  std::set<std::size_t> image_written_;
  std::set<std::size_t> second_written_;

  Calloc* calloc_ = nullptr;
  std::vector<std::unique_ptr<Running>> running_;
  unsigned next_number_ = 0;
  std::vector<Offset> fillers_;  // allocated and not linked
  Expected expected_;
  bool sampling_ = false;
  bool recovery_sampling_ = false;
  Counts counts_;
};

std::uint64_t rounds() {
  const char* rounds = std::getenv("PERDIX_CRASH_ROUNDS");
  return rounds != nullptr ? std::strtoull(rounds, nullptr, 10) : 12;
}

/// One plan with many seeds.
void expect_no_violations(Plan plan) {
  Counts total;
  for (std::uint64_t i = 0; i < rounds(); ++i) {
    plan.seed = plan.seed + 1;
    const Counts counts = Campaign(plan).run();
    total.crashes += counts.crashes;
    total.crashes_in_recovery += counts.crashes_in_recovery;
    total.out_of_space += counts.out_of_space;
    ASSERT_TRUE(counts.violations.empty())
        << "seed " << plan.seed << ": " << ::testing::PrintToString(counts.violations);
  }
  std::cout << "crashes " << total.crashes << ", in recovery " << total.crashes_in_recovery
            << ", out of space " << total.out_of_space << '\n';
  EXPECT_GT(total.crashes, 0U);
  EXPECT_GT(total.crashes_in_recovery, 0U);
}

Plan usual_plan() { return {.seed = 1000}; }

Plan full_ring_plan() {
  Plan plan{.seed = 2000};
  plan.readers = true;
  plan.operations = 1500;
  plan.work_sampling = 80;
  plan.recovery_sampling = 1000;
  return plan;
}

Plan small_pool_plan() {
  Plan plan{.seed = 3000};
  plan.small_pool = true;
  plan.disk = kChunkSize;
  return plan;
}

TEST(CallocCrash, NothingIsLostOrGivenOutTwice) { expect_no_violations(usual_plan()); }
TEST(CallocCrash, NorWithAFullRing) { expect_no_violations(full_ring_plan()); }
TEST(CallocCrash, NorInAFullPool) { expect_no_violations(small_pool_plan()); }

}  // namespace
}  // namespace perdix::detail::alloc
