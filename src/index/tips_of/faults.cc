#include "index/tips_of/faults.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <mutex>

#include "index/tips_of/pages.h"

namespace perdix::detail::index::tips_of {
namespace {

// What the handler must reach without an argument: the write of its thread, and whether this thread
// is in pass_on(). initial-exec: an access must not allocate memory for the thread's variables,
// because the handler makes it.
[[gnu::tls_model("initial-exec")]] thread_local constinit Faults* current_faults = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local constinit bool passing_on = false;

/// The handlers that install() has found. pass_on() calls the last one. A thread may still be about
/// to call an earlier one, so the last kKept of them are kept.
class PreviousHandlers {
 public:
  void add(const struct sigaction& action) noexcept {
    const unsigned next = (last_.load(std::memory_order_relaxed) + 1) % kKept;
    actions_[next] = action;
    last_.store(next, std::memory_order_release);
  }
  const struct sigaction& last() const noexcept {
    return actions_[last_.load(std::memory_order_acquire)];
  }

 private:
  static constexpr unsigned kKept = 64;
  std::array<struct sigaction, kKept> actions_{};
  std::atomic<unsigned> last_{0};
};

constinit PreviousHandlers previous_handlers{};
constinit std::mutex installing;

/// Lets the default action happen: the store faults again when the handler returns, and then the
/// kernel ends the process. A signal that was sent does not come again, so it is raised.
void let_default_act(int signal, const siginfo_t* info) noexcept {
  ::signal(signal, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);  // a process or a thread has sent it
}

/// Passes a fault that is not perdix's on to the handler that was installed before.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& action = previous_handlers.last();
  // If that handler calls perdix's handler, which it may have found in its turn, passing_on is set,
  // and the default action ends the recursion.
  if (passing_on || (action.sa_flags & SA_SIGINFO) == 0) {
    if (passing_on || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
      return let_default_act(signal, info);
    action.sa_handler(signal);
    return;
  }
  passing_on = true;
  action.sa_sigaction(signal, info, context);
  passing_on = false;
}

}  // namespace

struct FaultHandler {
  static void handle(int signal, siginfo_t* info, void* context) noexcept {
    const int error = errno;
    const bool ours =
        current_faults != nullptr && info->si_code == SEGV_ACCERR &&
        current_faults->pages_.on_fault(reinterpret_cast<std::uintptr_t>(info->si_addr));
    errno = error;
    if (!ours) pass_on(signal, info, context);
  }

  static bool is_installed(const struct sigaction& now) noexcept {
    return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle;
  }

  /// Installs the handler before the one that there is, unless that is this handler.
  static void install() noexcept {
    struct sigaction now {};
    if (::sigaction(SIGSEGV, nullptr, &now) != 0 || is_installed(now)) return;
    const std::lock_guard lock(installing);
    if (::sigaction(SIGSEGV, nullptr, &now) != 0 || is_installed(now)) return;
    previous_handlers.add(now);
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, nullptr);
  }
};

Faults::Faults(Pages& pages) : pages_(pages) {
  assert(current_faults == nullptr);
  FaultHandler::install();
  passing_on = false;  // still set if an earlier handler has left pass_on() by longjmp()
  current_faults = this;
}

Faults::~Faults() { current_faults = nullptr; }

bool Faults::any() { return current_faults != nullptr; }

}  // namespace perdix::detail::index::tips_of
