// Verification of every invariant that layout.h states, W1-W6, and of DRAM against PM.
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include <perdix/error.h>

#include "wal/log.h"

namespace perdix::detail::wal {
namespace {

/// Collects sentences, a hundred at most: a damaged log can have millions of problems.
void expect(CheckReport& report, bool holds, std::string problem) {
  constexpr std::size_t kMaxProblems = 100;
  if (!holds && report.problems.size() < kMaxProblems)
    report.problems.push_back(std::move(problem));
}

void check_stripe(const Stripe& stripe, unsigned number, Position found_tail, CheckReport& report) {
  const Segments& segments = stripe.segments();
  expect(report, found_tail == stripe.tail(),
         fmt::format("log stripe {}: the tail is {:#x}, but valid records end at {:#x} (W2)",
                     number, stripe.tail(), found_tail));
  expect(report, !segments.has_stray_words(),
         fmt::format("log stripe {}: a segment belongs to no position (W3)", number));
  expect(report, stripe.checkpointed() >= segments.start(),
         fmt::format("log stripe {}: records behind the checkpoint are reclaimed (W5)", number));
}

}  // namespace

void Log::check(CheckReport& report) const {
  try {
    require_distinct_blocks();
    // As a restart would find it.
    Survivors found(pool_, header_, rings());
    for (unsigned i = 0; i < kStripes; ++i) check_stripe(stripes_[i], i, found.scan(i), report);
    check_heads(found, report);
  } catch (const Error& error) {
    expect(report, false, error.what());
  }
}

/// Checks that a restart would find the open chains (W4), and all of their records (W1, W5).
void Log::check_heads(const Survivors& found, CheckReport& report) const {
  std::unordered_map<Owner, const Chain*> open;
  std::array<std::uint64_t, kStripes> needed{};
  for (const Chain* chain = known_.load(std::memory_order_acquire); chain != nullptr;
       chain = chain->known_) {
    const Owner owner = chain->owner.load(std::memory_order_relaxed);
    const Position head = chain->head.load(std::memory_order_relaxed);
    if (head == 0) continue;
    const Position first = chain->first.load(std::memory_order_relaxed);
    needed.at(stripe_of_position(first)) += 1u + chain->sure;
    expect(report, open.emplace(owner, chain).second,
           fmt::format("log: two chains belong to owner {}", owner));
    expect(
        report, found.find(owner) == head,
        fmt::format("log: the newest record of owner {} is {:#x}, a restart would find {:#x} (W4)",
                    owner, head, found.find(owner)));
    Position last = 0;
    follow(owner, head, [&](Type, Word, Word, Position at) {
      last = at;
      const bool behind = at >= generations_.marks().at(chain->generation_, stripe_of_position(at));
      expect(report, behind || resuming(),
             fmt::format("log: a record of owner {} lies before its generation's mark", owner));
    });
    expect(report, last == first,
           fmt::format("log: the chain of owner {} ends at {:#x} (W1, W5)", owner, last));
  }
  for (unsigned i = 0; i < kStripes; ++i) {
    expect(report, stripes_[i].has_promised_room(needed[i]),
           fmt::format("log stripe {}: not all chains that began there can be ended (W6)", i));
  }
  found.for_each([&](Owner owner, Position head) {
    // Before resumed() there are chains that were not adopted yet.
    const bool known = open.contains(owner) || resuming();
    expect(report, known && at(owner, head).has_value(),
           fmt::format("log: a restart would find a chain of owner {} (W4)", owner));
  });
}

}  // namespace perdix::detail::wal
