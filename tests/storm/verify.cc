#include "storm/verify.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "support/compare.h"

namespace perdix::test::storm {
namespace {

/// Counts the pairs that must be there.
std::uint64_t compare_keys(OpenIndex& index, Seat& seat) {
  std::uint64_t there = 0;
  for (std::uint32_t number = 0; number < index.plan.count; ++number) {
    const Call marked(seat, "get, to compare");
    Cell& cell = index.model.cells[number];
    const Snapshot before = cell.load();
    const Found found = version_of(index, number, index.index.get(index.key(number)));
    require(cell.decide(found),
            fmt::format("{}: key {} {} has {}, but the last acknowledged state is {}", title(index),
                        number, show(index.key(number)), show(found), show(before)));
    there += found.has_value() ? 1 : 0;
  }
  return there;
}

void compare_scan(OpenIndex& index, std::uint64_t expected, Seat& seat) {
  std::uint64_t shown = 0;
  std::optional<Datum> last;
  const Call marked(seat, "scan, to compare");
  const bool ordered = index.index.ordered();
  index.index.visit_all([&](DatumView key, DatumView value) {
    const auto tag = index.plan.values.read(value);
    require(tag.has_value() && tag->key < index.plan.count + kHotKeys &&
                index.key(tag->key) == key.copy(),
            fmt::format("{}: a scan shows {} with a value that is not its own", title(index),
                        show(key)));
    require(!ordered || !last || *last < key,
            fmt::format("{}: a scan shows {} behind {}", title(index), show(key),
                        last ? show(*last) : ""));
    last = key.copy();
    if (tag->key < index.plan.count) {
      const State state = index.model.cells[tag->key].load().decided;
      require(state == State{tag->version, true},
              fmt::format("{}: a scan shows version {} of {}, which has {}", title(index),
                          tag->version, show(key), show(state)));
    }
    // Marked anew, since a scan of millions takes its time.
    if (++shown % 1024 == 0) seat.since = now();
    return true;
  });
  require(shown == expected,
          fmt::format("{}: a scan shows {} pairs, get() finds {}", title(index), shown, expected));
}

std::uint64_t hot_there(OpenIndex& index, Seat& seat) {
  std::uint64_t there = 0;
  for (std::uint32_t i = 0; i < kHotKeys; ++i) {
    const std::uint32_t number = index.plan.count + i;
    const Call marked(seat, "get, to compare");
    const Found found = version_of(index, number, index.index.get(index.key(number)));
    require(index.model.hot[i].decide(found),
            fmt::format("{}: hot key {} {} has {}, which is the last effect of no writer",
                        title(index), i, show(index.key(number)), show(found)));
    there += found.has_value() ? 1 : 0;
  }
  return there;
}

}  // namespace

Found version_of(const OpenIndex& index, std::uint32_t number, const std::optional<Datum>& value) {
  if (!value) return std::nullopt;
  const auto tag = index.plan.values.read(*value);
  require(tag.has_value() && tag->key == number,
          fmt::format("{}: key {} {} has a damaged value or that of another key", title(index),
                      number, show(index.key(number))));
  return tag->version;
}

std::string title(const OpenIndex& index) {
  return fmt::format("{} ({} {}, {} keys {})", index.plan.name, index.plan.type->engine,
                     index.plan.type->kinds(), index.plan.count, name_of(index.plan.keys.shape));
}

void settle_hot(OpenIndex& index, Seat& seat) { hot_there(index, seat); }

void compare_all(OpenIndex& index, Seat& seat) {
  const std::uint64_t there = compare_keys(index, seat) + hot_there(index, seat);
  compare_scan(index, there, seat);
  const Call marked(seat, "size and check");
  const std::uint64_t size = index.index.size();
  require(size == there,
          fmt::format("{}: size() is {}, but {} keys are there", title(index), size, there));
  const CheckReport report = index.index.check();
  require(report.ok(), title(index) + ": check(): " + problems_of(report));
}

void note_unfinished_drops(const Pool& pool, unsigned number, bool struck, Board& board) {
  if (board.drop_unfinished[number]) return;
  const std::vector<UnfinishedDrop> drops = pool.info().unfinished_drops;
  if (drops.empty()) return;
  require(struck, fmt::format("the drop of {} is left unfinished ({}), and no call had failed",
                              drops.front().index.name, drops.front().why));
  board.drop_unfinished[number] = true;
}

// Each unfinished drop is one of the problems.
void check_pool(Pool& pool, unsigned number, Board& board) {
  const Call marked(board.seats[0], "Pool::check");
  const CheckReport report = pool.check();
  const std::size_t explained =
      board.drop_unfinished[number] ? pool.info().unfinished_drops.size() : 0;
  require(report.problems.size() <= explained, "Pool::check(): " + problems_of(report));
}

}  // namespace perdix::test::storm
