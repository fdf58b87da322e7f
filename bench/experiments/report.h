// The results of a run of experiments.
#pragma once

#include <cstdint>
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
  std::uint64_t wrong = 0;  ///< answers that were not the expected ones, and lost records

  std::uint64_t wrong_answers() const { return wrong; }
};

void write_text(std::ostream& out, const ExperimentReport& report);
nlohmann::json to_json(const ExperimentReport& report);
void write_html(std::ostream& out, const ExperimentReport& report);

}  // namespace perdix::bench
