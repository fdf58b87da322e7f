#include "testing/subjects/log_upkeep_subject.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <perdix/index.h>
#include <perdix/pool.h>

#include "index/common/bytes.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/test_tree.h"
#include "pool/pool_core.h"
#include "testing/subjects/index_keys.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

namespace sptree = detail::index::sptree;

/// Of the log: chains are cleaned when they hold back a few records, and a look is due every four.
constexpr detail::wal::Log::Limits kFewRecords{0, 4096, 512, 8, 4};
constexpr std::uint64_t kSegmentRecords = detail::wal::kSegmentSize / sizeof(detail::wal::Record);
/// So few before a segment ends, or its headroom, that a workload gets beyond.
constexpr std::uint64_t kMaxRecordsAhead = 12;
/// For buffers of a part of the leaves.
constexpr std::uint64_t kBudget = 3000;

enum LogAction : unsigned { kPutPair, kErasePair, kGetPair, kReclaimSpace, kOpenAgain };
/// Added: afterwards, wait until what was freed may be used again, so that a run depends on nothing
/// else.
constexpr unsigned kSettled = 16;

template <class T>
class OpenedSpTree final : public Opened {
 public:
  OpenedSpTree(Medium& medium, detail::pm::Domain domain)
      : pool_(Pool::open(medium.path(), pool_options(domain))) {
    open_tree(kBudget);
    settle(*pool_.core());
  }

  State contents() override {
    State state;
    tree_->scan({}, [&](auto key, auto value) {
      return state.emplace(Codec::encode(key), Codec::encode(value)).second;
    });
    return state;
  }

  Problems check() override {
    Problems problems = tree_->check().problems;
    const State scanned = contents();
    for (const auto& [key, value] : scanned) {
      const auto found = tree_->get(Codec::decode(key));
      if (!found || Codec::own(*found) != value) problems.push_back("get is not as scan");
    }
    if (tree_->size() != scanned.size()) problems.push_back("size is wrong");
    return problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = call(step);
    if ((step.action & kSettled) != 0) settle(*pool_.core());
    return result;
  }

  Problems close() override {
    tree_.reset();
    Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

  /// Appends records that say nothing to each stripe, up to `ahead` records before `place` in a
  /// segment.
  void fill_log(std::uint64_t place, std::uint64_t ahead) {
    tree_.reset();
    {
      const auto handle = open_index();
      detail::wal::Chain chain;  // outlives the log, which knows it
      detail::wal::Log log(*pool_.core(), sptree::root_at(*pool_.core(), handle.root()).log, {0});
      log.add(chain);
      chain.assign(detail::wal::kMaxOwner);  // no leaf's
      for (unsigned stripe = 0; stripe < detail::wal::kStripes; ++stripe) {
        std::uint64_t at = 0;
        do {
          log.go_to(stripe);
          log.admit();
          log.append(chain, detail::wal::Type::erase_slot, 0, 0);
          at = detail::wal::place_in_segment(chain.head.load()) / sizeof(detail::wal::Record);
        } while (at + ahead != place);
        log.end(chain);
      }
    }
    open_tree(kBudget);
  }

 private:
  using Codec = detail::index::Bytes<T>;

  detail::pool::IndexHandle open_index() {
    return pool_.core()->open_index("t", sptree::kEngineName, kKindOf<T>, kKindOf<T>);
  }

  void open_tree(std::uint64_t budget) {
    SpTreeOptions options;
    options.dram_budget = budget;
    options.resume_in_background = false;
    tree_.emplace(open_index(), options, kFewRecords);
  }

  StepResult call(const Step& step) {
    const auto key = Codec::decode(step.key);
    switch (step.action & ~kSettled) {
      case kPutPair: tree_->put(key, Codec::decode(step.value)); return StepResult::write(true);
      case kErasePair: return StepResult::write(tree_->erase(key));
      case kReclaimSpace: tree_->reclaim_space(); return StepResult::write(false);
      case kOpenAgain: return open_again(step.value.size() % 3 == 0 ? 0 : kBudget);
      default: break;
    }
    const auto found = tree_->get(key);
    return StepResult::read(found ? std::optional(Codec::own(*found)) : std::nullopt);
  }

  StepResult open_again(std::uint64_t budget) {
    tree_.reset();
    settle(*pool_.core());
    open_tree(budget);
    return StepResult::write(false);
  }

  Pool pool_;
  std::optional<sptree::Tree<T, T>> tree_;
};

template <class T>
class LogUpkeepSubject final : public Subject {
 public:
  explicit LogUpkeepSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    keys_ = random.one_in(3) ? 8 : kIndexKeys;
    State state;
    OpenedSpTree<T> opened(medium, domain_);
    const auto fill = [&](std::uint64_t pairs) {
      for (; pairs > 0; --pairs) {
        const Step step{kPutPair | kSettled, any_key(random, 0, 1), value_of(random)};
        opened.apply(step);
        apply_effects(effects(step, state), state);
      }
    };
    fill(random.below(400));
    // Where a segment ends, or where the log needs the next one.
    const std::uint64_t place = random.one_in(2) ? kSegmentRecords : kSegmentRecords / 2;
    if (!random.one_in(4)) opened.fill_log(place, 1 + random.below(kMaxRecordsAhead));
    fill(random.below(20));
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedSpTree<T>>(medium, domain_);
  }

  Step next_step(detail::util::Random& random, const State&, unsigned thread,
                 unsigned threads) override {
    const std::string& key = any_key(random, thread, threads);
    const unsigned settled = threads == 1 ? kSettled : 0;
    if (random.one_in(20)) return {kReclaimSpace | settled, key, ""};
    if (threads == 1 && random.one_in(12))
      return {kOpenAgain | settled, key, std::string(random.below(3), 'x')};
    const auto action = random.one_in(3) ? kErasePair : random.one_in(8) ? kGetPair : kPutPair;
    return {action | settled, key, value_of(random)};
  }

  Effects effects(const Step& step, const State& state) const override {
    switch (step.action & ~kSettled) {
      case kPutPair: return {{step.key, step.value}};
      case kErasePair:
        return state.contains(step.key) ? Effects{{step.key, std::nullopt}} : Effects{};
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, 5> kNames = {"put", "erase", "get", "reclaim_space",
                                                          "reopen"};
    return fmt::format("{} of key {:?}", kNames[step.action & ~kSettled], step.key);
  }

 private:
  static std::string value_of(detail::util::Random& random) {
    if constexpr (std::is_same_v<T, std::string>) {
      return std::to_string(random());
    } else {
      return detail::index::Bytes<T>::own(random());
    }
  }

  const std::string& any_key(detail::util::Random& random, unsigned thread,
                             unsigned threads) const {
    return any_keys(kKindOf<T>)[random.below(keys_ / threads) * threads + thread];
  }

  detail::pm::Domain domain_;
  std::uint64_t keys_ = kIndexKeys;  // how many there are
};

}  // namespace

std::unique_ptr<Subject> make_log_upkeep_subject(Kind kind, detail::pm::Domain domain) {
  if (kind == Kind::u64) return std::make_unique<LogUpkeepSubject<std::uint64_t>>(domain);
  return std::make_unique<LogUpkeepSubject<std::string>>(domain);
}

}  // namespace perdix::testing
