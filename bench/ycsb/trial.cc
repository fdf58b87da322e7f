#include "ycsb/trial.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/figure.h"
#include "ycsb/memory.h"

namespace perdix::bench {
namespace {

/// An estimate of what a system takes in DRAM, files in DRAM included. A run with a meter takes no
/// times and needs no warm memory.
std::uint64_t memory_of(const Setup& setup, const Meter* meter) {
  return meter != nullptr ? 0 : setup.max_records * 2 * (setup.data.shape.pair_size() + 48);
}

/// What has grown from `before` to `now`.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now - std::min(now, before);
}

Reopened reopen(const System& system, const Setup& setup, std::uint64_t records) {
  std::vector<Op> gets(records);
  for (std::uint64_t n = 0; n < records; ++n)
    gets[n] = {n, 0, static_cast<std::uint64_t>(OpKind::get)};
  const std::span<const Op> all = gets;
  Reopened result;
  result.records = records;
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const std::unique_ptr<Store> store = system.open(setup);
  result.open_seconds = elapsed();
  store->run({all.subspan(records / 2, 1), 0, 1, nullptr, nullptr}, [] {});
  result.first_answer_seconds = elapsed();
  store->resume();
  result.resumed_seconds = elapsed();
  result.lost = store->run({all, 0, 1024, nullptr, nullptr}, [] {}).wrong;
  return result;
}

}  // namespace

void Bench::show(const System& system, const Workload& workload, unsigned threads,
                 std::uint64_t done, std::uint64_t total) const {
  if (!options.on_progress) return;
  options.on_progress({fmt::format("{} {}, {}", system.name, workload.name, threads_text(threads)),
                       done, total, phase, phases});
}

Trial::Trial(Bench& bench, const System& system, Setup setup, std::uint64_t load, Meter* meter)
    : bench_(bench),
      system_(system),
      threads_(setup.threads),
      sample_every_(setup.synced() ? 1 : bench.sample_every),
      meter_(meter),
      directory_(bench.parent),
      warm_(bench.warm_memory.value_or(memory_of(setup, meter))),
      keeper_(warm_),
      resident_before_(resident()) {
  setup.directory = directory_.path();
  setup.data.seed = bench.options.seed;
  if (meter_ != nullptr) meter_->open();
  store_ = system.open(setup);
  if (load > 0) run(find_workload("load"), Distribution::uniform, load);
}

std::uint64_t Trial::resident() const { return growth(warm_.held(), resident_anonymous_bytes()); }

Footprint Trial::footprint() const {
  return {store_->footprint(), growth(resident_before_, resident()),
          allocated_bytes(directory_.path()), records()};
}

OwnFootprint Trial::known_footprint() const {
  const Footprint all = footprint();
  OwnFootprint own = all.own;
  if (!system_.persistent && !own.dram_bytes) own.dram_bytes = all.resident;
  if (system_.persistent && !own.stored_bytes) own.stored_bytes = all.files;
  return own;
}

PhaseResult Trial::run(const Workload& workload, Distribution distribution,
                       std::uint64_t operations) {
  Store* const store = store_.get();
  return run_on({&store, 1}, threads_, workload, distribution, operations);
}

PhaseResult Trial::run_apart(std::span<const std::unique_ptr<Trial>> trials,
                             const Workload& workload, Distribution distribution,
                             std::uint64_t operations) {
  std::vector<Store*> stores;
  for (const auto& trial : trials) stores.push_back(trial->store_.get());
  return trials.front()->run_on(stores, static_cast<unsigned>(stores.size()), workload,
                                distribution, operations);
}

PhaseResult Trial::run_on(std::span<Store* const> stores, unsigned threads,
                          const Workload& workload, Distribution distribution,
                          std::uint64_t operations) {
  const RunOptions& run = bench_.options;
  const auto plan =
      bench_.planner.plan(workload, distribution, operations, threads, run.seed, records_);
  PhaseOptions options{run.seed, sample_every_, run.stop, meter_, nullptr};
  if (run.on_progress) {
    options.on_progress = [&](std::uint64_t done) {
      bench_.show(system_, workload, threads, done, operations);
    };
    options.on_progress(0);  // a short phase makes no other call
  }
  warm_.begin_phase();
  if (meter_ != nullptr) meter_->start();
  const auto written = device_bytes_written(directory_.path());
  PhaseResult result = run_phase(stores, plan, options);
  if (written) result.device_bytes = *device_bytes_written(directory_.path()) - *written;
  if (meter_ != nullptr) result.counts = meter_->stop();
  run.check_stop();
  bench_.wrong += result.wrong;
  return result;
}

Reopened reopen_after_kill(Bench& bench, const System& system, Setup setup, std::uint64_t records) {
  const ScratchDirectory directory(bench.parent);
  setup.directory = directory.path();
  setup.data.seed = bench.options.seed;
  bench.show(system, find_workload("reopen"), setup.threads, 0, records);
  bench.crasher->load_and_kill(system.name, setup, records, bench.options.seed);
  bench.options.check_stop();
  const Reopened result = reopen(system, setup, records);
  bench.wrong += result.lost;
  return result;
}

}  // namespace perdix::bench
