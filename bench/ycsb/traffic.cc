#include "ycsb/traffic.h"

#include <array>
#include <optional>

#include <CLI/CLI.hpp>

#include "testing/meter/meter.h"

namespace perdix::bench {
namespace {

constexpr std::array<std::string_view, kOpKinds> kNames = {
    "get",  "absent get", "insert",      "update",      "read-modify-write",
    "scan", "erase",      "batched get", "insert_ahead"};

testing::Meter::Kind kind_of(OpKind kind) { return static_cast<testing::Meter::Kind>(kind) + 1; }

class TrafficMeter final : public Meter {
 public:
  testing::MeterOptions& options() { return options_; }

  void open() override {
    detail::pm::install_probe(nullptr);
    meter_.emplace(options_);
    if (options_.log_records) return;
    opening_.emplace(options_);  // an index asks for this when it is made
    detail::pm::install_probe(&*opening_);
  }
  // The meter starts with the first phase, with an empty cache. Creating a pool touches the lanes
  // of all threads, and pages are numbered in the order in which they are touched.
  void start() override {
    meter_->reset();
    detail::pm::install_probe(&*meter_);
  }
  std::vector<Count> stop() override;
  void begin(OpKind kind) override { meter_->begin(kind_of(kind)); }
  void end() override { meter_->end(); }

  ~TrafficMeter() override { detail::pm::install_probe(nullptr); }

 private:
  testing::MeterOptions options_;
  std::optional<testing::Meter> meter_, opening_;
};

void append(std::vector<Count>& counts, const std::string& kind, const testing::Traffic& traffic) {
  const auto add = [&](const char* what, std::uint64_t value) {
    counts.push_back({kind, what, value, traffic.operations});
  };
  add("PM lines read", traffic.lines_read);
  add("PM lines written", traffic.lines_written);
  add("lines flushed", traffic.flushes);
  add("fences", traffic.fences);
  add("bus bytes read", traffic.device.imc_read);
  add("bus bytes written", traffic.device.imc_written);
  add("media bytes read", traffic.device.media_read);
  add("media bytes read to modify", traffic.device.media_read_to_modify);
  add("media bytes written", traffic.device.media_written);
}

std::vector<Count> TrafficMeter::stop() {
  std::vector<Count> counts;
  for (std::size_t i = 0; i < kOpKinds; ++i) {
    const testing::Traffic traffic = meter_->traffic(kind_of(static_cast<OpKind>(i)));
    const bool touched_pm = traffic.lines_read + traffic.lines_written > 0;
    if (touched_pm) append(counts, std::string(kNames[i]), traffic);
  }
  const testing::Traffic outside = meter_->traffic(testing::Meter::kOutside);
  if (outside != testing::Traffic()) append(counts, "background", outside);
  return counts;
}

}  // namespace

std::unique_ptr<Meter> make_meter(const TrafficModel& model) {
  auto meter = std::make_unique<TrafficMeter>();
  testing::MeterOptions& options = meter->options();
  options.platform = model.caches_persist ? testing::Platform::eadr : testing::Platform::adr;
  options.device.media_unit = model.media_unit;
  options.cache.bytes = model.cache_bytes;
  options.log_records = model.log_records;
  return meter;
}

void add_meter(CLI::App& command, Options& options) {
  const auto meter = std::make_shared<TrafficMeter>();
  options.meter = meter;
  options.config.meter = meter.get();
  testing::MeterOptions& model = meter->options();
  command
      .add_option("--media-unit", model.device.media_unit,
                  "Traffic model: bytes in a media access, 64 to 4096")
      ->check(CLI::IsMember({64, 256, 4096}))
      ->capture_default_str();
  command.add_option("--cache-bytes", model.cache.bytes, "Traffic model: size of the CPU cache")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  const auto platform = [&model](testing::Platform choice) {
    return [&model, choice](std::int64_t) { model.platform = choice; };
  };
  CLI::Option* adr = command.add_flag("--adr", platform(testing::Platform::adr),
                                      "Traffic model: flushes write lines back (the default)");
  command
      .add_flag("--eadr", platform(testing::Platform::eadr),
                "Traffic model: only evictions write lines back")
      ->excludes(adr);
  command.add_flag("!--no-prefetch", model.prefetch.enabled,
                   "Traffic model: the CPU does not run ahead of sequential reads");
}

}  // namespace perdix::bench
