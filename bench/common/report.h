// The results of a run of experiments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/figure.h"

namespace perdix::bench {

struct SystemInfo {
  std::string name;
  bool persistent = false;  ///< its records survive the end of the process
  std::string settings;
};

/// A statement about a figure, and what was measured.
struct Checked {
  std::string figure;
  std::string claim;
  double value = 0;  ///< NaN: not measured
  double bound = 0;
  bool at_least = false;  ///< otherwise at most

  bool holds() const { return at_least ? value >= bound : value <= bound; }
};

struct ExperimentReport {
  std::string title;        ///< of the page
  nlohmann::json settings;  ///< what the run did: the program's options
  std::string sizes;        ///< the same in a few words
  std::uint64_t repeat = 1;
  std::string directory;
  std::string file_system;
  std::string machine;
  std::string build;
  std::vector<SystemInfo> systems;
  std::vector<std::string> notes;  ///< what else a reader must know, a line each
  std::vector<Figure> figures;
  std::vector<Checked> checks;
  std::uint64_t wrong = 0;  ///< answers that were not the expected ones, and lost records

  std::uint64_t wrong_answers() const { return wrong; }
};

/// A report of a run whose files lie in the directory, without results.
ExperimentReport report_of(std::string title, const std::filesystem::path& directory,
                           std::uint64_t repeat);

void write_text(std::ostream& out, const ExperimentReport& report);
nlohmann::json to_json(const ExperimentReport& report);
void write_html(std::ostream& out, const ExperimentReport& report);

}  // namespace perdix::bench
