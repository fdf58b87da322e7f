// Kills processes that write to an Elf or an ElfTable at random moments, and verifies the table: it
// must have all acknowledged operations, and the one in flight entirely or not at all.
//
//   perdix_elf_kill [--table points|typed] [--kills N] [--seed S] [--domain D]
//
// The child has one thread that inserts, erases and builds, one that compacts all the time, and one
// that reads.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/perdix.h>

#include "index/elf/elf.h"
#include "kill/elf/workload.h"
#include "kill/process.h"
#include "pool/pool_core.h"
#include "support/domain.h"
#include "support/options.h"
#include "support/settings.h"
#include "support/temp_dir.h"

namespace perdix::test::kill::elf {
namespace {

using Columns = std::array<std::vector<std::uint32_t>, kDimensions>;

Columns columns_of(const std::vector<Row>& rows) {
  Columns columns;
  for (const Row& row : rows) {
    for (unsigned d = 0; d < kDimensions; ++d) columns[d].push_back(row[d]);
  }
  return columns;
}

/// A pool with an Elf of few rows in a segment and few words in a block.
class OpenedPoints {
 public:
  OpenedPoints(const std::filesystem::path& path, Domain domain)
      : pool_(Pool::open(path, options_for(domain))) {
    IndexInfo info{"t", std::string(detail::index::elf::kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    table_.emplace(pool_.core()->open_index(info), kDimensions, detail::index::elf::kSmallShape);
  }

  void build(const std::vector<Row>& rows) {
    const Columns columns = columns_of(rows);
    const std::array<std::span<const std::uint32_t>, kDimensions> spans = {columns[0], columns[1],
                                                                           columns[2]};
    table_->build(spans, nullptr);
  }
  std::uint32_t insert(const Row& row) { return table_->insert(row); }
  bool erase(std::uint32_t tid) { return table_->erase(tid); }
  void compact() { table_->compact(nullptr); }
  std::uint64_t count() const { return table_->count(table_->box()); }
  std::uint64_t size() const { return table_->size(); }
  std::vector<std::string> check() const { return table_->check().problems; }

  std::vector<std::uint32_t> find(const Row& row) const {
    detail::index::elf::Box box = table_->box();
    std::copy(row.begin(), row.end(), box.lower.begin());
    std::copy(row.begin(), row.end(), box.upper.begin());
    std::vector<std::uint32_t> tids;
    table_->collect(box, tids);
    return tids;
  }

  std::vector<std::string> check_pool() {
    table_.reset();
    return pool_.check().problems;
  }

 private:
  Pool pool_;
  std::optional<detail::index::elf::Table> table_;
};

/// A pool with an ElfTable, whose columns have dictionaries.
class OpenedTyped {
 public:
  OpenedTyped(const std::filesystem::path& path, Domain domain)
      : pool_(Pool::open(path, options_for(domain))) {
    table_.emplace(pool_, "t",
                   std::vector<ElfColumn>{
                       {"l", ElfType::int64}, {"s", ElfType::string}, {"g", ElfType::float64}});
  }

  void build(const std::vector<Row>& rows) {
    const Columns columns = columns_of(rows);
    const std::vector<std::int64_t> numbers(columns[0].begin(), columns[0].end());
    std::vector<std::string> words;
    for (const std::uint32_t value : columns[1]) words.push_back(std::to_string(value));
    const std::vector<double> doubles(columns[2].begin(), columns[2].end());
    table_->build({std::span(numbers), std::span<const std::string>(words), std::span(doubles)});
  }
  std::uint32_t insert(const Row& row) { return table_->insert(values_of(row)); }
  bool erase(std::uint32_t tid) { return table_->erase(tid); }
  void compact() { table_->compact(); }
  std::uint64_t count() const { return table_->count(); }
  std::uint64_t size() const { return table_->size(); }
  std::vector<std::string> check() const { return table_->check().problems; }

  std::vector<std::uint32_t> find(const Row& row) const {
    const ElfTable::Row values = values_of(row);
    return table_->select({ElfPredicate::equal("l", values[0]), ElfPredicate::equal("s", values[1]),
                           ElfPredicate::equal("g", values[2])});
  }

  std::vector<std::string> check_pool() {
    table_.reset();
    return pool_.check().problems;
  }

 private:
  static ElfTable::Row values_of(const Row& row) {
    return {std::int64_t{row[0]}, std::to_string(row[1]), static_cast<double>(row[2])};
  }

  Pool pool_;
  std::optional<ElfTable> table_;
};

// --- The child -----------------------------------------------------------------------------------

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

template <class Opened>
void execute(Opened& table, const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::build: return when_free([&] { table.build(operation.rows); });
    case Operation::Kind::insert:
      if (table.insert(operation.row) != operation.tid)
        throw std::runtime_error("an insert returned another row's number");
      return;
    case Operation::Kind::erase:
      if (!table.erase(operation.tid)) throw std::runtime_error("an erase found no row");
  }
}

template <class Opened>
int run_child(const Options& options) {
  const Sender sender;
  Opened table(options.text("pool"), *domain_named(options.text("domain")));
  const std::uint64_t first = options.number("from", 0);
  Workload workload(options.number("seed", 0));
  for (std::uint64_t i = 0; i < first; ++i) workload.next();
  sender.send(Record::Type::opened, 0, 0, 0);
  const auto guarded = [&](const auto& body) {
    try {
      for (;;) body();
    } catch (const std::exception& error) {
      sender.problem(error.what());
      ::_exit(1);
    }
  };
  std::jthread compactor([&] { guarded([&] { when_free([&] { table.compact(); }); }); });
  std::jthread reader([&] { guarded([&] { (void)table.count(); }); });
  std::uint64_t done = first;
  guarded([&] {
    const Operation operation = workload.next();
    execute(table, operation);
    sender.send(Record::Type::done, 0, 0, ++done);
  });
  return 0;
}

// --- The parent ----------------------------------------------------------------------------------

template <class Opened>
class Campaign {
 public:
  Campaign(std::string kind, Domain domain, std::uint64_t seed)
      : kind_(std::move(kind)), domain_(domain), seed_(seed), random_(seed), folder_(domain) {
    Pool::create(pool(), options_for(domain)).close();
  }

