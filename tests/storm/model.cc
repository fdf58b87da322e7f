#include "storm/model.h"

#include <algorithm>

#include <fmt/format.h>

namespace perdix::test::storm {
namespace {

std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
constexpr std::uint64_t kSeen = std::uint64_t{1} << 63;
std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>((word & ~kSeen) >> 32); }
std::uint64_t with_flight(std::uint64_t word, State next) {
  return std::uint64_t{next.pack()} << 32 | low(word);
}

bool shows(State state, Found found) {
  return state.present ? found == state.version : !found.has_value();
}

State last_of(const Snapshot& snapshot) {
  return snapshot.in_flight ? *snapshot.in_flight : snapshot.decided;
}

}  // namespace

std::string show(State state) {
  return state.present ? fmt::format("version {}", state.version)
                       : fmt::format("absent since version {}", state.version);
}

std::string show(Found found) { return found ? fmt::format("version {}", *found) : "no value"; }

std::string show(const Snapshot& snapshot) {
  if (!snapshot.in_flight) return show(snapshot.decided);
  return fmt::format("{}, and in flight {}{}", show(snapshot.decided), show(*snapshot.in_flight),
                     snapshot.seen ? ", which a reader has seen" : "");
}

bool Snapshot::allows(Found found) const {
  return (shows(decided, found) && !seen) || (in_flight && shows(*in_flight, found));
}

bool allows(const Snapshot& before, const Snapshot& behind, Found found) {
  const State last = last_of(behind);
  if (before.allows(found) || behind.allows(found)) {
    // A state that was over before the lookup began is not allowed, and none of these is.
    return true;
  }
  // States between the two snapshots are known by their versions only.
  const std::uint32_t first = before.decided.version;
  if (last.version <= first + 1) return false;
  if (!found) return last.version > last_of(before).version + 1;
  return *found > first && *found < last.version;
}

Snapshot Cell::load() const {
  const std::uint64_t word = word_.load(std::memory_order_acquire);
  Snapshot snapshot{State::unpack(low(word)), std::nullopt};
  if (high(word) != 0) snapshot.in_flight = State::unpack(high(word));
  snapshot.seen = (word & kSeen) != 0;
  return snapshot;
}

void Cell::see(Found found) {
  std::uint64_t word = word_.load();
  if (high(word) == 0 || shows(State::unpack(low(word)), found)) return;
  // If it fails, the owner has decided what it was.
  if (shows(State::unpack(high(word)), found)) word_.compare_exchange_strong(word, word | kSeen);
}

void Cell::begin(State next) {
  word_.store(with_flight(word_.load(std::memory_order_relaxed), next), std::memory_order_seq_cst);
}

void Cell::finish() {
  word_.store(high(word_.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
}

void Cell::cancel() {
  word_.store(low(word_.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
}

bool Cell::decide(Found found) {
  const Snapshot now = load();
  if (now.in_flight && shows(*now.in_flight, found))
    finish();
  else if (shows(now.decided, found) && !now.seen)
    cancel();
  else
    return false;
  return true;
}

State HotCell::next(bool present) { return {issued_.fetch_add(1) + 1, present}; }

void HotCell::begin(unsigned writer, State next) {
  auto& last = last_[writer];
  last.store(with_flight(last.load(std::memory_order_relaxed), next), std::memory_order_seq_cst);
}

void HotCell::finish(unsigned writer) {
  auto& last = last_[writer];
  last.store(high(last.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
}

void HotCell::cancel(unsigned writer) {
  auto& last = last_[writer];
  last.store(low(last.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
}

bool HotCell::may_have(Found found) const { return !found || *found <= issued_.load(); }

bool HotCell::decide(Found found) {
  bool allowed = false;
  bool written = false;
  for (const auto& last : last_) {
    const std::uint64_t word = last.load();
    written = written || low(word) != 0;
    allowed = allowed || (low(word) != 0 && shows(State::unpack(low(word)), found)) ||
              (high(word) != 0 && shows(State::unpack(high(word)), found));
  }
  allowed = allowed || (!written && shows(State::unpack(base_.load()), found));
  if (!allowed) return false;
  base_.store(State{found.value_or(issued_.load()), found.has_value()}.pack());
  for (auto& last : last_) last.store(0);
  return true;
}

}  // namespace perdix::test::storm
