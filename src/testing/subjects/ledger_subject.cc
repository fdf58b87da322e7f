#include "testing/subjects/ledger_subject.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "epoch/guard.h"
#include "index/nbtree/ledger.h"
#include "pm/access.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

using detail::index::nbtree::Ledger;

constexpr unsigned kSlots = 8;
constexpr unsigned kOthers = 8;
constexpr unsigned kMaxNames = 4;

/// What the root leads to. A slot or other is the offset of its block, or 0.
struct Table {
  detail::index::nbtree::Root root;
  std::array<detail::pm::Offset, kSlots> slots;
  std::array<detail::pm::Offset, kOthers> others;
};

/// On a separate line, roughly as the blocks of an index are.
struct alignas(detail::pm::kLineSize) Block {
  std::uint64_t number;
  std::uint64_t again;
};

enum Action : unsigned {
  kLink,      // a new block, in place of what the slot has
  kUnlink,    // what the slot has
  kGiveUp,    // names for what some slots have, perhaps a new block, and all that was for nothing
  kFree,      // what was unlinked, until others may have it
  kTake,      // the second table: a new block, in place of what it has there
  kGiveBack,  // the second table: what it has there
  kActions
};
/// Added to an action: afterwards, wait until what it freed may be used again, so that a run of one
/// thread depends on nothing else.
constexpr unsigned kSettle = 8;

std::string key_of(char table, unsigned i) { return fmt::format("{}{}", table, i); }
unsigned place_of(const std::string& key) {
  return static_cast<unsigned>(std::stoul(key.substr(1)));
}

class OpenedLedger final : public Opened {
 public:
  OpenedLedger(Medium& medium, detail::pm::Domain domain)
      : core_(detail::pool::PoolCore::open(medium.path(), pool_options(domain))),
        handle_(core_->open_index("ledger", "none", Kind::u64, Kind::u64)) {
    table_ = &root_of<Table>(*core_, *handle_);
    ledger_.emplace(*core_, table_->root);
    auto& unresolved = ledger_->unresolved(Ledger::Purpose::operation);
    for (const detail::pm::Offset& slot : table_->slots) unresolved.reached(detail::pm::load(slot));
    ledger_->resolve_all(Ledger::Purpose::operation);
  }

  State contents() override {
    State state;
    for (unsigned i = 0; i < kSlots; ++i) show(table_->slots[i], key_of('s', i), state);
    for (unsigned i = 0; i < kOthers; ++i) show(table_->others[i], key_of('o', i), state);
    return state;
  }

  Problems check() override {
    CheckReport report;
    core_->allocator().check(report);
    std::vector<detail::pm::Offset> in_use = {handle_->root()};
    const detail::pool::BlockVisitor add = [&](detail::pm::Offset block) {
      if (block != detail::pm::kNull) in_use.push_back(block);
    };
    for (const detail::pm::Offset& slot : table_->slots) add(detail::pm::load(slot));
    for (const detail::pm::Offset& other : table_->others) add(detail::pm::load(other));
    detail::index::ShownBlocks shown(add);
    ledger_->walk(shown);
    expect_allocated(core_->allocator(), std::move(in_use), report.problems);
    return report.problems;
  }

  StepResult apply(const Step& step) override {
    const bool changed = call(step);
    if ((step.action & kSettle) != 0) settle(*core_);
    return StepResult::write(changed);
  }

  Problems close() override {
    ledger_.reset();
    handle_.reset();
    core_->close();
    return {};
  }

  /// As a crash may leave it: the name of what a slot has, which was not unlinked after all.
  void leave_named(unsigned slot) {
    if (detail::pm::load(table_->slots[slot]) == detail::pm::kNull) return;
    Ledger::StripeLease lease(*ledger_, Ledger::Purpose::operation);
    lease.make_room(1);
    lease.name(0, detail::pm::load(table_->slots[slot]));
    core_->pm().fence();  // the name is durable, as it is before anything is unlinked
    lease.abandon();
  }

 private:
  /// Whether it has changed anything.
  bool call(const Step& step) {
    const auto number = [&] { return std::stoull(step.value); };
    switch (step.action & ~kSettle) {
      case kLink: link(place_of(step.key), number()); return true;
      case kUnlink: return unlink(place_of(step.key));
      case kGiveUp: give_up(place_of(step.key), number()); return false;
      case kFree: free_unlinked(); return false;
      case kTake: return replace_other(place_of(step.key), number());
      default: return replace_other(place_of(step.key), 0);
    }
  }

  void show(const detail::pm::Offset& word, const std::string& key, State& state) const {
    const detail::pm::Offset offset = detail::pm::load(word);
    if (offset == detail::pm::kNull) return;
    if (!core_->allocator().validate_block(offset, sizeof(Block))) {
      state[key] = "a block that is free";
      return;
    }
    const Block& block = *core_->at<Block>(offset);
    const std::uint64_t number = detail::pm::load(block.number);
    state[key] = number == detail::pm::load(block.again) ? std::to_string(number) : "a torn block";
  }

  detail::pm::Offset make(detail::alloc::Session& session, std::uint64_t number) {
    const detail::pm::Offset offset = session.reserve(sizeof(Block));
    Block& block = *core_->at<Block>(offset);
    core_->pm().store(block.number, number);
    core_->pm().store(block.again, number);
    core_->pm().flush(&block, sizeof block);  // not fenced: log() does it
    return offset;
  }

