#include "hash/report.h"

#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "common/html.h"
#include "terminal/format.h"

namespace perdix::bench::hashing {
namespace {

std::string wrong_answers(const Report& report) {
  return terminal::format_count(report.wrong) + " answers were wrong, or records lost";
}

const char* durability_of(const Contender& contender) {
  return contender.persistent ? "persistent" : "volatile";
}

nlohmann::json to_json(const Config& config) {
  return {{"engines", config.engines},
          {"start", config.start},
          {"records", config.records},
          {"operations", config.operations},
          {"pairs", config.pairs},
          {"value_sizes", config.value_sizes},
          {"logs", config.logs},
          {"d_buckets", config.d_buckets},
          {"p_buckets", config.p_buckets},
          {"threads", config.threads},
          {"samples", config.samples},
          {"media_unit", config.media_unit},
          {"cache_bytes", config.cache_bytes},
          {"repeat", config.repeat},
          {"seed", config.seed}};
}

}  // namespace

void write_text(std::ostream& out, const Report& report) {
  const Config& config = report.config;
  fmt::print(out, "{}\n{}\n{} ({}); {} records, {} operations a phase; medians of {} round{}\n\n",
             report.machine, report.build, report.directory, report.file_system,
             terminal::format_count(config.records), terminal::format_count(config.operations),
             config.repeat, config.repeat == 1 ? "" : "s");
  for (const Contender& contender : report.contenders)
    fmt::print(out, "{:<12} {:<11} {}\n", contender.name, durability_of(contender),
               contender.settings);
  for (const Figure& figure : report.figures) write_table(out, figure);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const Report& report) {
  nlohmann::json contenders = nlohmann::json::array();
  for (const Contender& contender : report.contenders) {
    contenders.push_back({{"name", contender.name},
                          {"durability", durability_of(contender)},
                          {"settings", contender.settings}});
  }
  return {{"config", to_json(report.config)},
          {"directory", report.directory},
          {"file_system", report.file_system},
          {"machine", report.machine},
          {"build", report.build},
          {"contenders", contenders},
          {"figures", to_json(report.figures)},
          {"wrong", report.wrong}};
}

void write_html(std::ostream& out, const Report& report) {
  begin_html(out, "ElimDa: the experiments of its paper");
  if (report.wrong != 0) write_problem(out, wrong_answers(report));
  for (const Figure& figure : report.figures) write_plot(out, figure);
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench::hashing
