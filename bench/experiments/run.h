// The experiments of a paper that the systems of perdix bench go through, for a program that
// writes them as figures.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/figure.h"
#include "experiments/report.h"
#include "experiments/trial.h"
#include "ycsb/config.h"

namespace perdix::bench {

/// What every such program can be told.
struct ExperimentOptions {
  std::vector<std::string> figures;  ///< empty: all that the systems and this build allow
  std::vector<std::string> systems;
  std::uint64_t repeat = 1;  ///< rounds; medians are reported
  std::uint64_t seed = 1;
  std::filesystem::path pool_dir;  ///< empty: chosen
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true
};

/// Where an experiment makes sense: only an instrumented build has a meter, and its times mean
/// nothing.
enum class Needs : std::uint8_t { nothing, meter, clock };

struct Experiment {
  std::string name;
  std::string title;
  std::vector<Metric> metrics;
  bool (*suits)(const System&);  ///< whether a system can take part
  /// Adds the rows of a system to the figure.
  std::function<void(Bench&, Figure&, const System&)> measure;
  Needs needs = Needs::nothing;  ///< of the build
};

/// Sizes that follow from a program's options.
struct Sizes {
  std::uint64_t most_records;  ///< that an index will ever hold
  std::uint64_t file_bytes;    ///< of the largest system, about
};

/// Those of these systems that there are.
std::vector<std::string> known_systems(const std::vector<std::string>& names);

/// "figure", "other": what ExperimentOptions::figures may have.
std::vector<std::string> names_of(const std::vector<Experiment>& experiments);

/// Throws perdix::Error invalid_argument unless the condition holds.
void require(bool condition, const std::string& message);

/// Whether there are numbers, all of them between `least` and `most`.
bool between(const std::vector<std::uint64_t>& numbers, std::uint64_t least, std::uint64_t most);

/// Whether there are numbers above 0, each larger than the one before.
bool ascending(const std::vector<std::uint64_t>& numbers);

/// Throws perdix::Error if the options make no sense with these experiments.
void validate(const ExperimentOptions& options, const std::vector<Experiment>& experiments);

/// Carries out the experiments that are wanted. Title, settings and sizes of the report are left to
/// the program. Throws perdix::Error if a system fails, Cancelled after `options.stop`. Call it
/// while the process has one thread: it forks.
ExperimentReport run(const ExperimentOptions& options, const std::vector<Experiment>& experiments,
                     const Sizes& sizes);

}  // namespace perdix::bench
