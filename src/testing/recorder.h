// The probe that writes a trace.
//
// Stores of more than one word are split into words. Nobody promises the order in which a copy
// stores its words, so it is drawn for each copy: ascending, descending or shuffled. Flushes and
// fences are recorded in place of being done: what they achieve is up to the crash model.
//
// Thread-safe. Events outside of the watched memory, or while nothing is recorded, are ignored.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
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

  /// The calling thread is thread 0 of the recording, unless another one enters as that.
  void start(std::uint64_t seed);
  Trace stop();

  /// The calling thread is thread `number` of the recording.
  void enter(unsigned number);

  /// From now on, threads that have entered take turns; nullptr ends it. Not while one of them is
  /// at an event.
  void take_turns(Turns* turns);

  void mark(Event::Kind kind, std::uint32_t id);

  Sites& sites() noexcept { return sites_; }

  void on_read(const void* p, std::size_t n) override;
  void before_write(const void* p, std::size_t n) override;
  void on_write(const void* p, std::size_t n) override;
  bool on_flush(const void* p, std::size_t n, const pm::Site& site) override;
  bool on_fence(const pm::Site& site) override;
  void on_map(const void* base, std::size_t n) override;
  void on_yield() override;

 private:
  static constexpr unsigned kStranger = 0xff;

  unsigned thread_number();
  unsigned number_in_recording();
  void take_turn(bool storing);
  bool watched(const void* p, std::size_t n) const;
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base_);
  }
  void add(Event event);
  void add_store(unsigned thread, std::uint64_t offset, std::uint64_t end);

  std::uint64_t size_;
  pm::Probe* previous_;
  std::atomic<Turns*> turns_{
      nullptr};       // outside of the mutex: reads, of which there are many, look at nothing else
  std::mutex mutex_;  // guards what follows
  const std::byte* base_ = nullptr;
  bool recording_ = false;
  Trace trace_;
  util::Random random_{0};
  std::vector<std::thread::id> threads_;
  std::vector<std::uint64_t> words_;  // scratch: where the words of a copy begin
  Sites sites_;
};

}  // namespace perdix::testing
