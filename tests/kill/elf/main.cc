// Kills processes that write to an Elf, at random moments, and verifies what they leave: all
// operations that were acknowledged, and the one in flight wholly or not at all.
//
//   perdix_elf_kill [--kills N] [--seed S] [--domain D]
//
// The child has one thread that inserts, erases and builds, one that compacts all the time, and one
// that reads.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

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

using detail::index::elf::Table;

/// A pool with a table of few rows in a segment and few words in a block.
class OpenedTable {
 public:
  OpenedTable(const std::filesystem::path& path, Domain domain)
      : pool_(Pool::open(path, options_for(domain))) {
    IndexInfo info{"t", std::string(detail::index::elf::kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    table_.emplace(pool_.core()->open_index(info), kDimensions, detail::index::elf::kSmallShape);
  }

  Table& operator*() { return *table_; }
  Table* operator->() { return &*table_; }

  std::vector<std::string> check_pool() {
    table_.reset();
    return pool_.check().problems;
  }

 private:
  Pool pool_;
  std::optional<Table> table_;
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

void build(Table& table, const std::vector<Row>& rows) {
  std::array<std::vector<std::uint32_t>, kDimensions> columns;
  for (const Row& row : rows) {
    for (unsigned d = 0; d < kDimensions; ++d) columns[d].push_back(row[d]);
  }
  const std::array<std::span<const std::uint32_t>, kDimensions> spans = {columns[0], columns[1],
                                                                         columns[2]};
  when_free([&] { table.build(spans, nullptr); });
}

void execute(Table& table, const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::build: return build(table, operation.rows);
    case Operation::Kind::insert:
      if (table.insert(operation.row) != operation.tid)
        throw std::runtime_error("an insert returned another row's number");
      return;
    case Operation::Kind::erase:
      if (!table.erase(operation.tid)) throw std::runtime_error("an erase found no row");
  }
}

int run_child(const Options& options) {
  const Sender sender;
  OpenedTable table(options.text("pool"), *domain_named(options.text("domain")));
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
  std::jthread compactor([&] { guarded([&] { when_free([&] { table->compact(nullptr); }); }); });
  std::jthread reader([&] { guarded([&] { (void)table->count(table->box()); }); });
  std::uint64_t done = first;
  guarded([&] {
    const Operation operation = workload.next();
    execute(*table, operation);
    sender.send(Record::Type::done, 0, 0, ++done);
  });
  return 0;
}

// --- The parent ----------------------------------------------------------------------------------

class Campaign {
 public:
  Campaign(Domain domain, std::uint64_t seed)
      : domain_(domain), seed_(seed), random_(seed), folder_(domain) {
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
  static constexpr std::chrono::seconds kHang{60};

  std::filesystem::path pool() const { return folder_.path() / "elf.pool"; }

  /// A third of the children are killed before they have opened the pool.
  void run(std::chrono::microseconds moment) {
    Process child({"--role", "child", "--pool", pool().string(), "--domain",
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
    OpenedTable table(pool(), domain_);
    for (const std::string& problem : table->check().problems) problems_.push_back(problem);
    Workload workload(seed_);
    for (std::uint64_t i = 0; i < done_; ++i) workload.next();
    if (!has(*table, workload.rows())) {
      workload.next();
      if (!has(*table, workload.rows())) {
        problems_.push_back(
            fmt::format("the rows are those after neither {} nor {} operations", done_, done_ + 1));
      }
      ++done_;
    }
    for (const std::string& problem : table.check_pool()) problems_.push_back(problem);
  }

  static bool has(const Table& table, const Rows& rows) {
    if (table.size() != rows.size() || table.count(table.box()) != rows.size()) return false;
    return std::all_of(rows.begin(), rows.end(), [&](const auto& entry) {
      detail::index::elf::Box box = table.box();
      std::copy(entry.second.begin(), entry.second.end(), box.lower.begin());
      std::copy(entry.second.begin(), entry.second.end(), box.upper.begin());
      std::vector<detail::index::elf::Tid> tids;
      table.collect(box, tids);
      return std::find(tids.begin(), tids.end(), entry.first) != tids.end();
    });
  }

  const Domain domain_;
  const std::uint64_t seed_;
  detail::util::Random random_;
  const TempDir folder_;
  std::uint64_t done_ = 0;
  bool child_runs_ = true;
  std::string text_;
  std::vector<std::string> problems_;
};

int run_parent(const Options& options) {
  const std::uint64_t seed = options.number("seed", test::seed());
  const std::uint64_t kills = options.number("kills", scaled(60));
  std::vector<Domain> domains(kAllDomains.begin(), kAllDomains.end());
  if (const auto domain = domain_named(options.text("domain"))) domains = {*domain};
  std::uint64_t acknowledged = 0;
  for (const Domain domain : domains) {
    Campaign campaign(domain, seed);
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

}  // namespace
}  // namespace perdix::test::kill::elf

int main(int argc, char** argv) {
  using namespace perdix::test;
  try {
    const Options options(argc, argv);
    return options.text("role").empty() ? kill::elf::run_parent(options)
                                        : kill::elf::run_child(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
