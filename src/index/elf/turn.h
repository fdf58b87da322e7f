// The right to build or compact a table, which one thread at a time has, and for which none waits.
#pragma once

#include <atomic>

namespace perdix::detail::index::elf {

class Turn {
 public:
  explicit Turn(std::atomic<bool>& taken)
      : taken_(taken), mine_(!taken.exchange(true, std::memory_order_acquire)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (mine_) taken_.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return mine_; }

 private:
  std::atomic<bool>& taken_;
  const bool mine_;
};

}  // namespace perdix::detail::index::elf
