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

/// The pool and its main index, opened with the records that the parent waits for.
template <class Index>
struct Opened {
  Opened(const Plan& plan, const std::string& path, const Sender& sender) {
    sender.send(Record::Type::opening, 0, 0, 0);
    const auto begin = Clock::now();
    pool.emplace(Pool::open(path, options_for(plan.domain)));
    index.emplace(*pool, kIndexName);
    const std::chrono::nanoseconds time = Clock::now() - begin;
    sender.send(Record::Type::opened, 0, 0, static_cast<std::uint64_t>(time.count()));
  }

  std::optional<Pool> pool;
  std::optional<Index> index;
};

template <class Engine, Storable K, Storable V>
void run_role(const Plan& plan, const Options& options, const Sender& sender) {
  using Index = typename Engine::template Index<K, V>;
  Opened<Index> opened(plan, options.text("pool"), sender);
  const std::string role = options.text("role");
  if (role == "write") {
    const auto round = static_cast<unsigned>(options.number("round", 0));
    Writer<Engine, K, V>(plan, round, *opened.pool, *opened.index, sender).run();
  } else if (role == "open") {
    ::pause();
  } else if (role == "verify") {
    Verifier<Engine, K, V>(plan, *opened.pool, sender).run(std::move(*opened.index));
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
    const Plan plan = Plan::from(options);
    bool found = false;
    for_each_type(Engines{}, [&]<class E>() {
      for_each_kinds([&]<Storable K, Storable V>() {
        if (E::kName != plan.engine || kinds_name<K, V>() != plan.kinds) return;
        found = true;
        run_role<E, K, V>(plan, options, sender);
      });
    });
    if (!found) throw std::invalid_argument("unknown --engine or --kinds");
    return 0;
  } catch (const std::exception& error) {
    sender.problem(options.text("role") + " process: " + error.what());
    return 1;
  }
}

}  // namespace perdix::test::kill
