#include "storm/client.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "storm/descriptors.h"
#include "storm/faults.h"
#include "storm/verify.h"
#include "support/compare.h"

namespace perdix::test::storm {
namespace {

/// What a visitor throws; the scan must hand it on.
struct ThrownByVisitor {};

constexpr unsigned kFullCalls = 12;            // then the pool counts as full
constexpr unsigned kRefusals = 1000;           // of a pool that lost its descriptor: enough
constexpr std::uint64_t kFaultInterval = 24;   // calls that fail, where all may
constexpr std::uint64_t kCountInterval = 256;  // operations between additions to the board
constexpr std::uint32_t kFewKeys = 8;

/// Ends the step of a client whose pool has just failed by the sync of another thread.
struct PoolFailed {};

/// A literal, as Call wants it.
const char* name_of_call(Op op) { return to_string(op).data(); }

}  // namespace

Outcome attempt(const char* name, const std::function<void()>& call) {
  descriptors::begin_call();
  Outcome outcome;
  try {
    call();
  } catch (const Error& error) {
    const faults::Spared spared;
    outcome = {true, false, error.code(), error.what()};
  } catch (const Finding&) {
    throw;
  } catch (const std::exception& error) {
    const faults::Spared spared;
    if (faults::accepts_bad_alloc() && dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
      return {true, false, Errc::out_of_space, error.what()};
    throw Finding(
        fmt::format("{} threw something that is no perdix::Error: {}", name, error.what()));
  }
  return outcome;
}

std::string Client::name(const OpenIndex& index, std::uint32_t number) const {
  return fmt::format("{} ({} {}), key {} {}", index.plan.name, index.plan.type->engine,
                     index.plan.type->kinds(), number, show(index.key(number)));
}

std::uint32_t Client::owned(const OpenIndex& index) const {
  if (index.plan.count <= share_.first) return 0;
  return (index.plan.count - share_.first + share_.stride - 1) / share_.stride;
}

std::uint32_t Client::in_order(std::uint32_t nth, std::uint32_t count) const {
  switch (step_.order) {
    case Order::ascending: return nth;
    case Order::descending: return count - 1 - nth;
    case Order::random: break;
  }
  // A walk with a stride that has no divisor in common with the count meets each number once.
  std::uint64_t stride = count * std::uint64_t{61'803} / 100'000 + 1;
  while (std::gcd(stride, std::uint64_t{count}) != 1) ++stride;
  return static_cast<std::uint32_t>((nth * stride + writer_) % count);
}

Outcome Client::call(OpenIndex& index, const char* name, const std::function<void()>& body) {
  if (++operations_ % kCountInterval == 0) board_.counters.operations += kCountInterval;
  // Few calls map memory, allocate space or start threads, so each is armed.
  const bool often = step_.fault == Fault::memory || step_.fault == Fault::sync;
  if (step_.fault == Fault::none || depth_ != 0 || (often && !rng_.once_in(kFaultInterval))) {
    const Call marked(seat_, name);
    return attempt(name, body);
  }
  const unsigned nth = static_cast<unsigned>(!often || rng_.once_in(2) ? 1 : rng_.between(1, 12));
  const bool lasting = step_.fault != Fault::memory && rng_.once_in(2);
  const Call marked(seat_, name);
  const faults::Armed armed(step_.fault, nth, lasting);
  Outcome outcome = attempt(name, body);
  outcome.struck = armed.struck();
  if (outcome.struck) {
    ++board_.counters.injected;
    if (step_.fault == Fault::sync) board_.sick[index.plan.pool] = true;
  }
  return outcome;
}

bool Client::may_throw(const OpenIndex& index, Op op, const Outcome& outcome) const {
  if (outcome.struck || sick(index) || board_.others_armed.load()) return true;
  // The sync of another thread may have failed just now.
  if (step_.fault == Fault::sync && outcome.code == Errc::io_error) return true;
  const bool changes = op != Op::get && op != Op::scan;
  if (board_.descriptor_lost[index.plan.pool] && changes && outcome.code == Errc::io_error)
    return true;
  const bool needs_space = op == Op::put || op == Op::insert || op == Op::update;
  return index.pool_plan.tight && needs_space && outcome.code == Errc::out_of_space;
}

// The sync of another thread may have failed, too.
void Client::note_failed_sync(const OpenIndex& index, const Outcome& outcome) {
  if (step_.fault == Fault::sync && outcome.code == Errc::io_error)
    board_.sick[index.plan.pool] = true;
}

Found Client::find(OpenIndex& index, std::uint32_t number) {
  const Call marked(seat_, "get");
  try {
    return version_of(index, number, index.index.get(index.key(number)));
  } catch (const Error& error) {
    if (depth_ != 0 || step_.fault != Fault::sync || error.code() != Errc::io_error) throw;
    board_.sick[index.plan.pool] = true;
    throw PoolFailed();
  }
}

void Client::settle(OpenIndex& index, std::uint32_t number) {
  Cell& cell = index.model.cells[number];
  const Snapshot now = cell.load();
  if (!now.in_flight) return;
  const Found found = find(index, number);
  require(cell.decide(found),
          fmt::format("{}: {}, after {}", name(index, number), show(found), show(now)));
}

/// Counts such a change as an operation: what it would say was said often, and throwing is slow.
bool Client::passes_over(const OpenIndex& index) {
  const bool enough = board_.descriptor_lost[index.plan.pool] && refusals_ >= kRefusals;
  if (enough) ++operations_;
  return enough;
}

void Client::write(OpenIndex& index, std::uint32_t number, Op op) {
  if (passes_over(index)) return;
  Cell& cell = index.model.cells[number];
  if (cell.load().in_flight) {
    // Within a visitor it may be the call around it; in a sick pool it stays open until a reopen.
    if (depth_ != 0 || sick(index)) return;
    settle(index, number);
  }
  const State before = cell.load().decided;
  const State next = {before.version + 1, op != Op::erase};
  const Datum key = index.key(number);
  const Datum value = index.plan.values({number, next.version});
  bool result = true;
  const bool effect = op == Op::put || before.present == (op != Op::insert);
  if (effect) cell.begin(next);
  const Outcome outcome =
      call(index, name_of_call(op), [&] { result = make_change(index.index, op, key, value); });
  if (outcome.threw) return after_failure(index, number, op, outcome);
  full_ = 0;
  require(result == effect,
          fmt::format("{}: {}() returned {}, but the key was {}", name(index, number),
                      name_of_call(op), result, show(before)));
  if (effect) cell.finish();
}

void Client::after_failure(OpenIndex& index, std::uint32_t number, Op op, const Outcome& outcome) {
  const auto what = [&] {
    return fmt::format("{}: {}() threw {} ({})", name(index, number), name_of_call(op),
                       to_string(outcome.code), outcome.text);
  };
  require(may_throw(index, op, outcome), what() + " without a reason");
  ++board_.counters.failed_calls;
  if (outcome.code == Errc::out_of_space) ++full_;
  if (board_.descriptor_lost[index.plan.pool]) ++refusals_;
  note_failed_sync(index, outcome);
  if (sick(index)) {  // undecided until the pool is opened again
    if (outcome.struck) expect_refusal(index, number);
    return;
  }
  Cell& cell = index.model.cells[number];
  const State before = cell.load().decided;
  const Found found = find(index, number);
  require(
      Snapshot{before, std::nullopt}.allows(found),
      fmt::format("{}, but the key is changed: {}, before {}", what(), show(found), show(before)));
  require(!cell.load().seen, what() + ", but a reader has seen its effect");
  cell.cancel();
}

// Behind a failed sync: no state that may not be durable is served, and nothing is acknowledged.
void Client::expect_refusal(OpenIndex& index, std::uint32_t number) {
  const Call marked(seat_, "a call behind a failed sync");
  const State before = index.model.cells[number].load().decided;
  const Datum key = index.key(number);
  std::optional<Datum> value;
  if (!attempt("get", [&] { value = index.index.get(key); }).threw) {
    const Found found = version_of(index, number, value);
    require(
        Snapshot{before, std::nullopt}.allows(found),
        fmt::format("{}: a sync failed, the call threw, and get() serves its effect: {}, before {}",
                    name(index, number), show(found), show(before)));
  }
  const Datum other = index.plan.values({number, before.version + 2});
  require(
      attempt("put", [&] { index.index.put(key, other); }).threw,
      name(index, number) + ": a sync failed, the call threw, and the next put() is acknowledged");
}

void Client::write_hot(OpenIndex& index, std::uint32_t hot, Op op) {
  if (passes_over(index)) return;
  HotCell& cell = index.model.hot[hot];
  const std::uint32_t number = index.plan.count + hot;
  const State next = cell.next(op != Op::erase);
  const Datum key = index.key(number);
  const Datum value = index.plan.values({number, next.version});
  bool result = true;
  cell.begin(writer_, next);
  const Outcome outcome =
      call(index, name_of_call(op), [&] { result = make_change(index.index, op, key, value); });
  if (outcome.threw) {
    require(may_throw(index, op, outcome),
            fmt::format("{}: {}() threw {} without a reason ({})", name(index, number),
                        name_of_call(op), to_string(outcome.code), outcome.text));
    if (outcome.code == Errc::out_of_space) ++full_;
    note_failed_sync(index, outcome);
    if (!sick(index)) cell.cancel(writer_);
    return;
  }
  full_ = 0;
  result ? cell.finish(writer_) : cell.cancel(writer_);
  const Found found = sick(index) ? Found{} : find(index, number);
  require(cell.may_have(found), name(index, number) + " has a value that was never written");
}

void Client::read(OpenIndex& index, std::uint32_t number) {
  Cell& cell = index.model.cells[number];
  const Snapshot before = cell.load();
  Found found;
  const Datum key = index.key(number);
  const Outcome outcome = call(index, "contains", [&] { index.index.contains(key); });
  if (outcome.threw || sick(index)) {
    require(!outcome.threw || may_throw(index, Op::get, outcome),
            name(index, number) + ": contains() threw " + outcome.text);
    return;
  }
  found = find(index, number);
  const Snapshot behind = cell.load();
  require(allows(before, behind, found),
          fmt::format("{}: get() found {}; before the call: {}{}", name(index, number), show(found),
                      show(before.decided), before.in_flight ? " and a call in flight" : ""));
  cell.see(found);
}

void Client::read_many(OpenIndex& index) {
  std::vector<std::uint32_t> numbers;
  std::vector<Datum> keys;
  std::vector<Snapshot> before;
  for (unsigned i = 0; i < 16; ++i) {
    numbers.push_back(static_cast<std::uint32_t>(rng_.below(index.plan.count)));
    keys.push_back(index.key(numbers.back()));
    before.push_back(index.model.cells[numbers.back()].load());
  }
  const Call marked(seat_, "get_many");
  const auto values = index.index.get_many(keys);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Found found = version_of(index, numbers[i], values[i]);
    require(allows(before[i], index.model.cells[numbers[i]].load(), found),
            fmt::format("{}: get_many() found {}; before the call: {}", name(index, numbers[i]),
                        show(found), show(before[i].decided)));
  }
}

void Client::scan(OpenIndex& index, std::uint32_t from) {
  std::optional<Datum> last;
  std::uint64_t left = rng_.between(1, step_.visitors ? 300 : 60);
  const Datum start = index.key(from);
  const bool ordered = index.index.ordered();
  bool thrown = false;
  const ShowPair visitor = [&](DatumView key, DatumView value) {
    const faults::Spared spared;
    require(!ordered || !(key < start), "a scan shows a key below its start: " + show(key));
    require(!ordered || !last || *last < key, "the keys of a scan don't ascend: " + show(key));
    last = key.copy();
    visit(index, *last, value);
    if (step_.visitors && depth_ == 0 && rng_.once_in(40)) {
      thrown = rng_.once_in(6);
      if (thrown) throw ThrownByVisitor();
      misbehave(index);
    }
    return --left > 0;
  };
  try {
    const Outcome outcome = call(index, "scan", [&] {
      ordered ? index.index.scan(start, visitor) : index.index.for_each(visitor);
    });
    require(!outcome.threw || may_throw(index, Op::scan, outcome), "scan() threw " + outcome.text);
    require(!thrown, "scan() has swallowed what a visitor threw");
  } catch (const ThrownByVisitor&) {
    require(thrown, "scan() threw what no visitor threw");
  }
}

void Client::visit(OpenIndex& index, const Datum& key, DatumView value) {
  const auto tag = index.plan.values.read(value);
  require(tag.has_value(), "a scan shows a damaged value under " + show(key));
  require(tag->key < index.plan.count + kHotKeys && index.key(tag->key) == key,
          fmt::format("a scan shows the value of key {} under {}", tag->key, show(key)));
  if (tag->key >= index.plan.count) return;
  const Snapshot behind = index.model.cells[tag->key].load();
  const std::uint32_t most =
      std::max(behind.decided.version, behind.in_flight ? behind.in_flight->version : 0);
  require(tag->version <= most, name(index, tag->key) + ": a scan shows what was never written");
}

// What a visitor may do: anything of the library.
void Client::misbehave(OpenIndex& index) {
  ++depth_;
  ++board_.counters.visits;
  const std::uint32_t mine = owned(index);
  switch (rng_.below(5)) {
    case 0: std::this_thread::sleep_for(std::chrono::microseconds(rng_.between(1, 2000))); break;
    case 1: {
      const Call marked(seat_, "close in a visitor");
      const Outcome outcome = attempt("close()", [&] { index.pool.close(); });
      require(outcome.threw && outcome.code == Errc::in_use,
              "close() of a pool with an open index in a visitor did not throw in_use");
      break;
    }
    default:
      for (unsigned i = 0; i < 20 && mine != 0; ++i) {
        const auto number = number_of(static_cast<std::uint32_t>(rng_.below(mine)));
        write(index, number, rng_.once_in(4) ? Op::erase : Op::put);
      }
  }
  --depth_;
}

void Client::look_at(OpenIndex& index) {
  const Call marked(seat_, "stats");
  const IndexStats stats = index.index.stats();
  constexpr std::uint64_t kNonsense = std::uint64_t{1} << 44;
  require(!step_.bounds || (stats.pm_bytes < kNonsense && stats.dram_bytes < kNonsense),
          index.plan.name + ": stats() counts below zero");
}

void Client::one_of_everything(OpenIndex& index, std::uint32_t number) {
  const std::uint64_t dice = rng_.below(200);
  if (dice < 60) return write(index, number, Op::put);
  if (dice < 80) return write(index, number, Op::insert);
  if (dice < 110) return write(index, number, Op::update);
  if (dice < 145) return write(index, number, Op::erase);
  if (dice < 190) return read(index, static_cast<std::uint32_t>(rng_.below(index.plan.count)));
  if (sick(index)) return;
  if (dice < 193) return read_many(index);
  if (dice < 199 || !rng_.once_in(20))
    return scan(index, static_cast<std::uint32_t>(rng_.below(index.plan.count)));
  look_at(index);
}

void Client::fill(OpenIndex& index) {
  const std::uint32_t mine = owned(index);
  full_ = 0;
  for (std::uint32_t i = 0; i < mine && !enough() && full_ < kFullCalls && !sick(index); ++i) {
    const std::uint32_t number = number_of(in_order(i, mine));
    if (index.model.cells[number].load().decided.present) continue;
    write(index, number, rng_.once_in(2) ? Op::put : Op::insert);
    if (rng_.once_in(50)) read(index, number);
  }
  if (full_ >= kFullCalls) ++board_.counters.full;
}

// To the end, since the last keys of an index are the ones that matter.
void Client::drain(OpenIndex& index) {
  const std::uint32_t mine = owned(index);
  for (std::uint32_t i = 0; i < mine && !sick(index); ++i) {
    const std::uint32_t number = number_of(in_order(i, mine));
    if (!index.model.cells[number].load().decided.present) continue;
    write(index, number, Op::erase);
    if (rng_.once_in(30)) read(index, static_cast<std::uint32_t>(rng_.below(index.plan.count)));
    if (rng_.once_in(2000)) scan(index, 0);
  }
}

void Client::churn(bool few) {
  full_ = 0;
  while (!enough()) {
    OpenIndex& index = *indexes_[rng_.below(indexes_.size())];
    if (std::all_of(indexes_.begin(), indexes_.end(), [&](const auto& i) { return sick(*i); }))
      return;
    const std::uint32_t mine = few ? std::min(kFewKeys, owned(index)) : owned(index);
    if (mine == 0) {
      read(index, 0);
      continue;
    }
    one_of_everything(index, number_of(static_cast<std::uint32_t>(rng_.below(mine))));
  }
}

void Client::read_all() {
  while (!enough()) {
    OpenIndex& index = *indexes_[rng_.below(indexes_.size())];
    if (sick(index)) return;
    const auto number = static_cast<std::uint32_t>(rng_.below(index.plan.count));
    rng_.once_in(30) ? scan(index, number) : read(index, number);
  }
}

void Client::idle() {
  for (unsigned i = 0; i < step_.operations; ++i) {
    OpenIndex& index = *indexes_[rng_.below(indexes_.size())];
    const std::uint32_t mine = owned(index);
    if (mine != 0 && !sick(index))
      one_of_everything(index, number_of(static_cast<std::uint32_t>(rng_.below(mine))));
    std::this_thread::sleep_for(std::chrono::milliseconds(rng_.below(6)));
  }
}

void Client::run() {
  try {
    work();
  } catch (const PoolFailed&) {  // what is in flight stays undecided until the pool is opened again
  }
}

void Client::work() {
  if (step_.work == Work::fill || step_.work == Work::drain) {
    for (auto& index : indexes_) step_.work == Work::fill ? fill(*index) : drain(*index);
    return;
  }
  switch (step_.work) {
    case Work::read: return read_all();
    case Work::idle: return idle();
    case Work::hot: break;
    default: return churn(step_.work == Work::few);
  }
  constexpr std::array kOps = {Op::put, Op::put, Op::insert, Op::update, Op::erase};
  while (!enough()) {
    OpenIndex& index = *indexes_[rng_.below(indexes_.size())];
    if (sick(index)) return;
    write_hot(index, static_cast<std::uint32_t>(rng_.below(kHotKeys)),
              kOps[rng_.below(kOps.size())]);
  }
}

}  // namespace perdix::test::storm
