#include "common/report.h"

#include <cmath>
#include <ostream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "common/html.h"
#include "terminal/format.h"

namespace perdix::bench {
namespace {

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

/// By name: the title, an object for each row and, where there are some, one for each line.
nlohmann::json to_json(const std::vector<Figure>& figures) {
  using nlohmann::json;
  json out = json::object();
  for (const Figure& figure : figures) {
    json rows = json::array();
    for (const Row& row : figure.rows) {
      json& added = rows.emplace_back(json{{"group", row.group}, {"system", row.system}});
      for (std::size_t i = 0; i < row.values.size(); ++i)
        added[figure.metrics[i].name] = row.values[i];
    }
    out[figure.name] = {{"title", figure.title}, {"rows", rows}};
    for (const Line& line : figure.lines) {
      out[figure.name]["lines"].push_back(
          {{"group", line.group}, {"system", line.system}, {"points", line.points}});
    }
  }
  return out;
}

nlohmann::json to_json(const SystemInfo& system) {
  nlohmann::json out = {
      {"name", system.name}, {"durability", durability_of(system)}, {"settings", system.settings}};
  if (system.threads != 0) out.update({{"system", system.name}, {"threads", system.threads}});
  return out;
}

nlohmann::json to_json(const Checked& check) {
  return {{"figure", check.figure},
          {"claim", check.claim},
          {"value", check.value},
          {check.at_least ? "at_least" : "at_most", check.bound},
          {"result", result_of(check)}};
}

template <class Item>
nlohmann::json to_array(const std::vector<Item>& items) {
  nlohmann::json out = nlohmann::json::array();
  for (const Item& item : items) out.push_back(to_json(item));
  return out;
}

}  // namespace

std::vector<std::string> Report::problems() const {
  if (wrong == 0 || !named_problems.empty()) return named_problems;
  return {terminal::format_count(wrong) + " answers were wrong, or records lost"};
}

Report report_of(std::string title, const std::filesystem::path& directory, std::uint64_t repeat) {
  Report report;
  report.title = std::move(title);
  report.repeat = repeat;
  report.environment = environment_of(directory);
  return report;
}

void write_text(std::ostream& out, const Report& report) {
  const Environment& environment = report.environment;
  fmt::print(out, "{}\n{}\n{} ({}); {}; medians of {} round{}\n\n", environment.machine,
             environment.build, environment.directory, environment.file_system, report.sizes,
             report.repeat, report.repeat == 1 ? "" : "s");
  for (const SystemInfo& system : report.systems) {
    const std::string threads =
        system.threads == 0 ? "" : fmt::format(" ({})", threads_text(system.threads));
    fmt::print(out, "{:<12} {:<11} {}{}\n", system.name, durability_of(system), system.settings,
               threads);
  }
  for (const std::string& note : report.notes) fmt::print(out, "{}\n", note);
  for (const Figure& figure : report.figures) write_table(out, figure);
  write_checks(out, report.checks);
  for (const std::string& problem : report.problems()) fmt::print(out, "\nPROBLEM: {}\n", problem);
}

nlohmann::json to_json(const Report& report) {
  nlohmann::json out = {{"config", report.settings},
                        {"directory", report.environment.directory},
                        {"file_system", report.environment.file_system},
                        {"machine", report.environment.machine},
                        {"build", report.environment.build},
                        {"systems", to_array(report.systems)},
                        {"notes", report.notes},
                        {"figures", to_json(report.figures)},
                        {"checks", to_array(report.checks)},
                        {"wrong", report.wrong},
                        {"problems", report.problems()}};
  out.update(report.more);
  return out;
}

void write_html(std::ostream& out, const Report& report) {
  begin_html(out, report.title);
  for (const std::string& problem : report.problems()) write_problem(out, problem);
  for (const Figure& figure : report.figures) write_plot(out, figure);
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench
