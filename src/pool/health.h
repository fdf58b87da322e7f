// Whether this process may use a pool: one word, which every public call reads before it touches
// the pool, and a read once more before it shows what it found.
//
// The word has a page to itself, which the kernel hands to a child of fork() as zeros
// (MADV_WIPEONFORK). So a child finds `forked`, whichever way it was made, and so do its children.
//
// A pool becomes usable when this object is made. It only ever gets worse.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace perdix::detail::pool {

class Health {
 public:
  enum class State : std::uint32_t {
    forked = 0,       ///< a child inherited the pool, which stays its parent's
    sync_failed = 1,  ///< the content of the device is unknown
    page_lost = 2,    ///< the device did not give a page, which is zeros in memory now
    file_lost = 3,    ///< the program has closed the file; what is mapped is as it should be
    usable = 4,
  };

  struct Unmap {
    void operator()(Health* health) const noexcept;
  };
  using Owner = std::unique_ptr<Health, Unmap>;

  /// Usable. Throws io_error if the kernel gives no such page.
  static Owner create();

  /// Comes after what the caller has read of the pool, since words of a pool are read with acquire.
  State state() const noexcept { return state_.load(std::memory_order_acquire); }

  /// Whether the pool can be read, and whether it can also be written.
  bool usable() const noexcept { return state() >= State::file_lost; }
  bool writable() const noexcept { return state() == State::usable; }
  bool forked() const noexcept { return state() == State::forked; }
  bool page_lost() const noexcept { return state() == State::page_lost; }

  void set_sync_failed() noexcept { state_.store(State::sync_failed, std::memory_order_release); }

  /// Unless something worse has happened.
  void set_file_lost() noexcept {
    State expected = State::usable;
    state_.compare_exchange_strong(expected, State::file_lost, std::memory_order_acq_rel);
  }

  /// Throws forked or io_error: what the state says of the pool at this path.
  [[noreturn]] void throw_unusable(const std::string& pool) const;

  /// Async-signal-safe.
  void set_page_lost() noexcept { state_.store(State::page_lost, std::memory_order_release); }

 private:
  Health() = default;

  std::atomic<State> state_{State::usable};
  static_assert(std::atomic<State>::is_always_lock_free, "a signal handler stores it");
};

}  // namespace perdix::detail::pool
