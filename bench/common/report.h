// The report of a run, whatever was measured, and the forms in which it is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/environment.h"
#include "common/figure.h"

namespace perdix::bench {

/// A statement about a figure, and what was measured.
struct Checked {
  std::string figure;
  std::string claim;
  double value = 0;  ///< NaN: not measured
  double bound = 0;
  bool at_least = false;  ///< otherwise at most

  bool holds() const { return at_least ? value >= bound : value <= bound; }
};

struct Report {
  std::string title;        ///< of the page
  nlohmann::json settings;  ///< what the run did: the program's options
  std::string sizes;        ///< the same in a few words
  std::uint64_t repeat = 1;
  Environment environment;
  std::vector<SystemInfo> systems;
  std::vector<std::string> notes;  ///< what else a reader must know, a line each
  std::vector<Figure> figures;
  std::vector<Checked> checks;
  std::uint64_t wrong = 0;  ///< answers that were not the expected ones, and lost records
  std::vector<std::string> named_problems;         ///< a sentence each, where more is known
  nlohmann::json more = nlohmann::json::object();  ///< that the JSON has beside the above

  /// What must not be, a sentence each.
  std::vector<std::string> problems() const;
};

/// A report of a run whose files lie in the directory, without results.
Report report_of(std::string title, const std::filesystem::path& directory, std::uint64_t repeat);

void write_text(std::ostream& out, const Report& report);
nlohmann::json to_json(const Report& report);
void write_html(std::ostream& out, const Report& report);

}  // namespace perdix::bench
