#include "special/resume/process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

#include "common/run_options.h"

namespace perdix::bench::resumption {
namespace {

constexpr int kFailed = 1;

// The child ignores the terminal's SIGINT, because the parent decides when to stop. It is killed
// when the parent ends.
void bind_to_parent() {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void fill(std::array<char, 512>& out, std::string_view text) {
  std::memcpy(out.data(), text.data(), std::min(text.size(), out.size() - 1));
}

}  // namespace

Process::Process(const std::function<void()>& work) {
  pid_ = ::fork();
  if (pid_ < 0) throw Error(Errc::io_error, fmt::format("can't fork: {}", std::strerror(errno)));
  if (pid_ != 0) return;
  bind_to_parent();
  int status = 0;
  try {
    work();
  } catch (const std::exception& e) {
    fill(*error_, e.what());
    status = kFailed;
  }
  ::_exit(status);  // the child must not destroy what the parent owns
}

bool Process::running(const std::atomic<bool>& stop) {
  if (stop.load(std::memory_order_relaxed)) throw Cancelled();
  if (pid_ < 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
  throw Error(Errc::io_error, error_->front() != '\0'
                                  ? std::string(error_->data())
                                  : fmt::format("a process died, wait status {:#x}", status));
}

void Process::finish(const std::atomic<bool>& stop) {
  while (running(stop)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void Process::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

void run_threads(unsigned threads, std::atomic<bool>& failed,
                 const std::function<void(unsigned)>& work) {
  std::exception_ptr first;
  std::mutex mutex;
  const auto run = [&](unsigned thread) {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      failed.store(true, std::memory_order_relaxed);
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(run, t);
    run(0);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace perdix::bench::resumption
