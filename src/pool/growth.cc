#include "pool/growth.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>

#include <perdix/error.h>

#include "pool/layout.h"

namespace perdix::pool {
namespace {

// Signals are for the program's own threads.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Growth::~Growth() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Growth::take(std::uint64_t size) {
  const std::lock_guard guard(mutex_);
  if (size > mapping_.size()) make_ready(size);
  wanted_ = std::min(size + kGrowthUnit, mapping_.max_size());
  start_thread();
  wake_.notify_one();
}

void Growth::touch_from(std::uint64_t begin) {
  const std::lock_guard guard(mutex_);
  touched_ = std::min(touched_, begin);
  if (!has_work()) return;
  start_thread();
  wake_.notify_one();
}

void Growth::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !thread_.joinable() || (!busy_ && !has_work()); });
}

void Growth::make_ready(std::uint64_t size) {
  file_.allocate(size);
  // A superblock that says this size may reach the device only after the size itself.
  if (durable_) file_.sync();
  mapping_.grow(size);
}

bool Growth::has_work() const { return touched_ < mapping_.size() || wanted_ > mapping_.size(); }

void Growth::start_thread() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // Without the thread everything works, only later: the one who needs space makes it ready.
    touched_ = mapping_.max_size();
  }
}

void Growth::run() {
  block_signals();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (has_work()) {
      step(lock);
    } else {
      idle_.notify_all();
      wake_.wait(lock, [this] { return stopping_ || has_work(); });
    }
  }
  idle_.notify_all();
}

void Growth::step(std::unique_lock<std::mutex>& lock) {
  if (touched_ >= mapping_.size()) {
    try {
      make_ready(wanted_);
    } catch (const Error&) {
      wanted_ = 0;  // the one who needs the space will try again, and report what is wrong
    }
    return;
  }
  const std::uint64_t begin = touched_;
  const std::uint64_t end = std::min(begin + kGrowthUnit, mapping_.size());
  touched_ = end;
  busy_ = true;
  lock.unlock();  // touching needs no lock, and takers need not wait for it
  mapping_.populate(begin, end - begin);
  lock.lock();
  busy_ = false;
}

}  // namespace perdix::pool
