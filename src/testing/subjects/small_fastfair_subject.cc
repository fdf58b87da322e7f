#include "testing/subjects/small_fastfair_subject.h"

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <perdix/index.h>
#include <perdix/pool.h>

#include "index/common/bytes.h"
#include "index/fastfair/fastfair.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

constexpr unsigned kFanout = 4;
constexpr unsigned kKeys = 120;

enum TreeAction : unsigned { kPutPair, kErasePair, kGetPair };
/// Added: afterwards, wait until what was freed may be used again, so that a run depends on nothing
/// else.
constexpr unsigned kThenSettle = 16;

template <class K>
std::string key_of(std::uint64_t i) {
  if constexpr (std::is_same_v<K, std::string>) {
    return i == 0 ? "" : std::string(i % 3 * 30, 'p') + std::to_string(i);
  } else {
    return detail::index::Bytes<K>::own(i == 0   ? 0
                                        : i == 1 ? ~std::uint64_t{0}
                                                 : i * 0x9e3779b97f4a7c15);
  }
}

/// Few different ones, so that neighbours are equal.
template <class V>
std::string value_of(std::uint64_t random) {
  if constexpr (std::is_same_v<V, std::string>) {
    return std::string(random % 3, 'v');
  } else {
    return detail::index::Bytes<V>::own(random % 3 - 1);
  }
}

template <class K, class V>
class OpenedTree final : public Opened {
 public:
  OpenedTree(Medium& medium, detail::pm::Domain domain)
      : pool_(Pool::open(medium.path(), pool_options(domain))),
        handle_(pool_.core()->open_index("t", detail::index::fastfair::kEngineName, kKindOf<K>,
                                         kKindOf<V>)),
        tree_(std::in_place, *pool_.core(), handle_->root(), kFanout) {}

  State contents() override {
    State state;
    tree_->scan({}, [&](auto key, auto value) {
      return state.emplace(Key::encode(key), Value::encode(value)).second;
    });
    return state;
  }

  Problems check() override {
    Problems problems = tree_->check().problems;
    const State scanned = contents();
    for (auto it = scanned.begin(); it != scanned.end(); ++it) {
      const auto key = Key::decode(it->first);
      const auto value = tree_->get(key);
      if (!value || Value::own(*value) != it->second) problems.push_back("get is not as scan");
      const auto floor = tree_->find_floor(key);
      if (!floor || Key::own(floor->first) != it->first) problems.push_back("nor is find_floor");
    }
    if (tree_->size() != scanned.size()) problems.push_back("size is wrong");
    return problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = call(step);
    if ((step.action & kThenSettle) != 0) settle(*pool_.core());
    return result;
  }

  Problems close() override {
    tree_.reset();
    handle_.reset();
    Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

 private:
  using Key = detail::index::Bytes<K>;
  using Value = detail::index::Bytes<V>;

  StepResult call(const Step& step) {
    const auto key = Key::decode(step.key);
    switch (step.action & ~kThenSettle) {
      case kPutPair: tree_->put(key, Value::decode(step.value)); return StepResult::write(true);
      case kErasePair: return StepResult::write(tree_->erase(key));
      default: break;
    }
    const auto found = tree_->get(key);
    return StepResult::read(found ? std::optional(Value::own(*found)) : std::nullopt);
  }

  Pool pool_;
  std::optional<detail::pool::IndexHandle> handle_;
  std::optional<detail::index::fastfair::Tree<K, V>> tree_;
};

template <class K, class V>
class TreeSubject final : public Subject {
 public:
  explicit TreeSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    grows_ = random.one_in(2);
    State state;
    OpenedTree<K, V> opened(medium, domain_);
    const auto apply = [&](TreeAction action, const std::string& key) {
      const Step step{action | kThenSettle, key, value_of<V>(random())};
      opened.apply(step);
      if (action == kPutPair) state[key] = step.value;
      if (action == kErasePair) state.erase(key);
    };
    // Grown as far as it goes, and shrunk again by half: full nodes, or sparse ones.
    const unsigned most = random.below(kKeys);
    while (state.size() < most) apply(kPutPair, key_of<K>(random.below(kKeys)));
    while (!grows_ && state.size() > most / 2) apply(kErasePair, key_of<K>(random.below(kKeys)));
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedTree<K, V>>(medium, domain_);
  }

  Step next_step(detail::util::Random& random, const State&, unsigned thread,
                 unsigned threads) override {
    const std::uint64_t own = random.below(kKeys / threads) * threads + thread;
    const TreeAction often = grows_ ? kPutPair : kErasePair;
    const unsigned action = random.one_in(4) ? static_cast<unsigned>(random.below(3)) : often;
    return {threads == 1 ? action | kThenSettle : action, key_of<K>(own), value_of<V>(random())};
  }

  Effects effects(const Step& step, const State& state) const override {
    switch (step.action & ~kThenSettle) {
      case kPutPair: return {{step.key, step.value}};
      case kErasePair:
        return state.contains(step.key) ? Effects{{step.key, std::nullopt}} : Effects{};
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, 3> kNames = {"put", "erase", "get"};
    return fmt::format("{} of key {:?}", kNames[step.action & ~kThenSettle], step.key);
  }

 private:
  detail::pm::Domain domain_;
  bool grows_ = true;
};

template <class K, class V>
std::unique_ptr<Subject> make(detail::pm::Domain domain) {
  return std::make_unique<TreeSubject<K, V>>(domain);
}

}  // namespace

std::unique_ptr<Subject> make_small_fastfair_subject(Kind key, detail::pm::Domain domain) {
  return key == Kind::u64 ? make<std::uint64_t, std::uint64_t>(domain)
                          : make<std::string, std::string>(domain);
}

}  // namespace perdix::testing
