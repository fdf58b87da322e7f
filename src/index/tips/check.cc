#include "index/tips/check.h"

#include <utility>
#include <vector>

#include "index/tips/framework.h"
#include "index/tips/reach.h"
#include "index/tips/recovery.h"

namespace perdix::detail::index::tips {
namespace {

/// Pairs that a call of the plug-in has shown. They are looked up when it has returned, since it
/// may hold its lock until then.
struct ShownPairs {
  std::vector<std::pair<Word, Word>> pairs;
  bool in_order;

  static bool add(void* context, Word key, Word value) {
    constexpr std::size_t kAtOnce = 128;
    auto& shown = *static_cast<ShownPairs*>(context);
    shown.pairs.emplace_back(key, value);
    return !shown.in_order || shown.pairs.size() < kAtOnce;
  }
};

/// Calls use(key, value) for the pairs that scans show, until it returns false.
template <class Use>
void for_each_shown(const Guest& guest, const Use& use) {
  const bool ordered = guest.facts().ordered;
  ShownPairs shown{{}, ordered};
  Word last = 0;
  for (std::uint64_t position = 0;; shown.pairs.clear()) {
    const bool begins = position == 0;
    if (ordered)
      guest.scan(begins ? nullptr : &last, &shown, ShownPairs::add);
    else
      position = guest.walk(position, &shown, ShownPairs::add);
    // A scan that goes on begins with the last pair of the one before.
    const std::size_t known = ordered && !begins ? 1 : 0;
    for (std::size_t i = known; i < shown.pairs.size(); ++i)
      if (!use(shown.pairs[i].first, shown.pairs[i].second)) return;
    if (ordered ? shown.pairs.size() <= known : position == 0) return;
    if (ordered) last = shown.pairs.back().first, position = 1;
  }
}

/// Of an index that was inspected: asks it as a user does.
void check_lookups(const Guest& guest, std::uint64_t size, Problems& problems) {
  std::uint64_t shown = 0, missed = 0;
  for_each_shown(guest, [&](Word key, Word value) {
    Word found = 0;
    if (!guest.find(key, &found) || found != value) ++missed;
    return ++shown <= size;  // one that shows pairs twice may not end
  });
  guest.report();
  problems.expect(missed == 0,
                  "{} pairs that a scan of the plugged-in index '{}' shows are not what a lookup "
                  "of their keys finds",
                  missed, guest.facts().name);
  problems.expect(shown == size,
                  "a scan of the plugged-in index '{}' shows {}{} pairs, {} are counted",
                  guest.facts().name, shown > size ? "at least " : "", shown, size);
}

}  // namespace

void check_plugged(pool::PoolCore& pool, const Guest& guest, CheckReport& report,
                   Problems& problems) {
  Reach reach(pool, guest.kinds());
  problems.expect(guest.inspect(reach),
                  "the plugged-in index '{}' contradicts itself, or leads to memory that is not "
                  "its own (T4)",
                  guest.facts().name);
  const std::uint64_t size = guest.size();
  problems.expect(reach.pairs() == size, "{} pairs are counted, {} are there", size, reach.pairs());
  if (report.ok()) check_lookups(guest, size, problems);
  report.pairs = reach.pairs();
  report.blocks = reach.blocks();
}

void check_logs(pool::PoolCore& pool, std::uint64_t& root, CheckReport& report,
                const pool::BlockVisitor& visit) {
  if (pm::load(root) == pm::kNull) return;
  Framework framework(pool, root, header_at(pool, pm::load(root)));
  framework.logs.recover([](const LoggedWrite&) {});  // finds the rings
  Problems problems(report);
  framework.uno.check(problems);
  ShownBlocks shown(visit);
  framework.walk(shown);
}

}  // namespace perdix::detail::index::tips
