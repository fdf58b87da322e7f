// Runs the experiments of a paper with the systems of `perdix bench`, for programs that write the
// results as figures.
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

/// The options of every such program.
struct ExperimentOptions {
  std::vector<std::string> figures;  ///< empty: all that the systems and this build allow
  std::vector<std::string> systems;
  std::uint64_t repeat = 1;  ///< rounds; medians are reported
  std::uint64_t seed = 1;
  std::filesystem::path pool_dir;  ///< empty: chosen
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;  ///< the run ends with Cancelled soon after it is true
};

/// The build that an experiment needs. Only an instrumented build has a meter, and its times are
/// meaningless.
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
  std::uint64_t most_records;  ///< maximum in an index
  std::uint64_t file_bytes;    ///< of the largest system, about
};

/// Returns those of the names that this build has systems of.
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

/// Runs the experiments that `options` names. The program must fill in title, settings and sizes of
/// the report. Throws perdix::Error if a system fails, and Cancelled after `options.stop`. Must be
/// called while the process has one thread, because it forks.
ExperimentReport run(const ExperimentOptions& options, const std::vector<Experiment>& experiments,
                     const Sizes& sizes);

}  // namespace perdix::bench
