// The work of figures: which index is opened how, and what is done with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "figure/file.h"
#include "ycsb/store.h"
#include "ycsb/traffic.h"
#include "ycsb/workload.h"

namespace perdix::bench {

/// A phase of a job.
struct Step {
  Workload workload;
  Distribution distribution = Distribution::uniform;
  std::uint64_t count = 0;  ///< operations; of a restart, pairs
  bool up_to = false;       ///< `count` is how many pairs there are afterwards
  Coordinates at;
  std::string group, row;  ///< of the figure
};

/// An index that is opened, loaded and measured.
struct Job {
  const System* system = nullptr;
  Setup setup;
  TrafficModel model;
  std::optional<double> budget_share;  ///< percent of what write buffers for all take
  std::uint64_t load = 0;
  std::vector<Step> steps;
  std::string name;  ///< its coordinates, but for the budget
};

/// A figure with the jobs of each system that takes part.
struct Task {
  const FigureSpec* figure = nullptr;
  std::vector<std::vector<Job>> jobs;
};

/// Whether a system has what RunSpec::needs asks for: "pool", "persistent", "insert_ahead",
/// "load_factor". Throws perdix::Error invalid_argument, which lists these.
bool has_need(const System& system, std::string_view need);

/// The operation of that name: "get". Throws perdix::Error invalid_argument.
OpKind operation_of(std::string_view name);

/// Settings that have one value.
Names scalars(const FigureFile& file);

/// "cceh" and "bo", the names {index} and {techniques} of the system "cceh+bo".
Names names_of_system(std::string_view system);

/// The task of a figure with these systems, or with its own. It has no jobs if no system can take
/// part. Throws perdix::Error invalid_argument, with a line of the file, if something in the figure
/// makes no sense.
Task task_of(const FigureFile& file, const FigureSpec& figure,
             const std::vector<std::string>& systems);

}  // namespace perdix::bench
