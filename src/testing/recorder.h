// The probe that writes a trace.
//
// Stores of more than one word are split into words. The order in which a copy stores its words is
// not specified, so it is drawn for each copy: ascending, descending or shuffled. Flushes and
// fences are recorded in place of being done: what they achieve is up to the crash model.
//
// Thread-safe. Events outside of the watched memory, or while nothing is recorded, are ignored.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "testing/trace.h"
#include "testing/turns.h"
#include "testing/yield.h"
#include "util/random.h"

namespace perdix::testing {

class Recorder final : public YieldingProbe {
 public:
  /// Watches memory of up to `size` bytes, wherever it is mapped. Installs itself as the process's
  /// probe.
  explicit Recorder(std::uint64_t size);
  ~Recorder() override;

  /// The calling thread is the session's own, thread 0 in the recording. If it is to be the only
  /// one, the session depends on the seed and on nothing else.
  void start(std::uint64_t seed, bool alone);
  Trace stop();

  /// The calling thread is worker `number` of those that take turns. In the recording workers are
  /// numbered through behind the session's own thread: what one thread has flushed is not what
  /// another's fence waits for.
  void enter(unsigned number);

  /// From now on, workers that enter take turns; nullptr ends it. Called by the session's own
  /// thread, while no worker is at an event.
  void take_turns(Turns* turns);

  /// Until start() the calling thread is alone, and numbers that are drawn for persistent memory
  /// follow from this seed; then from that of the session.
  void draw_from(std::uint64_t seed);

  void mark(Event::Kind kind, std::uint32_t id);

  Sites& sites() noexcept { return sites_; }

  /// How often each named step was taken while something was recorded.
  const std::map<std::string, std::uint64_t>& steps() const noexcept { return steps_; }

  void on_read(const void* p, std::size_t n) override;
  void before_write(const void* p, std::size_t n) override;
  void on_write(const void* p, std::size_t n) override;
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site& site) override;
  bool on_fence(const detail::pm::Site& site) override;
  bool on_publish_for_next(std::uint64_t& word, std::uint64_t value,
                           const detail::pm::Site& site) override;
  bool on_commit(std::span<const detail::pm::Change> changes,
                 const detail::pm::Site& site) override;
  void on_step(const char* name) override;
  std::uint64_t on_limit(const char* name, std::uint64_t limit) override;
  std::uint64_t on_draw(std::uint64_t random) override;
  bool allows_background_reclamation() override { return !alone_; }
  void on_map(const void* base, std::size_t n) override;
  void on_yield() override;

 private:
  static constexpr unsigned kStranger = 0xff;

  unsigned thread_number();
  bool takes_turns(unsigned thread) const { return thread >= first_worker_ && thread != kStranger; }
  unsigned number_in_turns();
  void take_turn(Turns::At at);
  bool add_flush(unsigned thread, const void* p, std::size_t n, const detail::pm::Site& site);
  bool watched(const void* p, std::size_t n) const;
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base_);
  }
  void choose_limits(std::uint64_t seed);
  void add(Event event);
  void add_store(unsigned thread, std::uint64_t offset, std::uint64_t end);

  std::uint64_t size_;
  detail::pm::Probe* previous_;
  bool alone_ = true;  // changes only while no pool is open
  std::atomic<Turns*> turns_{
      nullptr};       // outside of the mutex: reads, of which there are many, look at nothing else
  std::mutex mutex_;  // guards what follows
  const std::byte* base_ = nullptr;
  bool recording_ = false;
  Trace trace_;
  detail::util::Random random_{0};
  detail::util::Random draws_{0};
  std::vector<std::thread::id> threads_;  // by number; no thread once a worker has ended
  unsigned first_worker_ = 1;             // of those that take turns
  std::vector<std::uint64_t> words_;      // scratch: where the words of a copy begin
  Sites sites_;
  std::map<std::string, std::uint64_t> steps_;
  std::uint64_t logged_ = 0;    // before a log is made shorter; 0: as much as usual
  std::uint64_t children_ = 0;  // that a node in DRAM may have; 0: as many as usual
};

}  // namespace perdix::testing
