#include "testing/linearizability/schedule_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace perdix::testing {
namespace {

/// Draws the calls of a plan.
class Planner {
 public:
  Planner(detail::util::Random& random, bool ordered, const LeafSizes& leaf)
      : random_(random),
        ordered_(ordered),
        full_(random.one_in(2) ? leaf.full : leaf.most),
        max_(leaf.most),
        joinable_(leaf.joinable),
        leaves_(leaf.leaves),
        inserts_ahead_(leaf.inserts_ahead) {}

  SchedulePlan draw(std::optional<Beginning> wanted) {
    const auto drawn = static_cast<Beginning>(random_.below(leaves_ == 0 ? 7 : 8));
    begin(wanted.value_or(drawn));
    plan_.threads = draw_calls();
    if (random_.one_in(2)) plan_.again = draw_calls();
    return std::move(plan_);
  }

 private:
  /// With this many pairs more than fit into a leaf there are surely two leaves.
  static constexpr std::uint64_t kMoreThanALeaf = 6;

  void begin(Beginning beginning) {
    const bool few = beginning == Beginning::few || beginning == Beginning::contested;
    const bool full = beginning == Beginning::full || beginning == Beginning::contested_full;
    const bool contested =
        beginning == Beginning::contested || beginning == Beginning::contested_full;
    make_keys(few ? 1 + random_.below(6) : std::max(max_ * 5 / 4, max_ + kMoreThanALeaf));
    if (few) put_some(random_.below(plan_.keys.size() + 1));
    if (full) put_some(full_ - 3 + random_.below(4));
    draw_weights(beginning == Beginning::little || beginning == Beginning::sparse);
    if (contested) insert_much();
    for (Key& key : hot_) key = any_key();
    if (beginning == Beginning::little) leave_little();
    if (beginning == Beginning::contested_full) hot_[0] = absent_key();
    if (contested) hot_.fill(hot_[0]);
    // Other threads fill the leaf at the same time.
    if (beginning == Beginning::contested_full && random_.one_in(2)) hot_[1] = absent_key();
    if (beginning == Beginning::sparse) make_sparse();
    if (beginning == Beginning::edge) make_edge();
    if (beginning == Beginning::many) make_many();
  }

  std::vector<PlannedCalls> draw_calls() {
    std::vector<PlannedCalls> threads(2 + random_.below(3));
    const std::uint64_t calls = 6 + random_.below(25);
    for (PlannedCalls& thread : threads) {
      for (std::uint64_t i = 0; i < calls; ++i) thread.push_back(draw_call());
    }
    return threads;
  }

  void make_keys(std::uint64_t count) {
    plan_.keys.resize(count);
    std::iota(plan_.keys.begin(), plan_.keys.end(), Key{0});
    shuffled_ = plan_.keys;
    for (std::size_t i = shuffled_.size(); i > 1; --i)
      std::swap(shuffled_[i - 1], shuffled_[random_.below(i)]);
  }

  void put_some(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      plan_.before.push_back({false, Action::put, shuffled_[i], next_value(), 0});
  }

  // Two leaves, from which so much is erased that a few erasures more let them become one.
  void leave_little() {
    const std::uint64_t put = max_ + kMoreThanALeaf;
    put_some(put);
    const std::uint64_t left = joinable_ - 1 + random_.below(6);
    for (std::uint64_t i = left; i < put; ++i)
      plan_.before.push_back({false, Action::erase, shuffled_[i], 0, 0});
    for (Key& key : hot_) key = shuffled_[random_.below(left)];
  }

  void put_ascending(std::uint64_t count) {
    for (Key key = 0; key < count; ++key)
      plan_.before.push_back({false, Action::put, key, next_value(), 0});
  }

  // Erases all of [first, first + size) but `left` keys, which are returned.
  std::vector<Key> thin_out(Key first, std::uint64_t size, std::uint64_t left) {
    std::vector<Key> keys(size);
    std::iota(keys.begin(), keys.end(), first);
    for (std::size_t i = size; i > 1; --i) std::swap(keys[i - 1], keys[random_.below(i)]);
    for (std::uint64_t i = left; i < size; ++i)
      plan_.before.push_back({false, Action::erase, keys[i], 0, 0});
    keys.resize(left);
    return keys;
  }

  // Keys that ascend fill a leaf completely, and the next ones are in a leaf of their own.
  void make_sparse() {
    const std::uint64_t right = joinable_ / 2 - random_.below(3);
    put_ascending(max_ + right);
    const auto left = thin_out(0, max_, joinable_ - right + 1 + random_.below(3));
    for (Key& key : hot_) key = left[random_.below(left.size())];
    hot_.back() = max_ + random_.below(right);
  }

  // Behind a full leaf there begins a new one, which goes when it is empty.
  void make_edge() {
    const std::uint64_t full = max_ * (1 + random_.below(leaves_ == 0 ? 1 : 3));
    make_keys(full + 4);
    put_ascending(full - random_.below(2));
    for (Key& key : hot_) key = full + random_.below(2);
    insert_much();
    weights_[static_cast<std::size_t>(Action::erase)] += 8;
  }

