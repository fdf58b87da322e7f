#include "ycsb/crasher.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include <perdix/error.h>

#include "systems/systems.h"
#include "ycsb/phase.h"
#include "ycsb/plan.h"

namespace perdix::bench {
namespace {

// A job for the helper. It has no pointers, because it is sent over a socket.
struct Job {
  struct Parameter {
    std::array<char, 32> name{};
    std::uint64_t value = 0;
  };

  std::array<char, 64> system{};
  std::array<char, 512> directory{};
  Dataset data;
  std::uint64_t max_records = 0;
  std::uint64_t records = 0;
  std::uint64_t seed = 0;
  unsigned threads = 1;
  Durability durability = Durability::process;
  DomainChoice domain = DomainChoice::detect;
  std::uint64_t dram_budget = 0;
  std::uint64_t pool_size = 0;
  std::array<Parameter, 8> parameters{};  // those without a name are not there
};
static_assert(std::is_trivially_copyable_v<Job>);

// The answer to a job: empty if the process loaded everything and was killed.
using Answer = std::array<char, 256>;

template <std::size_t N>
void fill(std::array<char, N>& out, std::string_view text) {
  out.fill('\0');
  std::memcpy(out.data(), text.data(), std::min(text.size(), N - 1));
}

// The sockets keep the boundaries of messages, so one call moves one object or fails.
template <class T>
bool send(int socket, const T& object) {
  return ::send(socket, &object, sizeof object, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof object);
}
template <class T>
bool receive(int socket, T& object) {
  ssize_t got = 0;
  do {
    got = ::recv(socket, &object, sizeof object, 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof object);
}

std::array<int, 2> message_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(Errc::io_error,
                fmt::format("can't create a socket pair: {}", std::strerror(errno)));
  }
  return ends;
}

// The helper ignores the terminal's SIGINT, because the parent decides when to stop. It is killed
// when the parent ends.
void bind_to_parent() {
  ::signal(SIGINT, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

std::unique_ptr<Store> loaded_store(const Job& job) {
  Setup setup{job.data,   job.directory.data(), job.max_records, job.threads, job.durability,
              job.domain, job.dram_budget,      job.pool_size,   {}};
  for (const Job::Parameter& parameter : job.parameters)
    if (parameter.name.front() != '\0') setup.parameters[parameter.name.data()] = parameter.value;
  std::unique_ptr<Store> store = find_system(job.system.data()).open(setup);
  Planner planner(job.records);
  Records none;
  const auto plan = planner.plan(find_workload("load"), Distribution::uniform, job.records,
                                 job.threads, job.seed, none);
  const PhaseResult result = run_phase(*store, plan, {});
  if (result.wrong != 0) throw Error(Errc::corrupt, fmt::format("{} inserts failed", result.wrong));
  return store;
}

// The process that loads. It reports the result on `socket` and waits to be killed while the store
// is open.
[[noreturn]] void load_and_wait(const Job& job, int socket) {
  bind_to_parent();
  Answer answer{};
  std::unique_ptr<Store> store;
  try {
    store = loaded_store(job);
  } catch (const std::exception& e) {
    fill(answer, e.what());
  }
  send(socket, answer);
  for (;;) ::pause();
}

Answer run_and_kill(const Job& job) {
  Answer answer{};
  const auto [mine, theirs] = message_socket_pair();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(mine);
    load_and_wait(job, theirs);
  }
  ::close(theirs);
  if (child < 0 || !receive(mine, answer)) fill(answer, "the process that loads died");
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::close(mine);
  return answer;
}

[[noreturn]] void serve(int channel) {
  bind_to_parent();
  Job job;
  while (receive(channel, job)) send(channel, run_and_kill(job));
  ::_exit(0);
}

}  // namespace

Crasher::Crasher() {
  const auto [mine, theirs] = message_socket_pair();
  helper_ = ::fork();
  if (helper_ == 0) {
    ::close(mine);
    serve(theirs);
  }
  ::close(theirs);
  channel_ = mine;
  if (helper_ < 0) {
    ::close(channel_);
    throw Error(Errc::io_error, fmt::format("can't fork: {}", std::strerror(errno)));
  }
}

Crasher::~Crasher() {
  ::close(channel_);
  ::waitpid(helper_, nullptr, 0);
}

void Crasher::load_and_kill(std::string_view system, const Setup& setup, std::uint64_t records,
                            std::uint64_t seed) {
  Job job;
  fill(job.system, system);
  fill(job.directory, setup.directory.string());
  job.data = setup.data;
  job.max_records = setup.max_records;
  job.records = records;
  job.seed = seed;
  job.threads = setup.threads;
  job.durability = setup.durability;
  job.domain = setup.domain;
  job.dram_budget = setup.dram_budget;
  job.pool_size = setup.pool_size;
  assert(setup.parameters.size() <= job.parameters.size());
  auto parameter = job.parameters.begin();
  for (const auto& [name, value] : setup.parameters) {
    fill(parameter->name, name);
    parameter++->value = value;
  }
  Answer answer{};
  if (!send(channel_, job) || !receive(channel_, answer)) fill(answer, "the helper process died");
  if (answer.front() != '\0') {
    throw Error(Errc::io_error,
                fmt::format("loading {} for 'reopen' failed: {}", system, answer.data()));
  }
}

}  // namespace perdix::bench
