#include "testing/linearizability/recorder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <perdix/error.h>

namespace perdix::testing {

namespace {

bool may_need_space(Action action) {
  return action != Action::get && action != Action::erase && action != Action::take;
}

}  // namespace

template <class Act>
void Log::record(Operation operation, const Act& act) {
  operation.thread = thread_;
  operation.called = clock_.tick();
  try {
    act(operation);
  } catch (const Error& error) {
    // It has changed nothing, so there is nothing to be recorded.
    if (error.code() == Errc::out_of_space && may_need_space(operation.action)) return;
    throw;
  }
  operation.ended = clock_.tick();
  operation.returned = true;
  history_.operations.push_back(operation);
}

void Log::get(Key key) {
  record({.action = Action::get, .key = key}, [&](Operation& o) { o.found = map_.get(key); });
}

void Log::put(Key key, Value value) {
  record({.action = Action::put, .key = key, .value = value},
         [&](Operation&) { map_.put(key, value); });
}

void Log::insert(Key key, Value value) {
  record({.action = Action::insert, .key = key, .value = value},
         [&](Operation& o) { o.success = map_.insert(key, value); });
}

void Log::insert_ahead(Key key, Value value) {
  record({.action = Action::insert_ahead, .key = key, .value = value},
         [&](Operation&) { map_.insert_ahead(key, value); });
}

void Log::update(Key key, Value value) {
  record({.action = Action::update, .key = key, .value = value},
         [&](Operation& o) { o.success = map_.update(key, value); });
}

void Log::erase(Key key) {
  record({.action = Action::erase, .key = key}, [&](Operation& o) { o.success = map_.erase(key); });
}

void Log::swap(Key key, Value value) {
  record({.action = Action::swap, .key = key, .value = value},
         [&](Operation& o) { o.found = map_.swap(key, value); });
}

void Log::take(Key key) {
  record({.action = Action::take, .key = key}, [&](Operation& o) { o.found = map_.take(key); });
}

void Log::scan(Key from, std::size_t limit) {
  Scan scan;
  scan.thread = thread_;
  scan.from = from;
  scan.ordered = map_.ordered();
  scan.called = clock_.tick();
  map_.scan(from, [&](Key key, Value value) {
    scan.pairs.push_back({key, value, clock_.tick()});
    return scan.pairs.size() < limit;
  });
  scan.exhausted = scan.pairs.size() < limit;
  scan.ended = clock_.tick();
  history_.scans.push_back(std::move(scan));
}

void Log::move_to(History& history) {
  std::ranges::move(history_.operations, std::back_inserter(history.operations));
  std::ranges::move(history_.scans, std::back_inserter(history.scans));
  history_ = {};
}

}  // namespace perdix::testing
