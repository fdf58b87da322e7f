#include "testing/linearizability/checker.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace perdix::testing {
namespace {

using State = std::optional<Value>;

State effect(const Operation& operation, const State& state) {
  switch (operation.action) {
    case Action::get: return state;
    case Action::put:
    case Action::swap: return operation.value;
    case Action::insert:
    case Action::insert_ahead: return state ? state : State(operation.value);
    case Action::update: return state ? State(operation.value) : state;
    case Action::erase:
    case Action::take: return std::nullopt;
  }
  return state;
}

bool answer_is_right(const Operation& operation, const State& state) {
  switch (operation.action) {
    case Action::get:
    case Action::swap:
    case Action::take: return operation.found == state;
    case Action::put:
    case Action::insert_ahead: return true;
    case Action::insert: return operation.success == !state.has_value();
    case Action::update:
    case Action::erase: return operation.success == state.has_value();
  }
  return false;
}

/// Looks for an order of the operations on one key.
class Search {
 public:
  explicit Search(std::vector<Operation> operations)
      : operations_(std::move(operations)), done_(operations_.size(), false) {
    std::ranges::sort(operations_, {}, &Operation::called);
  }

  bool run() { return extend(std::nullopt); }

  const std::vector<Operation>& operations() const { return operations_; }

  /// The longest beginning of an order that was found.
  const std::vector<std::size_t>& longest() const { return longest_; }

 private:
  bool extend(const State& state) {
    if (order_.size() == operations_.size()) return true;
    if (!seen_.insert({done_, state}).second) return false;
    const Tick limit = earliest_end();
    for (std::size_t i = 0; i < operations_.size() && operations_[i].called < limit; ++i) {
      if (!done_[i] && place(i, state)) return true;
    }
    return false;
  }

  // An operation may come next if none of those that are left had ended before it was called.
  Tick earliest_end() const {
    Tick earliest = std::numeric_limits<Tick>::max();
    for (std::size_t i = 0; i < operations_.size() && operations_[i].called < earliest; ++i) {
      if (!done_[i]) earliest = std::min(earliest, operations_[i].ended);
    }
    return earliest;
  }

  bool place(std::size_t i, const State& state) {
    const Operation& operation = operations_[i];
    if (operation.returned && !answer_is_right(operation, state)) return false;
    done_[i] = true;
    order_.push_back(i);
    if (order_.size() > longest_.size()) longest_ = order_;
    bool found = extend(effect(operation, state));
    // In flight at the crash: it may also never have happened.
    if (!found && !operation.returned) found = extend(state);
    done_[i] = false;
    order_.pop_back();
    return found;
  }

  struct Configuration {
    std::vector<bool> done;
    State state;
    bool operator==(const Configuration&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Configuration& configuration) const {
      const std::size_t state = std::hash<State>()(configuration.state);
      return std::hash<std::vector<bool>>()(configuration.done) * 31 + state;
    }
  };

  std::vector<Operation> operations_;
  std::vector<bool> done_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> longest_;
  std::unordered_set<Configuration, Hash> seen_;
};

/// Why there is no order: how far the search came, and the remaining operations.
std::string explain(const Search& search) {
  const auto& operations = search.operations();
  const auto& longest = search.longest();
  std::string text = fmt::format("key {}: no order of its operations explains their answers\n",
                                 operations.front().key);
  constexpr std::size_t kShown = 12;
  const std::size_t begin = longest.size() - std::min(longest.size(), kShown);
  if (begin > 0) text += fmt::format("    ({} operations before)\n", begin);
  for (std::size_t i = begin; i < longest.size(); ++i)
    text += fmt::format("    {}\n", to_string(operations[longest[i]]));
  text += "  and then none of\n";
  std::size_t shown = 0;
  for (std::size_t i = 0; i < operations.size() && shown < kShown; ++i) {
    if (std::ranges::find(longest, i) != longest.end()) continue;
    text += fmt::format("    {}\n", to_string(operations[i]));
    ++shown;
  }
  return text;
}

class Checker {
 public:
  Checker(const History& history, std::span<const Key> keys)
      : history_(history), keys_(keys.begin(), keys.end()) {
    std::ranges::sort(keys_);
  }

  std::vector<std::string> run() {
    for (const Operation& operation : history_.operations)
      by_key_[operation.key].push_back(operation);
    for (const Scan& scan : history_.scans) scan.ordered ? add(scan) : add_unordered(scan);
    for (auto& [key, operations] : by_key_) {
      Search search(std::move(operations));
      if (!search.run()) problems_.push_back(explain(search));
    }
    return std::move(problems_);
  }

 private:
  /// A scan as gets of the keys that it came by.
  void add(const Scan& scan) {
    auto key = std::ranges::lower_bound(keys_, scan.from);
    for (std::size_t i = 0; i < scan.pairs.size(); ++i) {
      const Shown& shown = scan.pairs[i];
      const bool ascends = i == 0 ? shown.key >= scan.from : shown.key > scan.pairs[i - 1].key;
      if (!ascends) {
        problems_.push_back(fmt::format("thread {}, {}-{}: a scan from {} shows key {} after {}",
                                        scan.thread, scan.called, scan.ended, scan.from, shown.key,
                                        i == 0 ? scan.from : scan.pairs[i - 1].key));
        return;
      }
      for (; key != keys_.end() && *key < shown.key; ++key) add_get(scan, *key, {}, shown.at);
      if (key != keys_.end() && *key == shown.key) ++key;
      add_get(scan, shown.key, shown.value, shown.at);
    }
    if (!scan.exhausted) return;
    for (; key != keys_.end(); ++key) add_get(scan, *key, {}, scan.ended);
  }

  /// A scan of a map without order, as gets. Keys that it has not shown were absent at some moment.
  void add_unordered(const Scan& scan) {
    std::set<Key> missing(keys_.begin(), keys_.end());
    for (const Shown& shown : scan.pairs) {
      if (missing.erase(shown.key) == 0)
        problems_.push_back(fmt::format("thread {}, {}-{}: key {} is shown twice, or is none",
                                        scan.thread, scan.called, scan.ended, shown.key));
      add_get(scan, shown.key, shown.value, shown.at);
    }
    if (!scan.exhausted) return;
    for (const Key key : missing) add_get(scan, key, {}, scan.ended);
  }

  void add_get(const Scan& scan, Key key, std::optional<Value> found, Tick ended) {
    by_key_[key].push_back(
        {scan.thread, Action::get, key, 0, true, false, found, scan.called, ended});
  }

  const History& history_;
  std::vector<Key> keys_;
  std::map<Key, std::vector<Operation>> by_key_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check(const History& history, std::span<const Key> keys) {
  return Checker(history, keys).run();
}

bool linearizable(std::vector<Operation> operations) { return Search(std::move(operations)).run(); }

}  // namespace perdix::testing
