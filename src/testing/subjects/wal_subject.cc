#include "testing/subjects/wal_subject.h"

#include <array>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pm/access.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"
#include "wal/log.h"
#include "wal/owned_block.h"

namespace perdix::testing {
namespace {

using detail::wal::Word;

constexpr unsigned kLeaves = 16;
constexpr unsigned kKeys = 3;
constexpr std::uint64_t kRecordsPerSegment =
    detail::wal::kSegmentSize / sizeof(detail::wal::Record);
/// So few that a workload nearly always gets beyond them.
constexpr std::uint64_t kRecordsAhead = 4;
const detail::wal::Log::Limits kLimits{std::uint64_t{8} << 20};

/// A value is absent, a number, or a number in a block.
constexpr Word kAbsent = 0;
constexpr Word kInBlock = std::uint64_t{1} << 63;

enum Action : unsigned {
  kPut,
  kPutBlock,
  kErase,
  kMerge,
  kCheckpoint,
  kReclaim,
  kReopen,
  kReplace,
  kActions
};
/// Added to an action: afterwards, wait until what it freed may be used again, so that a run of one
/// thread depends on nothing else.
constexpr unsigned kSettle = 16;

/// What the index's root leads to.
struct Root {
  std::uint64_t log;
  std::uint64_t replacing;  ///< 1: the log is empty, and being destroyed
  std::uint64_t seed;       ///< of the last log that was begun
  std::array<std::array<Word, kKeys>, kLeaves> leaves;
};

/// The stripes at which records are appended: so few that writers meet in one, and chains lie in
/// both.
constexpr unsigned kStripes = 2;

detail::wal::Owner owner_of(unsigned leaf) { return leaf + 1; }

std::string key_of(unsigned leaf, unsigned key) { return fmt::format("{}/{}", leaf, key); }

unsigned leaf_of(const std::string& key) { return static_cast<unsigned>(std::stoul(key)); }

unsigned slot_of(const std::string& key) {
  return static_cast<unsigned>(std::stoul(key.substr(key.find('/') + 1)));
}

class OpenedWal final : public Opened {
 public:
  OpenedWal(Medium& medium, detail::pm::Domain domain)
      : core_(detail::pool::PoolCore::open(medium.path(), pool_options(domain))),
        handle_(core_->open_index("log", "none", Kind::u64, Kind::u64)) {
    root_ = &root_of<Root>(*core_, *handle_);
    if (detail::pm::load(root_->replacing) != 0) replace_log();
    if (detail::pm::load(root_->log) == detail::pm::kNull) make_log();
    open_log();
  }

  State contents() override {
    State state;
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) {
      const Values values = read(leaf);
      for (unsigned key = 0; key < kKeys; ++key) {
        if (values[key] != kAbsent) state[key_of(leaf, key)] = text_of(values[key]);
      }
    }
    return state;
  }

  Problems check() override {
    CheckReport report;
    log_->check(report);
    core_->allocator().check(report);
    std::vector<detail::pm::Offset> in_use = {handle_->root()};
    log_->for_each_block([&](detail::pm::Offset block) { in_use.push_back(block); });
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) {
      for (const Word value : read(leaf)) {
        if ((value & kInBlock) != 0) in_use.push_back(value & ~kInBlock);
      }
    }
    expect_allocated(core_->allocator(), std::move(in_use), report.problems);
    return report.problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = call(step);
    if ((step.action & kSettle) != 0) settle(*core_);
    return result;
  }

  Problems close() override {
    log_.reset();
    handle_.reset();
    core_->close();
    return {};
  }

  /// Appends records of a leaf that have no effect: fills some segments of a stripe, and one up to
  /// a place.
  void fill(unsigned stripe, unsigned leaf, std::uint64_t segments, std::uint64_t place) {
    detail::wal::Position last = 0;
    for (std::uint64_t i = 0;
         i < segments * kRecordsPerSegment || detail::wal::place_in_segment(last) != place; ++i) {
      log_->go_to(stripe);
      log_->admit();
      log_->append(chain_of(leaf), detail::wal::Type::erase_slot, 0, i);
      last = chain_of(leaf).head.load();
    }
    log_->go_to(stripe);
    merge(leaf);
  }

