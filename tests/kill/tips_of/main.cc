// Kills processes that write to a container by TipsOf at random moments, and verifies the
// container: it must have all acknowledged writes, and the one in flight entirely or not at all.
//
//   perdix_tips_of_kill [--container std::map] [--kills N] [--seed S] [--domain D]
//
// --container is the beginning of a name, --kills the number for each container. The child has a
// thread that writes and one that reads. Four times in each domain the kills begin with an empty
// pool, so creations and their trials are killed too.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/perdix.h>

#include "index/tips_of/test_points.h"
#include "kill/process.h"
#include "support/domain.h"
#include "support/options.h"
#include "support/settings.h"
#include "support/temp_dir.h"
#include "util/random.h"

namespace perdix::test::kill::tips_of {
namespace {

using detail::index::tips_of::TestNumber;
using Model = std::map<TestNumber, TestNumber>;

/// What a write does: a key gets a value or is erased, one after the other.
using Changes = std::vector<std::pair<TestNumber, std::optional<TestNumber>>>;

/// Writes that follow from a seed, so that parent and child agree on the n-th one.
class Workload {
 public:
  explicit Workload(std::uint64_t seed) : random_(seed) {}

  Changes next() {
    constexpr TestNumber kKeys = 300;
    constexpr std::uint64_t kLargeBatchInterval = 20;
    Changes changes(1 + random_.below(random_.one_in(kLargeBatchInterval) ? 200 : 4));
    for (auto& [key, value] : changes) {
      key = random_.below(kKeys);
      if (!random_.one_in(3)) value = random_.below(1'000'000'000);
    }
    return changes;
  }

 private:
  detail::util::Random random_;
};

void change(Model& model, const Changes& changes) {
  for (const auto& [key, value] : changes) {
    if (value) {
      model[key] = *value;
    } else {
      model.erase(key);
    }
  }
}

template <class Calls>
void change(typename Calls::Container& container, const Changes& changes) {
  for (const auto& [key, value] : changes)
    value ? Calls::put(container, key, *value) : Calls::erase(container, key);
}

template <class Calls>
Model contents(const TipsOf<typename Calls::Container>& opened) {
  return opened.read([](const auto& container) {
    Model model;
    for (const auto& element : container) model.insert(Calls::pair_of(element));
    return model;
  });
}

// --- The child -----------------------------------------------------------------------------------

template <class Calls>
int run_child(const Options& options) {
  const Sender sender;
  const auto guarded = [&](const auto& body) {
    try {
      for (;;) body();
    } catch (const std::exception& error) {
      sender.problem(error.what());
      ::_exit(1);
    }
  };
  std::optional<Pool> pool;
  std::optional<TipsOf<typename Calls::Container>> opened;
  try {
    pool.emplace(
        Pool::open(options.text("pool"), options_for(*domain_named(options.text("domain")))));
    opened.emplace(*pool, "c");
  } catch (const std::exception& error) {
    sender.problem(error.what());
    return 1;
  }
  std::uint64_t done = options.number("from", 0);
  Workload workload(options.number("seed", 0));
  for (std::uint64_t i = 0; i < done; ++i) workload.next();
  sender.send(Record::Type::opened, 0, 0, 0);
  std::jthread reader([&] { guarded([&] { (void)contents<Calls>(*opened); }); });
  guarded([&] {
    const Changes changes = workload.next();
    opened->write([&](auto& container) { change<Calls>(container, changes); });
    sender.send(Record::Type::done, 0, 0, ++done);
  });
  return 0;
}

// --- The parent ----------------------------------------------------------------------------------

template <class Calls>
class Campaign {
 public:
  Campaign(Domain domain, std::uint64_t seed)
      : domain_(domain), seed_(seed), random_(seed), folder_(domain) {
    Pool::create(pool(), options_for(domain)).close();
  }

