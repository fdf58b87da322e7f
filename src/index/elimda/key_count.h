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
  /// A write that adds or removes a key: it is counted before it is visible, and again afterwards,
  /// so that keys() knows whether one is on its way.
  class CountedWrite {
   public:
    explicit CountedWrite(KeyCount& count) : count_(&count) { count.begun_.add(1); }
    CountedWrite(const CountedWrite&) = delete;
    CountedWrite& operator=(const CountedWrite&) = delete;
    ~CountedWrite() {
      if (count_ != nullptr) count_->begun_.add(-1);
    }
    void added() { done(count_->added_); }
    void removed() { done(count_->removed_); }

   private:
    void done(util::StripedCounter& writes) {
      writes.add(1);
      count_ = nullptr;
    }

    KeyCount* count_;
  };

  /// Has the next keys() count: a pair became visible that may be a duplicate. The caller has
  /// passed a full barrier since then: if a concurrent count has missed the pair, this load sees
  /// the state that it has set.
  void forget() {
    if (state_.load() != State::unknown) state_.store(State::unknown);
  }

  bool known() const { return state_.load(std::memory_order_acquire) == State::known; }

  /// The number of keys. Calls count() unless it is known; one thread at a time.
  template <class Count>
  std::uint64_t keys(Count count) {
    if (!known()) {
      const std::lock_guard lock(counting_);
      if (!known()) return remember(count);
    }
    return static_cast<std::uint64_t>(at_count_.load() + added_.sum() - removed_.sum());
  }

 private:
  enum class State : std::uint8_t { unknown, counting, known };

  /// Counts, and remembers the count unless a writer was active during the call.
  template <class Count>
  std::uint64_t remember(Count count) {
    state_.store(State::counting);  // an insert_ahead from now on takes that back
    const std::int64_t added = added_.sum(), removed = removed_.sum(), begun = begun_.sum();
    const std::uint64_t keys = count();
    if (begun != added + removed || begun_.sum() != begun) return keys;
    at_count_.store(static_cast<std::int64_t>(keys) - (added - removed));
    State counting = State::counting;
    state_.compare_exchange_strong(counting, State::known);
    return keys;
  }

  util::StripedCounter begun_;  // writes that are about to add or remove a key, or have
  util::StripedCounter added_;
  util::StripedCounter removed_;
  std::mutex counting_;
  std::atomic<State> state_{State::unknown};
  std::atomic<std::int64_t> at_count_{0};  // `added_ - removed_` was 0 then
};

}  // namespace perdix::detail::index::elimda
