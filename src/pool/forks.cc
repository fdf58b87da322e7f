#include "pool/forks.h"

#include <pthread.h>

#include <new>
#include <vector>

#include <perdix/error.h>

#include "epoch/fork.h"
#include "pool/lost_pages.h"

namespace perdix::detail::pool {
namespace {

using pm::NoFork;

/// Guarded by NoFork.
struct Forks {
  Forks();

  std::vector<pm::Descriptor> descriptors;
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
  NoFork::mutex().lock();
  forks().epochs_stopped = stopped;
}

void after_in_parent() noexcept {
  const bool stopped = forks().epochs_stopped;
  NoFork::mutex().unlock();
  if (stopped) epoch::go_on_in_parent();
}

void after_in_child() noexcept {
  Forks& mine = forks();
  for (pm::Descriptor& descriptor : mine.descriptors) descriptor.close();
  mine.descriptors.clear();
  const bool stopped = mine.epochs_stopped;
  if (!stopped) mine.forked_in_guard = true;
  LostPages::forget_other_threads();
  NoFork::mutex().unlock();
  if (stopped) epoch::go_on_in_child();
}

Forks::Forks() {
  if (::pthread_atfork(before, after_in_parent, after_in_child) != 0) throw std::bad_alloc();
}

}  // namespace

void prepare_for_forks() {
  Forks& mine = forks();
  const NoFork no_fork;
  if (!mine.forked_in_guard) return;
  throw Error(Errc::forked,
              "this process was forked while its thread was inside an operation of perdix, and "
              "can't open pools; fork elsewhere, or execute a program in it");
}

void close_in_children(const pm::Descriptor& descriptor, const NoFork& /*no_fork*/) {
  forks().descriptors.push_back(descriptor);
}

void leave_to_children(const pm::Descriptor& descriptor) noexcept {
  const NoFork no_fork;
  std::erase(forks().descriptors, descriptor);
}

void leave_to_parent(const void* object) noexcept {
  const NoFork no_fork;
  try {
    forks().left.push_back(object);
  } catch (const std::bad_alloc&) {
    // Then a checker of leaks sees one.
  }
}

}  // namespace perdix::detail::pool
