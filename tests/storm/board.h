// The state that the worker of an episode and its supervisor share: the model, the progress of each
// thread, and the findings. It lies in memory that outlives a killed worker. Thread-safe.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storm/model.h"
#include "storm/plan.h"

namespace perdix::test::storm {

/// The main thread of the worker has number 0, the others follow.
inline constexpr unsigned kSeats = kMaxThreads + 2;

/// A thread's call into the library that is on its way.
struct Seat {
  std::atomic<const char*> call{nullptr};  ///< a literal; the supervisor has it at the same address
  std::atomic<std::uint64_t> since{0};     ///< nanoseconds of the monotonic clock; 0: none
  std::atomic<std::uint64_t> calls{0};     ///< that have returned
};

struct Counters {
  std::atomic<std::uint64_t> operations{0}, injected{0}, failed_calls{0}, kills{0},
      kills_in_open{0}, reopens{0}, comparisons{0}, forks{0}, copies{0}, copies_refused{0},
      recreated{0}, damaged{0}, full{0}, visits{0}, threads{0}, stops{0}, power_losses{0},
      descriptors_lost{0};
};

/// Facts by pool.
using ByPool = std::array<std::atomic<bool>, kMaxPools>;
bool any(const ByPool& facts);

struct Board {
  // Where the worker is; a new worker goes on from here.
  std::atomic<std::uint32_t> round{0};
  std::atomic<std::uint32_t> openings_killed{0};  ///< in this round
  std::atomic<std::uint32_t> step{0};
  std::atomic<bool> opened{false};
  std::atomic<bool> finished{false};
  std::atomic<bool> power_lost{false};     ///< the next worker begins with what devices hold
  std::atomic<bool> damage_wanted{false};  ///< the next worker opens damaged copies, and ends
  std::atomic<int> planned_signal{0};      ///< the worker dies of this now, as planned
  std::atomic<pid_t> orphan{0};            ///< a child that outlives the worker
  /// By pool: a sync has failed since it was opened, so calls that throw are undecided.
  ByPool sick{};
  /// By pool: a drop, or an opening that went on with one, could not free all of its index, since
  /// a call to the system had been made to fail; the next opening does that.
  ByPool drop_unfinished{};
  /// By pool: since it was opened its descriptor was closed, or given to another file. Changes may
  /// throw io_error, then without an effect; reads go on.
  ByPool descriptor_lost{};
  /// Suspensions that others should not have noticed, and those that stopped one of them.
  std::atomic<unsigned> suspensions{0}, suspensions_noticed{0};
  std::atomic<bool> faults_on{false};     ///< in the step at hand
  std::atomic<bool> others_armed{false};  ///< calls of the library's own threads may fail

  std::atomic<bool> has_problem{false};
  std::array<char, 6000> problem{};
  std::array<void*, 40> stack{};  ///< of the thread that a signal hit
  std::atomic<int> frames{0};

  std::array<Seat, kSeats> seats;
  Counters counters;
};

/// Anonymous memory that forked children share with the process that made it.
class Shared {
 public:
  explicit Shared(std::size_t bytes);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// The states of the keys of one index.
struct IndexModel {
  Cell* cells = nullptr;   ///< of the keys with an owner
  HotCell* hot = nullptr;  ///< of the kHotKeys keys behind them
};

/// Board and model of an episode.
class Ground {
 public:
  explicit Ground(const Episode& episode);

  Board& board() { return *board_; }
  IndexModel& model(std::size_t index) { return models_[index]; }

 private:
  Shared memory_;
  Board* board_;
  std::vector<IndexModel> models_;
};

/// Nanoseconds of the monotonic clock.
std::uint64_t now();

/// Thrown when the library contradicts its contract. The worker reports it and ends.
class Finding : public std::exception {
 public:
  explicit Finding(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

void require(bool condition, const std::string& what);

/// Marks a call into the library for the watchdog. `name` must be a literal.
class Call {
 public:
  Call(Seat& seat, const char* name) : seat_(seat), before_(seat.call.load()) {
    seat.call.store(name, std::memory_order_relaxed);
    seat.since.store(now(), std::memory_order_relaxed);
  }
  ~Call() {
    seat_.call.store(before_, std::memory_order_relaxed);
    seat_.since.store(before_ == nullptr ? 0 : now(), std::memory_order_relaxed);
    // No addition in one: a seat has one thread.
    seat_.calls.store(seat_.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Seat& seat_;
  const char* before_;  // a visitor's call lies within a scan
};

}  // namespace perdix::test::storm