  void claim(Ledger::StripeLease& lease, std::uint64_t number) {
    lease.claim([&](detail::alloc::Session& session) {
      return std::array<detail::pm::Offset, 4>{make(session, number)};
    });
  }

  void link(unsigned i, std::uint64_t number) {
    const detail::epoch::Guard guard;
    Ledger::StripeLease lease(*ledger_, Ledger::Purpose::operation);
    lease.make_room(1);
    lease.name(0, detail::pm::load(table_->slots[i]));  // durable when the block is claimed
    claim(lease, number);
    core_->pm().publish(table_->slots[i], lease.claims()[0]);
    lease.linked();
    lease.unlinked();
  }

  bool unlink(unsigned i) {
    const detail::epoch::Guard guard;
    if (detail::pm::load(table_->slots[i]) == detail::pm::kNull) return false;
    Ledger::StripeLease lease(*ledger_, Ledger::Purpose::operation);
    lease.make_room(1);
    lease.name(0, detail::pm::load(table_->slots[i]));
    core_->pm().fence();  // before it is unlinked
    core_->pm().publish(table_->slots[i], detail::pm::kNull);
    lease.unlinked();
    return true;
  }

  /// As an operation that comes too late: what it has named, others may unlink at any time.
  void give_up(unsigned first, std::uint64_t number) {
    const detail::epoch::Guard guard;
    Ledger::StripeLease lease(*ledger_, Ledger::Purpose::operation);
    lease.make_room(kMaxNames);
    for (unsigned i = 0; i < kMaxNames; ++i)
      lease.name(i, detail::pm::load(table_->slots[(first + i) % kSlots]));
    if (number == 0) {
      core_->pm().fence();  // as before the block would be unlinked
    } else {
      claim(lease, number);
    }
    lease.unname();
    lease.unclaim();
  }

  void free_unlinked() {
    ledger_->free_unlinked();
    ledger_->free_empty_pages();
    settle(*core_);
  }

  /// A new block for the second table; 0: none.
  bool replace_other(unsigned i, std::uint64_t number) {
    detail::pm::Offset& word = table_->others[i];
    if (number == 0 && detail::pm::load(word) == detail::pm::kNull) return false;
    detail::alloc::Session session = core_->allocator().session();
    const detail::pm::Offset block = number == 0 ? detail::pm::kNull : make(session, number);
    if (detail::pm::load(word) != detail::pm::kNull) session.free(detail::pm::load(word));
    session.commit_when(word, ~std::uint64_t{0}, block);
    session.log();
    core_->pm().publish(word, block);  // the commit
    session.finish();
    return true;
  }

  std::shared_ptr<detail::pool::PoolCore> core_;
  std::optional<detail::pool::IndexHandle> handle_;
  Table* table_ = nullptr;
  std::optional<Ledger> ledger_;
};

class LedgerSubject final : public Subject {
 public:
  explicit LedgerSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    OpenedLedger opened(medium, domain_);
    State state;
    for (std::uint64_t i = random.below(30); i > 0; --i) {
      const Step step = next_step(random, state, 0, 1);
      opened.apply(step);
      apply_effects(effects(step, state), state);
    }
    for (std::uint64_t i = random.below(3); i > 0; --i)
      opened.leave_named(static_cast<unsigned>(random.below(kSlots)));
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedLedger>(medium, domain_);
  }

  /// Whatever a thread changes is its own; what it names need not be.
  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    static_assert(kSlots == kOthers);
    const auto own = static_cast<unsigned>(random.below(kSlots / threads)) * threads + thread;
    const std::uint64_t number = 1 + random.below(std::uint64_t{1} << 40);
    const unsigned settle = threads == 1 ? kSettle : 0;
    switch (random.below(6)) {
      case 0: return {kFree | settle, "", ""};
      case 1: {
        const auto first = static_cast<unsigned>(random.below(kSlots));
        return {kGiveUp | settle, key_of('s', first),
                std::to_string(random.one_in(2) ? number : 0)};
      }
      case 2:
      case 3: return change(kTake | settle, key_of('o', own), number, state, random);
      default: return change(kLink | settle, key_of('s', own), number, state, random);
    }
  }

  Effects effects(const Step& step, const State& state) const override {
    switch (step.action & ~kSettle) {
      case kLink:
      case kTake: return {{step.key, step.value}};
      case kUnlink:
      case kGiveBack:
        return state.contains(step.key) ? Effects{{step.key, std::nullopt}} : Effects{};
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, kActions> kNames = {"link", "unlink", "give_up",
                                                                 "free", "take",   "give_back"};
    return fmt::format("{}({}, {})", kNames[step.action & ~kSettle], step.key, step.value);
  }

 private:
  /// The action, or the one that follows it and undoes it.
  static Step change(unsigned action, const std::string& key, std::uint64_t number,
                     const State& state, detail::util::Random& random) {
    if (state.contains(key) && random.one_in(2)) return {action + 1, key, ""};
    return {action, key, std::to_string(number)};
  }

  detail::pm::Domain domain_;
};

}  // namespace

std::unique_ptr<Subject> make_ledger_subject(detail::pm::Domain domain) {
  return std::make_unique<LedgerSubject>(domain);
}

}  // namespace perdix::testing
