#include "testing/subjects/elf_subject.h"

#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/pool.h>

#include "index/elf/elf.h"
#include "index/elf/test_points.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

namespace elf = detail::index::elf;

constexpr unsigned kElfKeys = 60;
constexpr unsigned kElfDimensions = 3;
constexpr unsigned kSharedKeys = 12;
constexpr unsigned kMaxBuiltRows = 25;

/// A drop takes all rows along, so that little is left to explore after it.
constexpr unsigned kDropInterval = 40;

enum ElfAction : unsigned { kInsertRow, kEraseRow, kReadRow, kCompact, kBuild, kDrop };

using ElfRow = std::array<std::uint32_t, kElfDimensions>;

std::string row_key(std::uint32_t number) { return fmt::format("{:02}", number); }

std::uint32_t as_number(std::string_view text) {
  return static_cast<std::uint32_t>(std::stoul(std::string(text)));
}

/// Key 59 has the greatest values.
ElfRow row_of(std::string_view key, std::string_view value) {
  const std::uint32_t number = as_number(key);
  return {number % 5, number == kElfKeys - 1 ? ~std::uint32_t{0} : number, as_number(value)};
}

/// The rows of a build: "key=value" with spaces between.
Effects rows_of(std::string_view text) {
  Effects rows;
  while (!text.empty()) {
    const std::string_view row = text.substr(0, text.find(' '));
    const auto equals = row.find('=');
    rows.push_back({std::string(row.substr(0, equals)), std::string(row.substr(equals + 1))});
    text.remove_prefix(std::min(text.size(), row.size() + 1));
  }
  return rows;
}

class OpenedElf final : public Opened {
 public:
  OpenedElf(Medium& medium, detail::pm::Domain domain, bool settles)
      : pool_(Pool::open(medium.path(), pool_options(domain))),
        settles_(settles),
        last_values_(kElfKeys) {
    open();
    settle(*pool_.core());
  }

  /// A row shows its number only, so each value is looked for.
  State contents() override {
    State state;
    for (std::uint32_t number = 0; number < kElfKeys; ++number) {
      if (const auto value = read(row_key(number))) state.emplace(row_key(number), *value);
    }
    return state;
  }

  Problems check() override {
    Problems problems = table_->check().problems;
    const std::uint64_t rows = table_->count(table_->box());
    if (table_->size() != rows || contents().size() != rows)
      problems.emplace_back("size, count and contents do not agree");
    return problems;
  }