  /// Whether all is well.
  bool round() {
    const auto moment = std::chrono::microseconds(random_.below(60'000));
    run(moment);
    if (problems_.empty()) verify();
    return problems_.empty();
  }

  std::uint64_t acknowledged() const { return done_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::filesystem::path pool() const { return folder_.path() / "elf.pool"; }

  /// A third of the children are killed before they have opened the pool.
  void run(std::chrono::microseconds moment) {
    Process child({"--role", "child", "--table", kind_, "--pool", pool().string(), "--domain",
                   std::string(name_of(domain_)), "--seed", std::to_string(seed_), "--from",
                   std::to_string(done_)});
    bool opened = random_.below(3) == 0;
    const auto hang = std::chrono::steady_clock::now() + kHang;
    while (!opened && problems_.empty()) {
      if (std::chrono::steady_clock::now() > hang) problems_.push_back("an opening hangs");
      opened = read(child, std::chrono::milliseconds(100));
    }
    const auto end = std::chrono::steady_clock::now() + moment;
    while (std::chrono::steady_clock::now() < end) read(child, std::chrono::milliseconds(1));
    child.kill();
    while (child_runs_) read(child, kHang);
    child_runs_ = true;
    child.wait();
  }

  /// Takes what the child has sent. Returns whether it has opened the pool.
  bool read(Process& child, std::chrono::microseconds patience) {
    std::vector<Record> records;
    child_runs_ = child.receive(records, patience);
    bool opened = !child_runs_;
    for (const Record& record : records) {
      opened = opened || record.type == Record::Type::opened;
      if (record.type == Record::Type::done) done_ = record.payload;
      if (record.type == Record::Type::text)
        text_.append(reinterpret_cast<const char*>(&record.payload), 8);
      if (record.type == Record::Type::problem) problems_.push_back(text_.substr(0, record.number));
    }
    return opened;
  }

  void verify() {
    Opened table(pool(), domain_);
    for (const std::string& problem : table.check()) problems_.push_back(problem);
    Workload workload(seed_);
    for (std::uint64_t i = 0; i < done_; ++i) workload.next();
    if (!has(table, workload.rows())) {
      workload.next();
      if (!has(table, workload.rows())) {
        problems_.push_back(
            fmt::format("the rows are those after neither {} nor {} operations", done_, done_ + 1));
      }
      ++done_;
    }
    for (const std::string& problem : table.check_pool()) problems_.push_back(problem);
  }

  static bool has(const Opened& table, const Rows& rows) {
    if (table.size() != rows.size() || table.count() != rows.size()) return false;
    return std::all_of(rows.begin(), rows.end(), [&](const auto& entry) {
      const std::vector<std::uint32_t> tids = table.find(entry.second);
      return std::find(tids.begin(), tids.end(), entry.first) != tids.end();
    });
  }

  const std::string kind_;
  const Domain domain_;
  const std::uint64_t seed_;
  detail::util::Random random_;
  const TempDir folder_;
  std::uint64_t done_ = 0;
  bool child_runs_ = true;
  std::string text_;
  std::vector<std::string> problems_;
};

template <class Opened>
int run_parent(const Options& options, const std::string& kind) {
  const std::uint64_t seed = options.number("seed", test::seed());
  const std::uint64_t kills = options.number("kills", scaled(60));
  std::vector<Domain> domains(kAllDomains.begin(), kAllDomains.end());
  if (const auto domain = domain_named(options.text("domain"))) domains = {*domain};
  std::uint64_t acknowledged = 0;
  for (const Domain domain : domains) {
    Campaign<Opened> campaign(kind, domain, seed);
    for (std::uint64_t i = 0; i < kills / domains.size(); ++i) {
      if (campaign.round()) continue;
      for (const std::string& problem : campaign.problems()) fmt::print("FAILED: {}\n", problem);
      fmt::print("seed {}, domain {}, kill {}\n", seed, name_of(domain), i);
      return 1;
    }
    acknowledged += campaign.acknowledged();
  }
  fmt::print("seed {}: {} kills, {} operations acknowledged\n", seed, kills, acknowledged);
  return 0;
}

template <class Opened>
int run(const Options& options, const std::string& kind) {
  return options.text("role").empty() ? run_parent<Opened>(options, kind)
                                      : run_child<Opened>(options);
}

}  // namespace
}  // namespace perdix::test::kill::elf

int main(int argc, char** argv) {
  using namespace perdix::test;
  try {
    const Options options(argc, argv);
    const std::string kind = options.text("table").empty() ? "points" : options.text("table");
    if (kind == "points") return kill::elf::run<kill::elf::OpenedPoints>(options, kind);
    if (kind == "typed") return kill::elf::run<kill::elf::OpenedTyped>(options, kind);
    throw std::runtime_error("--table is points or typed");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
