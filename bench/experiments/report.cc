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

const char* durability_of(const Contender& contender) {
  return contender.persistent ? "persistent" : "volatile";
}

}  // namespace

void write_text(std::ostream& out, const ExperimentReport& report) {
  fmt::print(out, "{}\n{}\n{} ({}); {}; medians of {} round{}\n\n", report.machine, report.build,
             report.directory, report.file_system, report.sizes, report.repeat,
             report.repeat == 1 ? "" : "s");
  for (const Contender& contender : report.contenders)
    fmt::print(out, "{:<12} {:<11} {}\n", contender.name, durability_of(contender),
               contender.settings);
  for (const std::string& note : report.notes) fmt::print(out, "{}\n", note);
  for (const Figure& figure : report.figures) write_table(out, figure);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const ExperimentReport& report) {
  nlohmann::json contenders = nlohmann::json::array();
  for (const Contender& contender : report.contenders) {
    contenders.push_back({{"name", contender.name},
                          {"durability", durability_of(contender)},
                          {"settings", contender.settings}});
  }
  return {{"config", report.settings},
          {"directory", report.directory},
          {"file_system", report.file_system},
          {"machine", report.machine},
          {"build", report.build},
          {"contenders", contenders},
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
