#include "pool/background.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "pm/probe.h"
#include "util/signals.h"

namespace perdix::detail::pool {
namespace {

// The time from a request to the run that serves it. It bounds how often a writer wakes the thread.
constexpr auto kPause = std::chrono::milliseconds(10);

}  // namespace

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Background::Job::Job(Background& background, std::function<void()> work)
    : background_(background), work_(std::move(work)) {
  const std::lock_guard lock(background_.mutex_);
  background_.jobs_.push_back(this);
}

Background::Job::~Job() {
  Lock lock(background_.mutex_);
  background_.finish(*this, lock);
  std::erase(background_.jobs_, this);
}

void Background::Job::request() noexcept {
  const std::lock_guard lock(background_.mutex_);
  requested_ = true;
  if (pm::background_work()) background_.wake();
}

void Background::Job::finish() noexcept {
  Lock lock(background_.mutex_);
  background_.finish(*this, lock);
}

void Background::drain() noexcept {
  Lock lock(mutex_);
  for (;;) {
    if (run_next(lock)) continue;
    if (std::ranges::none_of(jobs_, [](const Job* job) { return job->running_; })) return;
    ended_.wait(lock);  // then it may be requested again
  }
}

/// Under the mutex.
void Background::wake() noexcept {
  const bool was_awake = std::exchange(awake_, true);
  if (thread_.joinable()) {
    if (!was_awake) wake_.notify_one();
    return;
  }
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::exception&) {
    // No thread, or no memory for one: the job stays requested, until the next request or finish().
  }
}

/// Runs a job that is requested, the one that has waited longest; false if there is none.
bool Background::run_next(Lock& lock) noexcept {
  const auto next =
      std::ranges::find_if(jobs_, [](const Job* job) { return job->requested_ && !job->running_; });
  if (next == jobs_.end()) return false;
  Job& job = **next;
  std::rotate(next, next + 1, jobs_.end());
  run(job, lock);
  return true;
}

void Background::run(Job& job, Lock& lock) noexcept {
  job.requested_ = false;
  job.running_ = true;
  lock.unlock();
  job.work_();
  lock.lock();
  job.running_ = false;
  ended_.notify_all();
}

void Background::finish(Job& job, Lock& lock) noexcept {
  while (job.running_ || job.requested_) {
    if (job.running_) {
      ended_.wait(lock);
    } else {
      run(job, lock);
    }
  }
}

/// The thread.
void Background::serve() noexcept {
  util::block_signals();
  Lock lock(mutex_);
  while (!stopping_) {
    wake_.wait(lock, [this] { return stopping_ || awake_; });
    wake_.wait_for(lock, kPause, [this] { return stopping_; });
    awake_ = false;
    while (!stopping_ && pm::background_work() && run_next(lock)) {
    }
  }
}

}  // namespace perdix::detail::pool
