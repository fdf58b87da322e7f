#include "kill/child.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kill/process.h"
#include "kill/verifier.h"
#include "kill/writer.h"
#include "support/engines.h"

namespace perdix::test::kill {
namespace {

using Clock = std::chrono::steady_clock;

const IndexType& type_of(const Plan& plan) {
  for (const IndexType& type : index_types()) {
    if (type.name == plan.engine && type.kinds() == plan.kinds) return type;
  }
  throw std::invalid_argument("unknown --engine or --kinds");
}

/// The pool and its main index, opened with the records that the parent waits for.
struct Opened {
  Opened(const IndexType& type, const Plan& plan, const std::string& path, bool checked_first,
         const Sender& sender) {
    sender.send(Record::Type::opening, 0, 0, 0);
    auto begin = Clock::now();
    pool.emplace(Pool::open(path, options_for(plan.domain)));
    if (checked_first) {
      const auto before = Clock::now();
      require_sound_pool();
      begin += Clock::now() - before;
    }
    index.emplace(type.open(*pool, kIndexName));
    const std::chrono::nanoseconds time = Clock::now() - begin;
    sender.send(Record::Type::opened, 0, 0, static_cast<std::uint64_t>(time.count()));
  }

  void require_sound_pool() const {
    const CheckReport report = pool->check();
    if (!report.ok())
      throw std::runtime_error("Pool::check() before an index is open: " + problems_of(report));
  }

  std::optional<Pool> pool;
  std::optional<AnyIndex> index;
};

void run_role(const Plan& plan, const Options& options, const Sender& sender) {
  const IndexType& type = type_of(plan);
  const std::string role = options.text("role");
  Opened opened(type, plan, options.text("pool"), options.number("check", 0) != 0, sender);
  if (role == "write") {
    const auto round = static_cast<unsigned>(options.number("round", 0));
    Writer(type, plan, round, *opened.pool, *opened.index, sender).run();
  } else if (role == "open") {
    ::pause();
  } else if (role == "verify") {
    Verifier(type, plan, *opened.pool, sender).run(std::move(*opened.index));
    opened.index.reset();
    if (options.number("close", 0) != 0) opened.pool->close();
    sender.send(Record::Type::finished, 0, 0, 0);
    ::_exit(0);  // as abruptly as a kill, where the pool was not closed
  } else {
    throw std::invalid_argument("--role " + role + ": choose write, open or verify");
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
