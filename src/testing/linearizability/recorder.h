// Records what threads do to a map: one log per thread, so that recording orders nothing between
// threads except by the clock's counter.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "testing/linearizability/map.h"
#include "testing/linearizability/operation.h"

namespace perdix::testing {

/// Hands out ascending moments. Thread-safe.
class Clock {
 public:
  /// Sequentially consistent: an operation's call comes before what it does, its end after.
  Tick tick() { return ticks_.fetch_add(1, std::memory_order_seq_cst); }

 private:
  std::atomic<Tick> ticks_{1};
};

/// Executes operations on a map and records them. For one thread.
class Log {
 public:
  Log(Map& map, Clock& clock, unsigned thread) : map_(map), clock_(clock), thread_(thread) {}

  void get(Key key);
  void put(Key key, Value value);
  void insert(Key key, Value value);
  void insert_ahead(Key key, Value value);
  void update(Key key, Value value);
  void erase(Key key);
  void swap(Key key, Value value);
  void take(Key key);
  void scan(Key from, std::size_t limit);
  void tend(std::uint64_t what) { map_.tend(what); }

  /// Appends the recorded operations to a history.
  void move_to(History& history);

 private:
  template <class Act>
  void record(Operation operation, const Act& act);

  Map& map_;
  Clock& clock_;
  unsigned thread_;
  History history_;
};

}  // namespace perdix::testing
