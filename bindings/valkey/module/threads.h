// A thread that gets none of the process's signals: the server handles those.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace perdix::valkey {

template <class Run>
std::thread quiet_thread(Run run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace perdix::valkey
