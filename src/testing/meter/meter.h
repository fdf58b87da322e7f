// The traffic meter: a probe that counts, for each kind of operation, the PM lines read and
// written, the flushes and fences, and what a model of cache and device makes of them in bytes on
// the memory bus and on the media.
//
//   Meter meter(options);
//   pm::install_probe(&meter);
//   { Meter::Operation operation(meter, kInsert);  index.insert(key, value); }
//   meter.traffic(kInsert)
//
// A kind is a small number of the caller's choice. What happens outside every operation (background
// work, opening a pool) is counted under kOutside. Thread-safe, by a mutex; with one thread a run
// counts the same each time. It suppresses nothing, but for the records of logs if the options say
// so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pm/probe.h"
#include "testing/meter/line_map.h"
#include "testing/meter/line_set.h"
#include "testing/meter/memory_model.h"
#include "testing/meter/options.h"
#include "testing/meter/traffic.h"

namespace perdix::testing {

class Meter final : public detail::pm::Probe {
 public:
  using Kind = std::uint32_t;
  static constexpr Kind kOutside = 0;

  explicit Meter(const MeterOptions& options = {}) : options_(options), model_(options) {}

  /// The calling thread begins or ends an operation. They do not nest.
  void begin(Kind kind);
  void end();

  /// begin() and end() as an object.
  class Operation {
   public:
    Operation(Meter& meter, Kind kind) : meter_(meter) { meter_.begin(kind); }
    ~Operation() { meter_.end(); }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    Meter& meter_;
  };

  /// The counts since the last reset(); zeros for a kind that did not occur.
  Traffic traffic(Kind kind) const;

  /// Sets all counts to zero. Cache and buffers keep their contents.
  void reset();

  void on_read(const void* p, std::size_t n) override;
  void on_write(const void* p, std::size_t n) override;
  void on_stream(const void* p, std::size_t n) override;
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site& site) override;
  bool on_fence(const detail::pm::Site& site) override;
  std::uint64_t on_limit(const char* name, std::uint64_t limit) override;

 private:
  // The operation of a thread. Lines are counted once per operation; outside one, each time.
  struct Context {
    Kind kind = kOutside;
    LineSet read;
    LineSet written;
  };

  Context& context();
  Traffic& counts(Kind kind);

  // Calls act(line) for each line of [p, p+n) and books what the device does during the calls.
  template <class Act>
  void each_line(const Context& context, const void* p, std::size_t n, const Act& act);

  MeterOptions options_;
  mutable std::mutex mutex_;
  LineMap lines_;
  MemoryModel model_;
  std::vector<Traffic> counts_;  // by kind
  std::unordered_map<std::thread::id, Context> contexts_;
  std::thread::id last_thread_;
  Context* last_context_ = nullptr;
};

}  // namespace perdix::testing
