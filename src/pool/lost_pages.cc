#include "pool/lost_pages.h"

#include <sched.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include <perdix/bus_errors.h>
#include <perdix/error.h>

#include "pm/no_fork.h"

namespace perdix::detail::pool {
namespace {

using pm::NoFork;

// NoFork guards changes of the list and of the handler.
std::atomic<LostPages*> first_pool{nullptr};
std::atomic<int> readers{0};      // of the list
struct sigaction handler_before;  // where errors go whose address is no pool's

/// Keeps entries of the list from going away.
class Reading {
 public:
  Reading() noexcept { ++readers; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { --readers; }
};

/// The default action, with the signal as it was: a fault occurs again when the handler returns, a
/// signal that was sent is sent again.
void end_process(int signal, const siginfo_t& info) noexcept {
  std::signal(signal, SIG_DFL);
  if (info.si_code <= 0) std::raise(signal);
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0)
    return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler == SIG_DFL || handler_before.sa_handler == SIG_IGN)
    return end_process(signal, *info);
  handler_before.sa_handler(signal);
}

void on_bus_error(int signal, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  const bool sent = info->si_code <= 0;  // by a process: no fault
  if (sent || !LostPages::replace(info->si_addr)) pass_on(signal, info, context);
  errno = error;
}

}  // namespace

LostPages::LostPages(pm::Mapping& mapping, Health& health) : mapping_(mapping), health_(health) {
  const NoFork no_fork;
  next_ = first_pool.load();
  first_pool = this;
}

LostPages::~LostPages() {
  {
    const NoFork no_fork;
    std::atomic<LostPages*>* place = &first_pool;
    while (*place != this) place = &(*place).load()->next_;
    *place = next_.load();
  }
  while (readers > 0) ::sched_yield();
}

void LostPages::forget_other_threads() noexcept { readers = 0; }

/// A child of fork() has the list, but none of the mappings.
bool LostPages::contains(const void* address) const noexcept {
  if (health_.forked()) return false;
  const auto offset = static_cast<const std::byte*>(address) - mapping_.base();
  return offset >= 0 && static_cast<std::uint64_t>(offset) < mapping_.size();
}

bool LostPages::replace(const void* address) noexcept {
  const Reading reading;
  for (LostPages* pool = first_pool; pool != nullptr; pool = pool->next_) {
    if (!pool->contains(address)) continue;
    pool->health_.set_page_lost();
    return pool->mapping_.replace_lost_page(address);
  }
  return false;
}

}  // namespace perdix::detail::pool

namespace perdix {

void handle_bus_errors() {
  namespace pool = detail::pool;
  const detail::pm::NoFork no_fork;
  struct sigaction current {};
  struct sigaction ours {};
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ours.sa_sigaction = &pool::on_bus_error;
  bool done = ::sigaction(SIGBUS, nullptr, &current) == 0;
  if (done && (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &pool::on_bus_error)
    return;
  pool::handler_before = current;  // before an error can need it
  done = done && ::sigaction(SIGBUS, &ours, nullptr) == 0;
  if (done) return;
  throw Error(Errc::io_error,
              fmt::format("can't install a handler of SIGBUS: {}", std::strerror(errno)));
}

}  // namespace perdix
