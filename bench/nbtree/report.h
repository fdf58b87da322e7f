// What a run found: figures, each of which is a table of groups, contenders and metrics.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nbtree/config.h"

namespace perdix::bench::figures {

enum class Unit : std::uint8_t { nanoseconds, operations_per_second, bytes, ratio };

struct Metric {
  std::string name;
  Unit unit = Unit::nanoseconds;
};

struct Row {
  std::string group;  ///< what the contenders did, or with how much
  std::string contender;
  std::vector<double> values;  ///< one for each metric
};

struct Figure {
  std::string name;
  std::string title;
  std::vector<Metric> metrics;  ///< the first one is plotted
  std::vector<Row> rows;
};

struct Report {
  Config config;
  std::string directory;
  std::string file_system;
  std::string machine;
  std::string build;
  std::vector<Figure> figures;
  std::uint64_t wrong = 0;  ///< answers that were not the expected ones

  std::uint64_t wrong_answers() const { return wrong; }
};

void write_text(std::ostream& out, const Report& report);
nlohmann::json to_json(const Report& report);
void write_html(std::ostream& out, const Report& report);

}  // namespace perdix::bench::figures