  /// What a crash left of a table is freed before another is built, as an insert may do, and can be
  /// had again: else the clock decides whether the build uses it.
  StepResult apply(const Step& step) override {
    if (settles_ && step.action != kEraseRow && step.action != kReadRow) {
      table_->reclaim_space();
      settle(*pool_.core());
    }
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
    forget_values();
    IndexInfo info{"t", std::string(elf::kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    table_.emplace(pool_.core()->open_index(info), kElfDimensions, elf::kSmallShape);
  }

  StepResult call(const Step& step) {
    switch (step.action) {
      case kInsertRow:
        if (find(step.key)) return StepResult::write(false);
        last_values_[as_number(step.key)] = as_number(step.value);  // before a reader can see it
        table_->insert(row_of(step.key, step.value));
        return StepResult::write(true);
      case kEraseRow: {
        const auto tid = find(step.key);
        return StepResult::write(tid && table_->erase(*tid));
      }
      case kReadRow: return StepResult::read(read(step.key));
      case kCompact: compact(); return StepResult::write(false);
      case kDrop: return StepResult::write(drop());
      default: build(step); return StepResult::write(true);
    }
  }

  elf::Box box_of(std::string_view key) const {
    elf::Box box = table_->box();
    const ElfRow row = row_of(key, "0");
    for (const unsigned d : {0, 1}) box.lower[d] = box.upper[d] = row[d];
    return box;
  }

  std::optional<elf::Tid> find(std::string_view key) const {
    std::vector<elf::Tid> tids;
    table_->collect(box_of(key), tids);
    return tids.empty() ? std::nullopt : std::optional(tids.front());
  }

  /// Few events, so that a reader can return while a writer is between making a change visible and
  /// making it durable: only the row of the last insert is looked for. Rows before it were erased
  /// before it began; if it is gone, and no other insert has begun, the key has none.
  std::optional<std::string> read(std::string_view key) const {
    const std::atomic<std::uint64_t>& last = last_values_[as_number(key)];
    for (;;) {
      const std::uint64_t value = last;
      if (value == kNone) return search(key);
      const std::string text = std::to_string(value);
      if (table_->exact(row_of(key, text))) return text;
      if (last == value) return std::nullopt;
    }
  }

  /// Halves the bounds of the value until no other is within them. In the end the row is seen as a
  /// whole, unless another thread has changed it in between.
  std::optional<std::string> search(std::string_view key) const {
    for (;;) {
      elf::Box box = box_of(key);
      if (table_->count(box) == 0) return std::nullopt;
      std::uint32_t lower = 0;
      std::uint32_t upper = ~std::uint32_t{0};
      while (lower < upper) {
        const std::uint32_t middle = lower + (upper - lower) / 2;
        box.lower[2] = lower;
        box.upper[2] = middle;
        const bool below = table_->count(box) > 0;
        (below ? upper : lower) = below ? middle : middle + 1;
      }
      const std::string value = std::to_string(lower);
      if (table_->exact(row_of(key, value))) return value;
    }
  }

  /// Another thread may be compacting.
  void compact() {
    unless_in_use([&] { table_->compact(nullptr); });
  }

  /// The table goes, and an empty one takes its name. True if rows went with it.
  bool drop() {
    const bool changes = table_->size() > 0;
    drop_and_open(pool_, table_, [&] { open(); });
    return changes;
  }

  void build(const Step& step) {
    std::array<std::vector<std::uint32_t>, kElfDimensions> columns;
    for (const auto& [key, value] : rows_of(step.value)) {
      const ElfRow row = row_of(key, *value);
      for (unsigned d = 0; d < kElfDimensions; ++d) columns[d].push_back(row[d]);
    }
    const std::array<std::span<const std::uint32_t>, kElfDimensions> spans = {
        columns[0], columns[1], columns[2]};
    table_->build(spans, nullptr);
    forget_values();
  }

  void forget_values() {
    for (auto& value : last_values_) value = kNone;
  }

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Pool pool_;
  const bool settles_;
  std::optional<elf::Table> table_;
  std::vector<std::atomic<std::uint64_t>> last_values_;  // given to insert(); or kNone
};

class ElfSubject final : public Subject {
 public:
  explicit ElfSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    settles_ = true;
    contested_ = random.one_in(2);
    State state;
    if (random.one_in(4)) return state;  // the first opening creates the table
    OpenedElf opened(medium, domain_, true);
    for (std::uint64_t steps = random.below(60); steps > 0; --steps) {
      const Step step = next_step(random, state, 0, 1);
      opened.apply(step);
      apply_effects(effects(step, state), state);
    }
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedElf>(medium, domain_, settles_);
  }

  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    settles_ = threads == 1;
    if (contested_ && threads > 1) return contested_step(random, state, thread);
    if (threads == 1 && random.one_in(kDropInterval)) return {kDrop, "", ""};
    // Several threads read few rows, and often, so that they see each other's steps.
    const unsigned keys = threads == 1 ? kElfKeys : kSharedKeys;
    const auto own = static_cast<std::uint32_t>(random.below(keys / threads) * threads + thread);
    const auto any = static_cast<std::uint32_t>(random.below(keys));
    const std::uint64_t choice = random.below(20);
    if (choice == 0 && threads == 1) return {kBuild, "", some_rows(random)};
    const std::uint64_t writes = threads == 1 ? 15 : 10;
    const unsigned action = choice < writes / 3 * 2 ? kInsertRow
                            : choice < writes       ? kEraseRow
                            : choice < 18           ? kReadRow
                                                    : kCompact;
    return {action, row_key(action == kReadRow ? any : own), new_value(random)};
  }

  Effects effects(const Step& step, const State& state) const override {
    const bool there = state.contains(step.key);
    if (step.action == kInsertRow && !there) return {{step.key, step.value}};
    if (step.action == kEraseRow && there) return {{step.key, std::nullopt}};
    if (step.action != kBuild && step.action != kDrop) return {};
    Effects effects = rows_of(step.value);  // of a drop: none
    State built;
    apply_effects(effects, built);
    for (const auto& [key, value] : state) {
      if (!built.contains(key)) effects.push_back({key, std::nullopt});
    }
    return effects;
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, 6> kNames = {"insert",  "erase", "read",
                                                          "compact", "build", "drop"};
    return fmt::format("{} {} {}", kNames[step.action], step.key, step.value);
  }

 private:
  /// The first thread has a row that comes and goes, at which all others look.
  static Step contested_step(detail::util::Random& random, const State& state, unsigned thread) {
    const std::string key = row_key(0);
    if (thread != 0) return {kReadRow, key, ""};
    if (random.one_in(16)) return {kCompact, key, ""};
    return {state.contains(key) ? kEraseRow : kInsertRow, key, new_value(random)};
  }

  static std::string new_value(detail::util::Random& random) {
    return std::to_string(static_cast<std::uint32_t>(random()));
  }

  /// At least one, so that a build has effects.
  static std::string some_rows(detail::util::Random& random) {
    std::string text;
    const std::uint64_t stride = 1 + random.below(5);
    for (std::uint64_t i = 0, rows = 1 + random.below(kMaxBuiltRows); i < rows; ++i) {
      const std::uint64_t number = i * stride;
      if (number >= kElfKeys) break;
      text += fmt::format("{}{}={}", text.empty() ? "" : " ",
                          row_key(static_cast<std::uint32_t>(number)), new_value(random));
    }
    return text;
  }

  detail::pm::Domain domain_;
  bool settles_ = true;
  bool contested_ = false;
};

}  // namespace

std::unique_ptr<Subject> make_elf_subject(detail::pm::Domain domain) {
  return std::make_unique<ElfSubject>(domain);
}

}  // namespace perdix::testing
