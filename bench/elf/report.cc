#include "elf/report.h"

#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "common/html.h"
#include "terminal/format.h"

namespace perdix::bench::points {
namespace {

std::string wrong_answers(const Report& report) {
  return terminal::format_count(report.wrong) + " answers were wrong";
}

}  // namespace

void write_text(std::ostream& out, const Report& report) {
  const Config& config = report.config;
  fmt::print(out, "{}\n{}\n{} ({}); {} rows, {} s a phase; medians of {} round{}\n", report.machine,
             report.build, report.directory, report.file_system,
             terminal::format_count(config.rows), config.seconds, config.repeat,
             config.repeat == 1 ? "" : "s");
  for (const Figure& figure : report.figures) write_table(out, figure);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const Report& report) {
  const Config& config = report.config;
  return {{"config",
           {{"systems", config.systems},
            {"rows", config.rows},
            {"warm_up", config.warm_up},
            {"queries", config.queries},
            {"seconds", config.seconds},
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
  begin_html(out, "Elf with selective caching: the experiments of its paper");
  if (report.wrong != 0) write_problem(out, wrong_answers(report));
  for (const Figure& figure : report.figures) write_plot(out, figure);
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench::points
