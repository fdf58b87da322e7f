// An Elf and an ElfTable whose rows come, go and are built anew. Their contents are the rows by
// TID.
#include "index/elf/elf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <perdix/elf_table.h>
#include <perdix/error.h>

#include "index/elf/test_points.h"
#include "pool/pool_core.h"
#include "workloads/workloads.h"

namespace perdix::test {
namespace {

namespace elf = detail::index::elf;
using testing::Effects;
using testing::State;
using testing::Step;
using testing::StepResult;

constexpr unsigned kDimensions = 3;
using Row = elf::TestRow;
using Columns = std::array<std::vector<std::uint32_t>, kDimensions>;

enum RowAction : unsigned { kInsert, kErase, kBuild };

std::string tid_text(std::uint64_t tid) { return fmt::format("{:010}", tid); }
std::uint32_t number_of(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text));
}

/// A row as text has ten digits of each value, and a build has its rows one after the other.
constexpr std::size_t kDigits = 10, kRowText = kDigits * kDimensions;

std::string row_text(const Row& row) {
  return fmt::format("{:010}{:010}{:010}", row[0], row[1], row[2]);
}
Row row_of(const std::string& text) {
  Row row;
  for (unsigned d = 0; d < kDimensions; ++d)
    row.push_back(number_of(text.substr(d * kDigits, kDigits)));
  return row;
}

Columns columns_of(const std::string& rows) {
  Columns columns;
  for (std::size_t at = 0; at < rows.size(); at += kRowText) {
    const Row row = row_of(rows.substr(at, kRowText));
    for (unsigned d = 0; d < kDimensions; ++d) columns[d].push_back(row[d]);
  }
  return columns;
}

