// A thread that gets none of the process's signals, which the server's threads handle, but for
// faults of the thread itself.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace perdix::valkey {

template <class Run>
std::thread quiet_thread(Run run) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace perdix::valkey
