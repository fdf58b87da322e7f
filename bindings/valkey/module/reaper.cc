#include "reaper.h"

#include <chrono>

#include "api.h"
#include "threads.h"

namespace perdix::valkey {
namespace {

constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Reaper::Reaper(const Pool& pool, Catalogue& catalogue) : pool_(pool), catalogue_(catalogue) {
  thread_ = quiet_thread([this] { run(); });
}

void Reaper::drop_table(std::shared_ptr<Table> table) {
  if (table == nullptr) return;
  add([this, table = std::move(table)] { return drop(table); });
}

void Reaper::erase_space(std::uint32_t space) {
  add([this, space] {
    catalogue_.erase_space(space);
    return true;
  });
}

std::uint64_t Reaper::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size() + (busy_ ? 1 : 0);
}

void Reaper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Reaper::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    postponed_ = 0;
  }
  wake_.notify_all();
}

void Reaper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (jobs_.empty()) {
      wake_.wait(lock);
    } else if (postponed_ >= jobs_.size()) {
      wake_.wait_for(lock, kPause);
      postponed_ = 0;
    } else {
      run_one(lock);
    }
  }
}

void Reaper::run_one(std::unique_lock<std::mutex>& lock) {
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  busy_ = true;
  lock.unlock();
  bool done = true;
  try {
    done = job();
  } catch (const std::exception& error) {
    // Given up until the next start, which finds it again.
    log(nullptr, "warning",
        std::string("what no key has any more stays in the pool: ") + error.what());
  }
  if (done) job = nullptr;
  lock.lock();
  busy_ = false;
  if (done) {
    postponed_ = 0;
  } else {
    jobs_.push_back(std::move(job));
    ++postponed_;
  }
}

bool Reaper::drop(const std::shared_ptr<Table>& table) {
  // A child process may still be shown its content. Nothing can begin to hold it now.
  if (table.use_count() > 1) return false;
  table->close();
  pool_.drop(table->info().name);
  return true;
}

}  // namespace perdix::valkey
