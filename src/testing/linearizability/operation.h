// What is recorded of a map under concurrent use: operations on keys and values that are small
// numbers, each with the moments of its call and its return. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perdix::testing {

using Key = std::uint64_t;
using Value = std::uint64_t;

/// A moment: numbers that one atomic counter handed out, so that an operation that returned before
/// another was called has the smaller ones.
using Tick = std::uint64_t;

/// `swap` stores a value and tells what was there; `take` erases, and tells the same.
enum class Action : std::uint8_t { get, put, insert, update, erase, swap, take, insert_ahead };
/// All but insert_ahead, which not all engines have.
inline constexpr std::size_t kUsualActions = 7;

/// One operation on one key.
struct Operation {
  unsigned thread = 0;
  Action action = Action::get;
  Key key = 0;
  Value value = 0;               ///< that is to be stored
  bool returned = false;         ///< false: a crash came first, so it is unknown whether it
                                 ///< happened
  bool success = false;          ///< what insert, update and erase returned
  std::optional<Value> found{};  ///< what get, swap and take returned
  Tick called = 0;
  Tick ended = 0;  ///< the moment of the return, or of the crash
};

/// A pair that a scan showed.
struct Shown {
  Key key = 0;
  Value value = 0;
  Tick at = 0;
};

/// One scan from a key on, until it had shown `limit` pairs or there were no more. Of a map without
/// order: of all keys, each once.
struct Scan {
  unsigned thread = 0;
  Key from = 0;
  bool exhausted = false;  ///< it returned because there were no more pairs
  std::vector<Shown> pairs;
  Tick called = 0;
  Tick ended = 0;  ///< the moment of the return, or of the crash
  bool ordered = true;
};

struct History {
  std::vector<Operation> operations;
  std::vector<Scan> scans;
};

/// "thread 2, 17-40: insert(5, 1003) -> true"
std::string to_string(const Operation& operation);

/// The history that would have been recorded if the machine had stopped at this moment: operations
/// that were not called yet are gone, those that had not returned are in flight.
History cut(const History& history, Tick crash);

}  // namespace perdix::testing
