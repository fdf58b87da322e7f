// How many keys an index has. insert_ahead() does not know whether it adds a key, so the next call
// of keys() after it counts; between such calls the number follows from the writes.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "util/striped_counter.h"

namespace perdix::detail::index::elimda {

class KeyCount {
 public:
  /// A key has come or gone. Called behind that, by the holder of a lock that quiet() of keys()
  /// asks for.
  void added() { added_.add(1); }
  void removed() { removed_.add(1); }

  /// Has the next keys() count: a pair became visible that may be a duplicate. The caller has
  /// passed a full barrier since then: if a concurrent count has missed the pair, this load sees
  /// the state that it has set.
  void forget() {
    if (state_.load() != State::unknown) state_.store(State::unknown);
  }

  bool known() const { return state_.load(std::memory_order_acquire) == State::known; }

  /// The number of keys. Calls count() unless it is known; one thread at a time. The result is
  /// remembered if no writer was active: quiet() returns whether none holds its lock.
  template <class Count, class Quiet>
  std::uint64_t keys(Count count, Quiet quiet) {
    if (!known()) {
      const std::lock_guard lock(counting_);
      if (!known()) return remember(count, quiet);
    }
    return static_cast<std::uint64_t>(at_count_.load() + added_.sum() - removed_.sum());
  }

 private:
  enum class State : std::uint8_t { unknown, counting, known };

  /// Writes that were counted before this call are seen by count(), and those counted during it
  /// change the sums. One that count() may have seen and that is counted later holds its lock until
  /// then.
  template <class Count, class Quiet>
  std::uint64_t remember(Count count, Quiet quiet) {
    state_.store(State::counting);  // an insert_ahead from now on takes that back
    const std::int64_t added = added_.sum(), removed = removed_.sum();
    const std::uint64_t keys = count();
    if (!quiet() || added_.sum() != added || removed_.sum() != removed) return keys;
    at_count_.store(static_cast<std::int64_t>(keys) - (added - removed));
    State counting = State::counting;
    state_.compare_exchange_strong(counting, State::known);
    return keys;
  }

  util::StripedCounter added_;
  util::StripedCounter removed_;
  std::mutex counting_;
  std::atomic<State> state_{State::unknown};
  std::atomic<std::int64_t> at_count_{0};  // `added_ - removed_` was 0 then
};

}  // namespace perdix::detail::index::elimda
