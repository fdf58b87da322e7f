// A probe that stops one thread for good, so that a test can see whether others wait for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "pm/probe.h"

namespace perdix::testing {

/// Stops the thread that has called watch() at its n-th event, until release().
class Suspender final : public detail::pm::Probe {
 public:
  void watch(std::uint64_t event) {
    const std::lock_guard lock(mutex_);
    watched_ = std::this_thread::get_id();
    left_ = event;
    suspended_ = released_ = false;
  }

  /// Whether reads are events, too.
  void count_reads(bool count) { reads_ = count; }

  /// Whether named steps are events, too.
  void count_steps(bool count) { steps_ = count; }

  /// Must be called when the watched operation has ended. Returns whether it was suspended.
  bool end() {
    const std::lock_guard lock(mutex_);
    watched_ = {};
    ended_ = true;
    changed_.notify_all();
    return suspended_;
  }

  void wait_for_suspension() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return suspended_ || ended_; });
  }

  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  void on_read(const void*, std::size_t) override {
    if (reads_) event();
  }
  void before_write(const void*, std::size_t) override { event(); }
  void on_write(const void*, std::size_t) override { event(); }
  bool on_flush(const void*, std::size_t, const detail::pm::Site&) override { return event(); }
  bool on_fence(const detail::pm::Site&) override { return event(); }
  void on_step(const char*) override {
    if (steps_) event();
  }

 private:
  bool event() {
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() != watched_ || left_ == 0 || --left_ != 0) return true;
    suspended_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_; });
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id watched_;
  std::uint64_t left_ = 0;
  bool suspended_ = false;
  bool released_ = false;
  bool ended_ = false;
  bool reads_ = false;
  bool steps_ = false;
};

}  // namespace perdix::testing
