#include "common/report.h"

#include <cmath>
#include <ostream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "common/environment.h"
#include "common/html.h"
#include "common/place.h"
#include "terminal/format.h"

namespace perdix::bench {
namespace {

std::string wrong_answers(const ExperimentReport& report) {
  return terminal::format_count(report.wrong) + " answers were wrong, or records lost";
}

const char* result_of(const Checked& check) {
  if (std::isnan(check.value)) return "not measured";
  return check.holds() ? "holds" : "does not hold";
}

void write_checks(std::ostream& out, const std::vector<Checked>& checks) {
  if (!checks.empty()) out << "\nchecks\n";
  for (const Checked& check : checks) {
    const std::string value = std::isnan(check.value) ? "" : fmt::format("{:.2f}, ", check.value);
    fmt::print(out, "{}: {}: {}{} {}: {}\n", check.figure, check.claim, value,
               check.at_least ? "at least" : "at most", check.bound, result_of(check));
  }
}

const char* durability_of(const SystemInfo& system) {
  return system.persistent ? "persistent" : "volatile";
}

}  // namespace

ExperimentReport report_of(std::string title, const std::filesystem::path& directory,
                           std::uint64_t repeat) {
  ExperimentReport report;
  report.title = std::move(title);
  report.repeat = repeat;
  report.directory = directory.string();
  report.file_system = file_system_of(directory);
  report.machine = machine_description();
  report.build = build_description();
  return report;
}

void write_text(std::ostream& out, const ExperimentReport& report) {
  fmt::print(out, "{}\n{}\n{} ({}); {}; medians of {} round{}\n\n", report.machine, report.build,
             report.directory, report.file_system, report.sizes, report.repeat,
             report.repeat == 1 ? "" : "s");
  for (const SystemInfo& system : report.systems)
    fmt::print(out, "{:<12} {:<11} {}\n", system.name, durability_of(system), system.settings);
  for (const std::string& note : report.notes) fmt::print(out, "{}\n", note);
  for (const Figure& figure : report.figures) write_table(out, figure);
  write_checks(out, report.checks);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const ExperimentReport& report) {
  nlohmann::json systems = nlohmann::json::array();
  for (const SystemInfo& system : report.systems) {
    systems.push_back({{"name", system.name},
                       {"durability", durability_of(system)},
                       {"settings", system.settings}});
  }
  nlohmann::json checks = nlohmann::json::array();
  for (const Checked& check : report.checks) {
    checks.push_back({{"figure", check.figure},
                      {"claim", check.claim},
                      {"value", check.value},
                      {check.at_least ? "at_least" : "at_most", check.bound},
                      {"result", result_of(check)}});
  }
  return {{"config", report.settings},
          {"directory", report.directory},
          {"file_system", report.file_system},
          {"machine", report.machine},
          {"build", report.build},
          {"systems", systems},
          {"notes", report.notes},
          {"figures", to_json(report.figures)},
          {"checks", checks},
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