  /// Whether all is well.
  bool round() {
    run(std::chrono::microseconds(random_.below(25'000)));
    if (problems_.empty()) verify();
    return problems_.empty();
  }

  std::uint64_t acknowledged() const { return done_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::filesystem::path pool() const { return folder_.path() / "container.pool"; }

  /// A third of the children are killed before they have opened the pool.
  void run(std::chrono::microseconds moment) {
    Process child({"--role", "child", "--container", std::string(Calls::kName), "--pool",
                   pool().string(), "--domain", std::string(name_of(domain_)), "--seed",
                   std::to_string(seed_), "--from", std::to_string(done_)});
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

  /// Takes what the child has sent. Returns whether it has opened the container.
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
    const Pool opened_pool = Pool::open(pool(), options_for(domain_));
    {
      const TipsOf<typename Calls::Container> opened(opened_pool, "c");
      for (const std::string& problem : opened.check().problems) problems_.push_back(problem);
      for (; known_ < done_; ++known_) change(model_, workload_.next());
      const Model found = contents<Calls>(opened);
      if (found != model_) {
        change(model_, workload_.next());
        known_ = ++done_;
        if (found != model_) {
          problems_.push_back(fmt::format("the elements are those after neither {} nor {} writes",
                                          done_ - 1, done_));
        }
      }
    }
    for (const std::string& problem : opened_pool.check().problems) problems_.push_back(problem);
  }

  const Domain domain_;
  const std::uint64_t seed_;
  detail::util::Random random_;
  const TempDir folder_;
  Workload workload_{seed_};
  Model model_;
  std::uint64_t known_ = 0;  // writes that model_ has
  std::uint64_t done_ = 0;
  bool child_runs_ = true;
  std::string text_;
  std::vector<std::string> problems_;
};

/// Whether all is well. Each campaign begins with an empty pool.
template <class Calls>
bool kill_writers(const std::vector<Domain>& domains, std::uint64_t seed, std::uint64_t kills) {
  constexpr std::uint64_t kCampaigns = 4;  // in each domain
  std::uint64_t acknowledged = 0, done = 0;
  for (const Domain domain : domains) {
    const std::uint64_t rounds = (kills + domains.size() - 1) / domains.size();
    for (std::uint64_t part = 0; part < kCampaigns; ++part) {
      Campaign<Calls> campaign(domain, seed + part);
      for (std::uint64_t i = part * rounds / kCampaigns; i < (part + 1) * rounds / kCampaigns;
           ++i) {
        ++done;
        if (campaign.round()) continue;
        for (const std::string& problem : campaign.problems()) fmt::print("FAILED: {}\n", problem);
        fmt::print("{}, seed {}, domain {}, kill {}\n", Calls::kName, seed, name_of(domain), i);
        return false;
      }
      acknowledged += campaign.acknowledged();
    }
  }
  fmt::print("{}: seed {}, {} kills, {} writes acknowledged\n", Calls::kName, seed, done,
             acknowledged);
  return true;
}

int run_parent(const Options& options) {
  const std::uint64_t seed = options.number("seed", test::seed());
  const std::uint64_t kills = options.number("kills", scaled(200));
  std::vector<Domain> domains(kAllDomains.begin(), kAllDomains.end());
  if (const auto domain = domain_named(options.text("domain"))) domains = {*domain};
  bool well = true, any = false;
  detail::index::tips_of::for_each_tested(options.text("container"), [&](auto calls) {
    any = true;
    well = well && kill_writers<decltype(calls)>(domains, seed, kills);
  });
  if (!any) throw std::runtime_error("no container has a name that begins so");
  return well ? 0 : 1;
}

int run_child(const Options& options) {
  int status = 2;
  const std::string name = options.text("container");
  detail::index::tips_of::for_each_tested(name, [&](auto calls) {
    if (decltype(calls)::kName == name) status = run_child<decltype(calls)>(options);
  });
  return status;
}

}  // namespace
}  // namespace perdix::test::kill::tips_of

int main(int argc, char** argv) {
  using namespace perdix::test;
  try {
    const Options options(argc, argv);
    return options.text("role").empty() ? kill::tips_of::run_parent(options)
                                        : kill::tips_of::run_child(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
