#include "nbtree/report.h"

#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "common/html.h"
#include "terminal/format.h"

namespace perdix::bench::figures {
namespace {

std::string wrong_answers(const Report& report) {
  return terminal::format_count(report.wrong) + " answers were wrong";
}

}  // namespace

void write_text(std::ostream& out, const Report& report) {
  const Config& config = report.config;
  fmt::print(out, "{}\n{}\n{} ({}); {} records, {} operations a phase; medians of {} round{}\n",
             report.machine, report.build, report.directory, report.file_system,
             terminal::format_count(config.records), terminal::format_count(config.operations),
             config.repeat, config.repeat == 1 ? "" : "s");
  for (const Figure& figure : report.figures) write_table(out, figure);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const Report& report) {
  const Config& config = report.config;
  return {{"config",
           {{"systems", config.systems},
            {"records", config.records},
            {"operations", config.operations},
            {"pairs", config.pairs},
            {"thetas", config.thetas},
            {"write_percents", config.writes},
            {"threads", config.threads},
            {"repeat", config.repeat},
            {"seed", config.seed}}},
          {"directory", report.directory},
          {"file_system", report.file_system},
          {"machine", report.machine},
          {"build", report.build},
          {"figures", to_json(report.figures)},
          {"wrong", report.wrong}};
}

void write_html(std::ostream& out, const Report& report) {
  begin_html(out, "NbTree: the experiments of its paper");
  if (report.wrong != 0) write_problem(out, wrong_answers(report));
  for (const Figure& figure : report.figures) write_plot(out, figure);
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench::figures
