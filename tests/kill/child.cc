#include "kill/child.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "kill/steps.h"
#include "kill/verifier.h"
#include "kill/writer.h"
#include "support/engines.h"

namespace perdix::test::kill {
namespace {

using Clock = std::chrono::steady_clock;

const IndexType& type_of(const Plan& plan) {
  for (const IndexType& type : killed_types()) {
    if (type.name == plan.engine && type.kinds() == plan.kinds) return type;
  }
  throw std::invalid_argument("unknown --engine or --kinds");
}

class IndexRole final : public Role {
 public:
  IndexRole(const Plan& plan, unsigned round) : plan_(plan), type_(type_of(plan)), round_(round) {}

  void open(const Pool& pool) override { index_.emplace(type_.open(pool, kIndexName)); }
  [[noreturn]] void write(const Pool& pool, const Sender& sender) override {
    Writer(type_, plan_, round_, pool, *index_, sender).run();
    std::terminate();
  }
  void verify(Pool& pool, const Sender& sender) override {
    Verifier(type_, plan_, pool, sender).run(*std::exchange(index_, {}));
  }

 private:
  const Plan& plan_;
  const IndexType& type_;
  const unsigned round_;
  std::optional<AnyIndex> index_;
};

std::unique_ptr<Role> make_role(const Plan& plan, const Options& options) {
  if (plan.workload()) return std::make_unique<StepsRole>(plan, options.number("steps", 0));
  return std::make_unique<IndexRole>(plan, static_cast<unsigned>(options.number("round", 0)));
}

/// Sends the records that the parent waits for.
Pool open(Role& role, const Plan& plan, const std::string& path, bool checked_first,
          const Sender& sender) {
  sender.send(Record::Type::opening, 0, 0, 0);
  auto begin = Clock::now();
  Pool pool = Pool::open(path, pool_options(plan));
  if (checked_first) {
    const auto before = Clock::now();
    const CheckReport report = pool.check();
    if (!report.ok())
      throw std::runtime_error("Pool::check() before an index is open: " + problems_of(report));
    begin += Clock::now() - before;
  }
  role.open(pool);
  const std::chrono::nanoseconds time = Clock::now() - begin;
  sender.send(Record::Type::opened, 0, 0, static_cast<std::uint64_t>(time.count()));
  return pool;
}

void run_role(const Plan& plan, const Options& options, const Sender& sender) {
  const std::unique_ptr<Role> role = make_role(plan, options);
  const std::string name = options.text("role");
  Pool pool = open(*role, plan, options.text("pool"), options.number("check", 0) != 0, sender);
  if (name == "write") {
    role->write(pool, sender);
  } else if (name == "open") {
    ::pause();
  } else if (name == "verify") {
    role->verify(pool, sender);
    if (options.number("close", 0) != 0) pool.close();
    sender.send(Record::Type::finished, 0, 0, 0);
    ::_exit(0);  // as abruptly as a kill, where the pool was not closed
  } else {
    throw std::invalid_argument("--role " + name + ": choose write, open or verify");
  }
}

}  // namespace

int run_child(const Options& options) {
  const Sender sender;
  try {
    run_role(Plan::from(options), options, sender);
    return 0;
  } catch (const std::exception& error) {
    sender.problem(options.text("role") + " process: " + error.what());
    return 1;
  }
}

}  // namespace perdix::test::kill
