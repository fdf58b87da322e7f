// The expected content of an index, in memory that outlives the process that uses the index.
//
// Each key has one owner, the only thread that writes it. Its state is therefore known exactly: the
// effect of the last operation that returned, and at most one operation in flight. Some hot keys
// have many writers; their last effect must be the last effect of one of the writers.
//
// A state is a version, which grows with each operation on the key, and whether the key is there.
// Invariants:
//   1. An owner begins an operation before the call, and decides or cancels it behind it.
//   2. A process that is killed leaves its operations in flight. The next thread that reads the
//      key decides them by what it finds.
//
//   3. An effect that a reader has seen outlives the process, and a power failure.
//
// Readers of other threads load a state before and behind their call (Cell::allows). Thread-safe
// under the rule of ownership.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace perdix::test::storm {

/// Of a key: absent or with the value of a version.
struct State {
  std::uint32_t version = 0;
  bool present = false;

  bool operator==(const State&) const = default;
  std::uint32_t pack() const { return version << 1 | (present ? 1U : 0U); }
  static State unpack(std::uint32_t packed) { return {packed >> 1, (packed & 1) != 0}; }
};

/// What a lookup found: the version of the value, or nothing.
using Found = std::optional<std::uint32_t>;

std::string show(State state);
std::string show(Found found);

/// A key at a moment: its decided state, and the one that an operation in flight leads to.
struct Snapshot {
  State decided;
  std::optional<State> in_flight;
  bool seen = false;  ///< a reader has found the one in flight

  /// Whether a quiet key in this state may be found so.
  bool allows(Found found) const;
  bool operator==(const Snapshot&) const = default;
};

std::string show(const Snapshot& snapshot);

/// Whether a lookup that lies between two snapshots may have found this.
bool allows(const Snapshot& before, const Snapshot& behind, Found found);

class Cell {
 public:
  Snapshot load() const;

  /// An operation of the owner that leads to `next`; its version is above all before.
  void begin(State next);

  /// The operation in flight had its effect.
  void finish();

  /// It had none.
  void cancel();

  /// A reader has found this. If only the operation in flight explains that, its effect must
  /// survive.
  void see(Found found);

  /// `found` decides which of the allowed states it is. False, and nothing changes, if none is.
  bool decide(Found found);

 private:
  // Low: decided; high: in flight, 0: none; its top bit: seen.
  std::atomic<std::uint64_t> word_{0};
};

/// Writers of hot keys, at most.
inline constexpr unsigned kWriters = 16;

class HotCell {
 public:
  /// A version that no other writer has.
  State next(bool present);

  void begin(unsigned writer, State next);
  void finish(unsigned writer);
  void cancel(unsigned writer);

  /// While writers are active: whether a value of that version was ever written.
  bool may_have(Found found) const;

  /// While none is: as Cell::decide().
  bool decide(Found found);

 private:
  std::atomic<std::uint32_t> issued_{0};
  std::atomic<std::uint32_t> base_{0};
  std::array<std::atomic<std::uint64_t>, kWriters> last_{};  // as Cell; low 0: no effect yet
};

}  // namespace perdix::test::storm
