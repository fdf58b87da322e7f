#include "experiments/trial.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ycsb/config.h"
#include "ycsb/memory.h"

namespace perdix::bench {
namespace {

/// An estimate of what a system takes in DRAM, files in DRAM included. A run with a meter takes no
/// times and needs no warm memory.
std::uint64_t memory_of(const Setup& setup, const Meter* meter) {
  return meter != nullptr ? 0 : setup.max_records * 2 * (setup.data.shape.pair_size() + 48);
}

}  // namespace

Trial::Trial(Bench& bench, const System& system, Setup setup, std::uint64_t load, Meter* meter)
    : bench_(bench),
      system_(system),
      threads_(setup.threads),
      meter_(meter),
      directory_(bench.parent),
      warm_(memory_of(setup, meter)),
      keeper_(warm_),
      resident_before_(resident()) {
  setup.directory = directory_.path();
  setup.data.seed = bench.seed;
  if (meter_ != nullptr) meter_->open();
  store_ = system.open(setup);
  if (load > 0) run(find_workload("load"), Distribution::uniform, load);
}

std::uint64_t Trial::resident() const {
  const std::uint64_t held = warm_.held(), all = resident_anonymous_bytes();
  return all - std::min(all, held);
}

OwnFootprint Trial::footprint() const {
  OwnFootprint own = store_->footprint();
  const std::uint64_t now = resident();
  if (!system_.persistent && !own.dram_bytes)
    own.dram_bytes = now - std::min(now, resident_before_);
  if (system_.persistent && !own.stored_bytes)
    own.stored_bytes = allocated_bytes(directory_.path());
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
  const auto plan =
      bench_.planner.plan(workload, distribution, operations, threads, bench_.seed, records_);
  PhaseOptions options;
  options.seed = bench_.seed;
  options.stop = bench_.stop;
  options.meter = meter_;
  if (bench_.on_progress) {
    options.on_progress = [&](std::uint64_t done) {
      bench_.on_progress(system_, workload, threads, done, operations);
    };
    options.on_progress(0);  // a short phase makes no other call
  }
  warm_.begin_phase();
  if (meter_ != nullptr) meter_->start();
  const PhaseResult result = run_phase(stores, plan, options);
  if (bench_.stop != nullptr && bench_.stop->load(std::memory_order_relaxed)) throw Cancelled();
  bench_.wrong += result.wrong;
  return result;
}

}  // namespace perdix::bench
