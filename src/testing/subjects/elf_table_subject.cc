#include "testing/subjects/elf_table_subject.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/elf_table.h>
#include <perdix/error.h>
#include <perdix/pool.h>

#include "pool/pool_core.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

constexpr unsigned kTableKeys = 40;
constexpr unsigned kMaxRowsBuilt = 20;

/// A drop takes all rows along, so that little is left to explore after it.
constexpr unsigned kDropInterval = 40;

enum TableAction : unsigned { kAddRow, kRemoveRow, kGetRow, kFold, kRebuild, kDropTable };

std::string table_key(std::uint64_t number) { return fmt::format("{:02}", number); }

/// The number that keys share; negative ones come first.
std::int32_t group_of(const std::string& key) { return std::stoi(key) % 5 - 2; }

ElfTable::Row table_row(const std::string& key, const std::string& value) {
  return {group_of(key), key, value};
}

class OpenedTable final : public Opened {
 public:
  OpenedTable(Medium& medium, detail::pm::Domain domain, bool settles)
      : pool_(Pool::open(medium.path(), pool_options(domain))), settles_(settles) {
    open();
    settle(*pool_.core());
  }

  State contents() override {
    State state;
    table_->rows({}, [&](std::uint32_t, std::span<const ElfValue> row) {
      const bool added =
          state.emplace(std::get<std::string>(row[1]), std::get<std::string>(row[2])).second;
      if (!added) state["a key twice"] = std::get<std::string>(row[1]);
      return true;
    });
    return state;
  }

  Problems check() override {
    Problems problems = table_->check().problems;
    const State state = contents();
    if (table_->size() != state.size() || table_->count() != state.size())
      problems.emplace_back("size, count and contents do not agree");
    for (const auto& [key, value] : state) {
      if (read(key) != value) problems.push_back("a query does not find the row of " + key);
    }
    return problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = call(step);
    if (settles_) settle(*pool_.core());
    return result;
  }

  Problems close() override {
    table_.reset();
    Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

 private:
  void open() {
    table_.emplace(
        pool_, "t",
        std::vector<ElfColumn>{
            {"group", ElfType::int32}, {"key", ElfType::string}, {"value", ElfType::string}});
  }

  StepResult call(const Step& step) {
    switch (step.action) {
      case kAddRow:
        if (find(step.key)) return StepResult::write(false);
        table_->insert(table_row(step.key, step.value));
        return StepResult::write(true);
      case kRemoveRow: {
        const auto tid = find(step.key);
        return StepResult::write(tid && table_->erase(*tid));
      }
      case kGetRow: return StepResult::read(read(step.key));
      case kFold: fold(); return StepResult::write(false);
      case kDropTable: return StepResult::write(drop());
      default: rebuild(step); return StepResult::write(true);
    }
  }

  static std::vector<ElfPredicate> where(const std::string& key) {
    return {ElfPredicate::equal("group", group_of(key)), ElfPredicate::equal("key", key)};
  }

  std::optional<std::uint32_t> find(const std::string& key) const {
    const auto tids = table_->select(where(key));
    return tids.empty() ? std::nullopt : std::optional(tids.front());
  }

  std::optional<std::string> read(const std::string& key) const {
    std::optional<std::string> value;
    table_->rows(where(key), [&](std::uint32_t, std::span<const ElfValue> row) {
      value = std::get<std::string>(row[2]);
      return false;
    });
    return value;
  }

  /// Another thread may be compacting.
  void fold() {
    unless_in_use([&] { table_->compact(); });
  }

  /// The table goes, and an empty one takes its name. True if rows went with it.
  bool drop() {
    const bool changes = table_->size() > 0;
    drop_and_open(pool_, table_, [&] { open(); });
    return changes;
  }

  /// As many keys as the step says, each with its value.
  void rebuild(const Step& step) {
    std::vector<std::int32_t> groups;
    std::vector<std::string> keys, values;
    for (unsigned i = 0; i < std::stoul(step.key); ++i) {
      keys.push_back(table_key(i));
      groups.push_back(group_of(keys.back()));
      values.push_back(step.value);
    }
    table_->build({std::span<const std::int32_t>(groups), std::span<const std::string>(keys),
                   std::span<const std::string>(values)});
  }

  Pool pool_;
  const bool settles_;
  std::optional<ElfTable> table_;
};

class ElfTableSubject final : public Subject {
 public:
  explicit ElfTableSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    settles_ = true;
    State state;
    if (random.one_in(4)) return state;  // the first opening creates the table
    OpenedTable opened(medium, domain_, true);
    for (std::uint64_t steps = random.below(50); steps > 0; --steps) {
      const Step step = next_step(random, state, 0, 1);
      opened.apply(step);
      apply_effects(effects(step, state), state);
    }
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedTable>(medium, domain_, settles_);
  }

  Step next_step(detail::util::Random& random, const State&, unsigned thread,
                 unsigned threads) override {
    settles_ = threads == 1;
    if (threads == 1 && random.one_in(kDropInterval)) return {kDropTable, "0", ""};
    const std::string own = table_key(random.below(kTableKeys / threads) * threads + thread);
    // Some values are words that a dictionary has.
    const std::string value = std::string(random.below(3), 'v') + std::to_string(random.below(99));
    const std::uint64_t choice = random.below(20);
    if (choice == 0 && threads == 1)
      return {kRebuild, std::to_string(1 + random.below(kMaxRowsBuilt)), value};
    const unsigned action = choice < 9    ? kAddRow
                            : choice < 14 ? kRemoveRow
                            : choice < 17 ? kGetRow
                                          : kFold;
    return {action, own, value};
  }

  Effects effects(const Step& step, const State& state) const override {
    const bool there = state.contains(step.key);
    if (step.action == kAddRow && !there) return {{step.key, step.value}};
    if (step.action == kRemoveRow && there) return {{step.key, std::nullopt}};
    if (step.action != kRebuild && step.action != kDropTable) return {};
    Effects effects;
    const std::uint64_t rows = std::stoul(step.key);
    for (std::uint64_t i = 0; i < kTableKeys; ++i) {
      if (i < rows) effects.push_back({table_key(i), step.value});
      if (i >= rows && state.contains(table_key(i)))
        effects.push_back({table_key(i), std::nullopt});
    }
    return effects;
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, 6> kNames = {"insert",  "erase", "read",
                                                          "compact", "build", "drop"};
    return fmt::format("{} {} {}", kNames[step.action], step.key, step.value);
  }

 private:
  detail::pm::Domain domain_;
  bool settles_ = true;
};

}  // namespace

std::unique_ptr<Subject> make_elf_table_subject(detail::pm::Domain domain) {
  return std::make_unique<ElfTableSubject>(domain);
}

}  // namespace perdix::testing