  /// No chain holds anything back, so all segments but the last are freed, and can be used again.
  void clean() {
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) merge(leaf);
    log_->checkpoint();
    log_->reclaim();
    settle(*core_);
  }

 private:
  using Values = std::array<Word, kKeys>;

  StepResult call(const Step& step) {
    // Of the step alone, so that a run can be repeated.
    log_->go_to(static_cast<unsigned>(std::hash<std::string>()(step.key + step.value) % kStripes));
    switch (step.action & ~kSettle) {
      case kMerge: merge(leaf_of(step.key)); break;
      case kCheckpoint: log_->checkpoint(); break;
      case kReclaim: log_->reclaim(); break;
      case kReopen: open_log(); break;
      case kReplace: merge_all_and_replace(); break;
      default: return StepResult::write(change(step));
    }
    return StepResult::write(false);
  }

  // --- The log's life ---

  void make_log() {
    const std::uint64_t seed = detail::pm::load(root_->seed) + 1;
    core_->pm().publish(root_->seed, seed);  // never the same again, whatever becomes of this one
    link_block(*core_, root_->log, [&](detail::alloc::Session& session) {
      return detail::wal::Log::create(session, *core_, seed);
    });
  }

  /// Goes on where a crash interrupted it.
  void replace_log() {
    if (detail::pm::load(root_->log) != detail::pm::kNull) {
      detail::wal::for_each_owner(*core_, root_->log, [&](std::uint64_t& word, std::uint64_t) {
        detail::wal::free_from(*core_, word);
      });
    }
    make_log();
    core_->pm().publish(root_->replacing, 0);  // only now there is a log that can be opened
  }

  void merge_all_and_replace() {
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) merge(leaf);
    log_.reset();
    core_->pm().publish(root_->replacing, 1);  // what is left of a log can't be opened
    replace_log();
    open_log();
  }

  void open_log() {
    log_.reset();
    chains_ = {};
    spare_.clear();
    log_.emplace(*core_, root_->log, kLimits);
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) {
      all_.at(leaf) = std::make_unique<detail::wal::Chain>();
      log_->add(*all_[leaf]);
      spare_.push_back(all_[leaf].get());
    }
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) adopt(leaf);
    log_->resumed();
    for (unsigned leaf = 0; leaf < kLeaves; ++leaf) values_[leaf] = read(leaf);
  }

  void adopt(unsigned leaf) {
    const detail::wal::Owner owner = owner_of(leaf);
    const detail::wal::Position head = log_->surviving(owner);
    if (head == 0) return;
    chains_[leaf] = spare_.back();
    spare_.pop_back();
    log_->adopt(*chains_[leaf], owner, head);
  }

  // --- Leaves ---

  /// Chains go from leaf to leaf, as buffers do.
  detail::wal::Chain& chain_of(unsigned leaf) {
    if (chains_[leaf] == nullptr) {
      const std::lock_guard guard(spare_lock_);
      chains_[leaf] = spare_.back();
      spare_.pop_back();
      chains_[leaf]->assign(owner_of(leaf));
    }
    return *chains_[leaf];
  }

  /// The chain's newest values, else the leaf's.
  Values read(unsigned leaf) const {
    Values values = root_->leaves[leaf];
    const detail::wal::Chain* chain = chains_[leaf];
    if (chain == nullptr) return values;
    std::array<bool, kKeys> seen{};
    log_->follow(owner_of(leaf), chain->head.load(),
                 [&](detail::wal::Type type, Word key, Word value, detail::wal::Position) {
                   if (type == detail::wal::Type::erase_slot || std::exchange(seen.at(key), true))
                     return;
                   values[key] = value;
                 });
    return values;
  }

  std::string text_of(Word value) const {
    if ((value & kInBlock) == 0) return fmt::format("number {}", value);
    const detail::pm::Offset block = value & ~kInBlock;
    if (!core_->allocator().validate_block(block, sizeof(Word))) return "a block that is free";
    return fmt::format("block {}", detail::pm::load(*core_->at<Word>(block)));
  }

  bool change(const Step& step) {
    const unsigned leaf = leaf_of(step.key), key = slot_of(step.key);
    const Word old = values_[leaf][key];
    const unsigned action = step.action & ~kSettle;
    if (action == kErase && old == kAbsent) return false;
    const Word number = action == kErase ? kAbsent : std::stoull(step.value);
    if (!log_->admit()) throw std::logic_error("the log is full");
    detail::wal::Chain& chain = chain_of(leaf);
    const auto type = action == kErase ? detail::wal::Type::erase_key : detail::wal::Type::put;
    if (action != kPutBlock && (old & kInBlock) == 0) {
      log_->append(chain, type, key, number);
      values_[leaf][key] = number;
      return true;
    }
    detail::alloc::Session session = core_->allocator().session();
    const Word value = action == kPutBlock ? write_block(session, number) : number;
    if ((old & kInBlock) != 0) session.free(old & ~kInBlock);
    log_->append(chain, type, key, value, session);
    values_[leaf][key] = value;
    return true;
  }

  Word write_block(detail::alloc::Session& session, Word number) {
    const detail::pm::Offset block = session.reserve(sizeof(Word));
    core_->pm().store(*core_->at<Word>(block), number);
    core_->pm().flush(core_->at<Word>(block), sizeof(Word));  // not fenced: append() does it
    return block | kInBlock;
  }

  void merge(unsigned leaf) {
    if (chains_[leaf] == nullptr) return;
    for (unsigned key = 0; key < kKeys; ++key) {
      core_->pm().store(root_->leaves[leaf][key], values_[leaf][key]);
    }
    core_->pm().persist(&root_->leaves[leaf], sizeof(Values));  // before the chain ends
    log_->end(*chains_[leaf]);
    const std::lock_guard guard(spare_lock_);
    chains_[leaf]->assign(0);
    spare_.push_back(std::exchange(chains_[leaf], nullptr));
  }

  std::shared_ptr<detail::pool::PoolCore> core_;
  std::optional<detail::pool::IndexHandle> handle_;
  Root* root_ = nullptr;
  std::optional<detail::wal::Log> log_;
  std::array<std::unique_ptr<detail::wal::Chain>, kLeaves> all_;
  std::array<detail::wal::Chain*, kLeaves> chains_{};
  std::mutex spare_lock_;
  std::vector<detail::wal::Chain*> spare_;  // guarded by spare_lock_
  std::array<Values, kLeaves> values_{};    // a leaf's: of the thread that changes it
};

class WalSubject final : public Subject {
 public:
  explicit WalSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    OpenedWal opened(medium, domain_);
    State state;
    for (std::uint64_t i = random.below(10); i > 0; --i) take(opened, random, state);
    // Soon one needs a segment, or begins the next one, or frees the first.
    if (!random.one_in(4)) fill(opened, random);
    for (std::uint64_t i = random.below(10); i > 0; --i) take(opened, random, state);
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedWal>(medium, domain_);
  }

  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    const auto leaf = static_cast<unsigned>(random.below(kLeaves / threads)) * threads + thread;
    const std::string key = key_of(leaf, static_cast<unsigned>(random.below(kKeys)));
    const unsigned settle = threads == 1 ? kSettle : 0;
    const std::string number = std::to_string(1 + random.below(std::uint64_t{1} << 40));
    if (threads == 1 && random.one_in(60)) return {kReplace | settle, "", ""};
    if (threads == 1 && random.one_in(15)) return {kReopen | settle, "", ""};
    if (random.one_in(6)) return {kCheckpoint | settle, "", ""};
    if (random.one_in(6)) return {kReclaim | settle, "", ""};
    if (random.one_in(3)) return {kMerge | settle, key, number};  // the number: for the stripe
    const unsigned action = state.contains(key) && random.one_in(3)
                                ? kErase
                                : static_cast<unsigned>(random.below(kErase));
    return {action | settle, key, number};
  }

  Effects effects(const Step& step, const State& state) const override {
    switch (step.action & ~kSettle) {
      case kPut: return {{step.key, "number " + step.value}};
      case kPutBlock: return {{step.key, "block " + step.value}};
      case kErase: return state.contains(step.key) ? Effects{{step.key, std::nullopt}} : Effects{};
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, kActions> kNames = {
        "put", "put_block", "erase", "merge", "checkpoint", "reclaim", "reopen", "replace"};
    return fmt::format("{}({}, {})", kNames[step.action & ~kSettle], step.key, step.value);
  }

 private:
  static void fill(OpenedWal& opened, detail::util::Random& random) {
    const auto stripe = static_cast<unsigned>(random.below(kStripes));
    const auto leaf = static_cast<unsigned>(random.below(kLeaves));
    // Mostly enough that the next ring words are not in the line of the stripe's start.
    opened.fill(stripe, leaf, random.one_in(3) ? random.below(4) : 7 + random.below(3), 0);
    // Then segments that were freed are used again, while those of positions behind them are not;
    // and others are behind the start, to be freed by the next reclamation.
    const bool clean = !random.one_in(3);
    if (clean) opened.clean();
    // Shortly before the headroom ends, or the segment.
    const std::uint64_t place =
        random.one_in(2) ? detail::wal::kSegmentSize : detail::wal::kSegmentSize / 4 * 3;
    opened.fill(stripe, leaf, clean ? 1 + random.below(2) : random.below(3),
                place - (1 + random.below(kRecordsAhead)) * sizeof(detail::wal::Record));
  }

  void take(OpenedWal& opened, detail::util::Random& random, State& state) {
    const Step step = next_step(random, state, 0, 1);
    opened.apply(step);
    apply_effects(effects(step, state), state);
  }

  detail::pm::Domain domain_;
};

}  // namespace

std::unique_ptr<Subject> make_wal_subject(detail::pm::Domain domain) {
  return std::make_unique<WalSubject>(domain);
}

}  // namespace perdix::testing
