#include "pool/forks.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <vector>

#include <perdix/error.h>

#include "epoch/fork.h"

namespace perdix::pool {
namespace {

struct Forks {
  Forks();

  std::mutex mutex;  // held during a fork
  std::vector<int> descriptors;
  std::vector<const void*> left;  // in a child
  bool epochs_stopped = false;    // for the fork that is going on
  bool forked_in_guard = false;   // this process was
};

Forks& forks() {
  static Forks& instance = *new Forks();  // pools may be closed after all destructors
  return instance;
}

// In this order, since a thread in a Guard may map more of a pool, and a grace period waits for it.
void before() noexcept {
  const bool stopped = epoch::stop_for_fork();
  forks().mutex.lock();
  forks().epochs_stopped = stopped;
}

void after_in_parent() noexcept {
  const bool stopped = forks().epochs_stopped;
  forks().mutex.unlock();
  if (stopped) epoch::go_on_in_parent();
}

void after_in_child() noexcept {
  Forks& mine = forks();
  for (const int descriptor : mine.descriptors) ::close(descriptor);
  mine.descriptors.clear();
  if (!mine.epochs_stopped) mine.forked_in_guard = true;
  const bool stopped = mine.epochs_stopped;
  mine.mutex.unlock();
  if (stopped) epoch::go_on_in_child();
}

Forks::Forks() {
  if (::pthread_atfork(before, after_in_parent, after_in_child) != 0) throw std::bad_alloc();
}

}  // namespace

NoFork::NoFork() : lock_(forks().mutex) {
  if (!forks().forked_in_guard) return;
  throw Error(Errc::forked,
              "this process was forked while its thread was inside an operation of perdix, and "
              "can't open pools; fork elsewhere, or execute a program in it");
}

void NoFork::list(int descriptor) const { forks().descriptors.push_back(descriptor); }

void NoFork::unlist(int descriptor) const noexcept { std::erase(forks().descriptors, descriptor); }

void leave_to_parent(const void* object) noexcept {
  Forks& mine = forks();
  const std::lock_guard lock(mine.mutex);
  try {
    mine.left.push_back(object);
  } catch (const std::bad_alloc&) {
    // Then a checker of leaks sees one.
  }
}

}  // namespace perdix::pool