/// An Elf of few rows in a segment and few words in a block.
class Points {
 public:
  Points(const Pool& pool, const std::string& name) {
    IndexInfo info{name, std::string(elf::kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    table_.emplace(pool.core()->open_index(info), kDimensions, elf::kSmallShape);
  }

  void build(const Columns& columns) {
    const std::array<std::span<const std::uint32_t>, kDimensions> spans = {columns[0], columns[1],
                                                                           columns[2]};
    table_->build(spans, nullptr);
  }
  std::uint32_t insert(const Row& row) { return table_->insert(row); }
  bool erase(std::uint32_t tid) { return table_->erase(tid); }
  void compact() { table_->compact(nullptr); }
  std::uint64_t count() const { return table_->count(table_->box()); }
  std::uint64_t size() const { return table_->size(); }
  testing::Problems check() const { return table_->check().problems; }

  std::vector<std::uint32_t> find(const Row& row) const {
    elf::Box box = table_->box();
    std::copy(row.begin(), row.end(), box.lower.begin());
    std::copy(row.begin(), row.end(), box.upper.begin());
    std::vector<std::uint32_t> tids;
    table_->collect(box, tids);
    return tids;
  }

 private:
  std::optional<elf::Table> table_;
};

/// An ElfTable, whose columns have dictionaries.
class Typed {
 public:
  Typed(const Pool& pool, const std::string& name)
      : table_(pool, name,
               std::vector<ElfColumn>{
                   {"l", ElfType::int64}, {"s", ElfType::string}, {"g", ElfType::float64}}) {}

  void build(const Columns& columns) {
    const std::vector<std::int64_t> numbers(columns[0].begin(), columns[0].end());
    std::vector<std::string> words;
    for (const std::uint32_t value : columns[1]) words.push_back(std::to_string(value));
    const std::vector<double> doubles(columns[2].begin(), columns[2].end());
    table_.build({std::span(numbers), std::span<const std::string>(words), std::span(doubles)});
  }
  std::uint32_t insert(const Row& row) { return table_.insert(values_of(row)); }
  bool erase(std::uint32_t tid) { return table_.erase(tid); }
  void compact() { table_.compact(); }
  std::uint64_t count() const { return table_.count(); }
  std::uint64_t size() const { return table_.size(); }
  testing::Problems check() const { return table_.check().problems; }

  std::vector<std::uint32_t> find(const Row& row) const {
    const ElfTable::Row values = values_of(row);
    return table_.select({ElfPredicate::equal("l", values[0]), ElfPredicate::equal("s", values[1]),
                          ElfPredicate::equal("g", values[2])});
  }

 private:
  static ElfTable::Row values_of(const Row& row) {
    return {std::int64_t{row[0]}, std::to_string(row[1]), static_cast<double>(row[2])};
  }

  ElfTable table_;
};

/// Calls act() until no other thread builds or compacts.
template <class Act>
void when_free(const Act& act) {
  for (;;) {
    try {
      return act();
    } catch (const Error& error) {
      if (error.code() != Errc::in_use) throw;
      std::this_thread::yield();
    }
  }
}

template <class Table>
class RowsInstance final : public testing::Instance {
 public:
  RowsInstance(const Pool& pool, const std::string& name) : table_(pool, name) {}

  testing::Problems check() override { return table_.check(); }

  StepResult apply(const Step& step) override {
    switch (step.action) {
      case kInsert:
        if (table_.insert(row_of(step.value)) != number_of(step.key))
          throw std::runtime_error("an insert returned another row's number");
        return StepResult::write(true);
      case kErase: return StepResult::write(table_.erase(number_of(step.key)));
      default:
        when_free([&, columns = columns_of(step.value)] { table_.build(columns); });
        return StepResult::write(true);
    }
  }

  bool shows(const State& state) override {
    if (table_.size() != state.size() || table_.count() != state.size()) return false;
    return std::all_of(state.begin(), state.end(), [&](const auto& row) {
      const std::vector<std::uint32_t> tids = table_.find(row_of(row.second));
      return std::find(tids.begin(), tids.end(), number_of(row.first)) != tids.end();
    });
  }

  std::vector<std::function<void()>> companions() override {
    return {[this] { when_free([this] { table_.compact(); }); }, [this] { (void)table_.count(); }};
  }

  std::vector<testing::NamedCall> calls() override {
    const Row row(kDimensions, 1);
    return {{"insert", true, [=, this] { table_.insert(row); }},
            {"erase", true, [this] { table_.erase(0); }},
            {"build", true, [=, this] { table_.build(columns_of(row_text(row))); }},
            {"compact", true, [this] { table_.compact(); }},
            {"find", false, [=, this] { (void)table_.find(row); }},
            {"count", false, [this] { (void)table_.count(); }},
            {"size", false, [this] { (void)table_.size(); }},
            {"check", false, [this] { (void)table_.check(); }}};
  }

 private:
  Table table_;
};

class RowsWorkload final : public testing::Workload {
 public:
  Step next_step(detail::util::Random& random, const State& state, unsigned, unsigned) override {
    const std::uint64_t choice = random.below(200);
    if (choice == 0) {
      std::string rows;
      next_tid_ = 1 + random.below(100);
      for (std::uint64_t i = 0; i < next_tid_; ++i)
        rows += row_text(elf::random_row(random, kDimensions));
      return {kBuild, "", rows};
    }
    if (choice < 120 || state.empty())
      return {kInsert, tid_text(next_tid_++), row_text(elf::random_row(random, kDimensions))};
    auto row = state.lower_bound(tid_text(random.below(next_tid_)));
    if (row == state.end()) row = state.begin();
    return {kErase, row->first, ""};
  }

  Effects effects(const Step& step, const State& state) const override {
    if (step.action == kInsert) return {{step.key, step.value}};
    if (step.action == kErase) return {{step.key, std::nullopt}};
    Effects effects;
    for (const auto& row : state) effects.push_back({row.first, std::nullopt});
    for (std::size_t at = 0; at < step.value.size(); at += kRowText)
      effects.push_back({tid_text(at / kRowText), step.value.substr(at, kRowText)});
    return effects;
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, 3> kNames = {"insert", "erase", "build"};
    return fmt::format("{} {} {}", kNames[step.action], step.key, step.value);
  }

 private:
  std::uint64_t next_tid_ = 0;
};

template <class Table>
WorkloadEntry entry_of(const char* name) {
  return {name, std::chrono::milliseconds(60), [] { return std::make_unique<RowsWorkload>(); },
          [](const Pool& pool, const std::string& in_pool) {
            return std::make_unique<RowsInstance<Table>>(pool, in_pool);
          }};
}

}  // namespace

std::vector<WorkloadEntry> elf_workloads() {
  return {entry_of<Points>("elf"), entry_of<Typed>("elf_table")};
}

}  // namespace perdix::test
