// How write buffers change hands. A home that is written to gets a free one, or now and then that
// of a home that is no longer written to; buffers beyond the budget are given back.
//
// The `Store` has the buffers (write_buffers.h), and says which home has which:
//   Place, Lock         what names a home, Place() none; and what its holder locks
//   place_of(buffer)    the home of a buffer, which may lose it at any time
//   lock_at(place)      its lock
//   of(place)           the buffer of a home whose lock is held; null if it has none
//   take(buffer)        takes a buffer, whose chain is closed, from its home, whose lock is held,
//                       and returns the buffer's number
//
// A thread that waits for the lock of a home holds none. So a thread that needs a buffer for a home
// only tries those of others. Thread-safe, as WriteBuffers is.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include <perdix/error.h>

#include "pm/probe.h"

namespace perdix::detail::index {

template <class Store>
class BufferExchange : public Store {
 public:
  using Buffer = typename Store::Buffer;
  using Number = typename Store::Number;

  using Store::Store;

  /// A home whose lock is held; or none.
  struct Held {
    std::unique_lock<typename Store::Lock> lock;
    typename Store::Place place{};

    explicit operator bool() const { return lock.owns_lock(); }
  };

  /// Locks the home of a buffer, as std::unique_lock does it. Returns none if the buffer has lost
  /// its home, or the lock is not to be had.
  template <class... TryToLock>
  Held hold_home_of(const Buffer& buffer, TryToLock... how) const {
    const typename Store::Place place = this->place_of(buffer);
    pm::on_step("buffers: a buffer that another home may give");
    if (place == typename Store::Place()) return {};
    std::unique_lock lock(this->lock_at(place), how...);
    // A home with a buffer is one of the index: it loses the buffer before it goes.
    if (!lock || this->of(place) != &buffer) return {};
    return {std::move(lock), place};
  }

  /// The number of a buffer for a home without one, whose lock is held and has this version; 0 if
  /// there is none that can be had without waiting. merge(held, buffer) merges that of another home
  /// in place, or returns false. If it throws out_of_space it has not either.
  template <class Merge>
  Number obtain(Number preferred, std::uint64_t version, Merge merge) {
    const Number number = this->acquire(preferred);
    return number == 0 && this->may_take(version) ? take_cold(merge) : number;
  }

  /// Takes a buffer, whose chain is closed, from its home, whose lock is held, if there are more in
  /// use than the budget allows: those that survived an opening with a smaller one, or with less in
  /// the log. Returns whether it has.
  bool shed(Buffer& buffer) {
    if (!this->budget_is_exceeded()) return false;
    pm::on_step("buffers: give back a buffer");
    this->release(this->take(buffer));
    return true;
  }

 private:
  /// Beyond the budget the buffer is given back, and not handed on.
  template <class Merge>
  Number take_cold(Merge merge) {
    const Number number = this->cold();
    if (number == 0) return 0;
    Buffer& buffer = this->at(number);
    const Held home = hold_home_of(buffer, std::try_to_lock);
    try {
      if (!home || !merge(home, buffer)) return 0;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      return 0;
    }
    pm::on_step("buffers: take the buffer of another home");
    return shed(buffer) ? 0 : this->take(buffer);
  }
};

}  // namespace perdix::detail::index