  // As many leaves as make nodes above them full, or nearly so.
  void make_many() {
    static constexpr std::array<unsigned, 8> kLeaves = {3, 5, 9, 16, 17, 28, 48, 49};
    const auto more = std::ranges::upper_bound(kLeaves, leaves_);
    std::uint64_t leaves =
        kLeaves[random_.below(static_cast<std::uint64_t>(more - kLeaves.begin()))];
    make_keys(leaves * max_ + random_.below(max_));
    put_ascending(leaves * max_);
    if (random_.one_in(2)) return crowd_many(leaves);
    // Some go before the threads begin, so that nodes are larger than they would become.
    for (std::uint64_t gone = random_.below(leaves / 2 + 1); gone > 0; --gone)
      thin_out(--leaves * max_, max_, 0);
    // Often the last ones, whose nodes have few others.
    const Key at = random_.one_in(2) ? random_.below(leaves) : leaves - 1;
    for (Key leaf = 0; leaf < leaves; ++leaf) {
      const auto left = thin_out(leaf * max_, max_, joinable_ / 2 + 1 + random_.below(2));
      if (leaf != at) continue;
      for (Key& key : hot_) key = left[random_.below(left.size())];
    }
    weights_[static_cast<std::size_t>(Action::erase)] += 24;
  }

  // Most calls go to one leaf, or behind the last one.
  void crowd_many(std::uint64_t leaves) {
    const Key at = random_.below(leaves) * max_;
    for (Key& key : hot_)
      key = random_.one_in(2) ? plan_.keys.size() - 1 - random_.below(4) : at + 1;
    weights_[static_cast<std::size_t>(Action::put)] += 24;
  }

  void draw_weights(bool erase_much) {
    for (std::uint64_t& weight : weights_) weight = 1 + random_.below(8);
    if (erase_much) weights_[static_cast<std::size_t>(Action::erase)] += 12;
    scan_one_in_ = 4 + random_.below(16);
    if (!ordered_) scan_one_in_ *= 4;  // each shows all pairs, and other calls come to less
  }

  // Of one new key, again and again, since it is also erased.
  void insert_much() {
    weights_[static_cast<std::size_t>(Action::insert)] += 16;
    weights_[static_cast<std::size_t>(Action::erase)] += 8;
    weights_[static_cast<std::size_t>(Action::get)] += 8;
  }

  PlannedCall draw_call() {
    constexpr std::uint64_t kTendInterval = 16;
    if (random_.one_in(kTendInterval))
      return {.value = random_.below(kTendInterval), .tends = true};
    if (random_.one_in(scan_one_in_)) {
      const std::size_t all = std::numeric_limits<std::size_t>::max();
      return {true, Action::get, any_key(), 0, random_.one_in(2) ? all : 1 + random_.below(10)};
    }
    const Key key = random_.below(4) < 3 ? hot_[random_.below(hot_.size())] : any_key();
    return {false, draw_action(), key, next_value(), 0};
  }

  Action draw_action() {
    const std::uint64_t sum = std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0});
    std::uint64_t at = random_.below(sum);
    std::size_t action = 0;
    while (at >= weights_[action]) at -= weights_[action++];
    const auto drawn = static_cast<Action>(action);
    const bool ahead = inserts_ahead_ && drawn == Action::insert && random_.one_in(2);
    return ahead ? Action::insert_ahead : drawn;
  }

  /// One that was not put before the threads start.
  Key absent_key() { return shuffled_[random_.below(shuffled_.size() - full_) + full_]; }

  Key any_key() { return plan_.keys[random_.below(plan_.keys.size())]; }
  Value next_value() { return ++last_value_; }

  detail::util::Random& random_;
  bool ordered_;
  std::uint64_t full_;
  std::uint64_t max_;
  std::uint64_t joinable_;
  std::uint64_t leaves_;
  bool inserts_ahead_;
  SchedulePlan plan_;
  std::vector<Key> shuffled_;
  std::array<Key, 4> hot_{};
  std::array<std::uint64_t, kUsualActions> weights_{};  // by Action
  std::uint64_t scan_one_in_ = 1;
  Value last_value_ = 0;
};

}  // namespace

void PlannedCall::operator()(Log& log) const {
  if (tends) return log.tend(value);
  if (scan) return log.scan(key, limit);
  switch (action) {
    case Action::get: return log.get(key);
    case Action::put: return log.put(key, value);
    case Action::insert: return log.insert(key, value);
    case Action::update: return log.update(key, value);
    case Action::erase: return log.erase(key);
    case Action::swap: return log.swap(key, value);
    case Action::take: return log.take(key);
    case Action::insert_ahead: return log.insert_ahead(key, value);
  }
}

std::uint64_t SchedulePlan::calls() const {
  std::uint64_t calls = before.size();
  for (const PlannedCalls& thread : threads) calls += thread.size();
  return calls;
}

SchedulePlan draw_plan(detail::util::Random& random, bool ordered, const LeafSizes& leaf,
                       std::optional<Beginning> beginning) {
  return Planner(random, ordered, leaf).draw(beginning);
}

}  // namespace perdix::testing
