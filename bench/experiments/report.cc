#include "experiments/report.h"

#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "common/html.h"
#include "terminal/format.h"

namespace perdix::bench {
namespace {

std::string wrong_answers(const ExperimentReport& report) {
  return terminal::format_count(report.wrong) + " answers were wrong, or records lost";
}

const char* durability_of(const SystemInfo& system) {
  return system.persistent ? "persistent" : "volatile";
}

}  // namespace

void write_text(std::ostream& out, const ExperimentReport& report) {
  fmt::print(out, "{}\n{}\n{} ({}); {}; medians of {} round{}\n\n", report.machine, report.build,
             report.directory, report.file_system, report.sizes, report.repeat,
             report.repeat == 1 ? "" : "s");
  for (const SystemInfo& system : report.systems)
    fmt::print(out, "{:<12} {:<11} {}\n", system.name, durability_of(system), system.settings);
  for (const std::string& note : report.notes) fmt::print(out, "{}\n", note);
  for (const Figure& figure : report.figures) write_table(out, figure);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const ExperimentReport& report) {
  nlohmann::json systems = nlohmann::json::array();
  for (const SystemInfo& system : report.systems) {
    systems.push_back({{"name", system.name},
                       {"durability", durability_of(system)},
                       {"settings", system.settings}});
  }
  return {{"config", report.settings},
          {"directory", report.directory},
          {"file_system", report.file_system},
          {"machine", report.machine},
          {"build", report.build},
          {"systems", systems},
          {"notes", report.notes},
          {"figures", to_json(report.figures)},
          {"wrong", report.wrong}};
}

void write_html(std::ostream& out, const ExperimentReport& report) {
  begin_html(out, report.title);
  if (report.wrong != 0) write_problem(out, wrong_answers(report));
  for (const Figure& figure : report.figures) write_plot(out, figure);
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench
