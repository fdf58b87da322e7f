// Where one thread waits until it has its turn. Whoever gives the turn wakes that thread and no
// other, and needs no lock for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace perdix::detail::pm {

class Turn {
 public:
  enum class Kind : std::uint32_t {
    none,
    lead,  ///< the thread makes the next sync
    done,  ///< what it waited for has happened
  };

  /// Waits until there is a turn. Happens after the give(). Only the thread that owns this.
  Kind wait() noexcept;

  /// Gives the thread a turn, from any other thread or from its own. With Kind::done this may be
  /// gone before the call returns.
  void give(Kind kind) noexcept;

 private:
  /// Instead of none: the thread is, or will be, asleep in the kernel.
  static constexpr auto kAsleep = static_cast<Kind>(~std::uint32_t{0});

  std::atomic<Kind> kind_{Kind::none};
};

}  // namespace perdix::detail::pm
