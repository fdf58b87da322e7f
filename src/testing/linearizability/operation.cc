#include "testing/linearizability/operation.h"

#include <algorithm>

#include <fmt/format.h>

namespace perdix::testing {
namespace {

std::string call(const Operation& operation) {
  switch (operation.action) {
    case Action::get: return fmt::format("get({})", operation.key);
    case Action::put: return fmt::format("put({}, {})", operation.key, operation.value);
    case Action::insert: return fmt::format("insert({}, {})", operation.key, operation.value);
    case Action::update: return fmt::format("update({}, {})", operation.key, operation.value);
    case Action::erase: return fmt::format("erase({})", operation.key);
    case Action::swap: return fmt::format("swap({}, {})", operation.key, operation.value);
    case Action::take: return fmt::format("take({})", operation.key);
    case Action::insert_ahead:
      return fmt::format("insert_ahead({}, {})", operation.key, operation.value);
  }
  return "?";
}

std::string answer(const Operation& operation) {
  if (!operation.returned) return " in flight at the crash";
  switch (operation.action) {
    case Action::put:
    case Action::insert_ahead: return "";
    case Action::insert:
    case Action::update:
    case Action::erase: return operation.success ? " -> true" : " -> false";
    case Action::get:
    case Action::swap:
    case Action::take: break;
  }
  return operation.found ? fmt::format(" -> {}", *operation.found) : " -> nothing";
}

Scan cut_scan(Scan scan, Tick crash) {
  if (scan.ended < crash) return scan;
  std::erase_if(scan.pairs, [&](const Shown& shown) { return shown.at >= crash; });
  scan.exhausted = false;
  scan.ended = crash;
  return scan;
}

}  // namespace

std::string to_string(const Operation& operation) {
  return fmt::format("thread {}, {}-{}: {}{}", operation.thread, operation.called, operation.ended,
                     call(operation), answer(operation));
}

History cut(const History& history, Tick crash) {
  History result;
  for (Operation operation : history.operations) {
    if (operation.called >= crash) continue;
    if (operation.ended >= crash) {
      operation.returned = false;
      operation.ended = crash;
    }
    result.operations.push_back(operation);
  }
  for (const Scan& scan : history.scans) {
    if (scan.called < crash) result.scans.push_back(cut_scan(scan, crash));
  }
  return result;
}

}  // namespace perdix::testing
