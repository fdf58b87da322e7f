#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"
#include "terminal/format.h"

namespace perdix::tool {
namespace {

using nlohmann::json;
using terminal::format_count;

std::string as_json(const CheckOptions& o, const CheckReport& report) {
  const json out = {{"path", o.pool},
                    {"sound", report.ok()},
                    {"pairs", report.pairs},
                    {"blocks", report.blocks},
                    {"problems", report.problems},
                    {"unknown", report.unknown},
                    {"stores_may_be_missing", report.stores_may_be_missing}};
  return out.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

std::string as_text(const CheckOptions& o, const CheckReport& report) {
  std::string text;
  for (const std::string& problem : report.problems) text += printable(problem) + "\n";
  for (const std::string& unknown : report.unknown) text += printable(unknown) + "\n";
  const std::string seen = fmt::format("{} pairs, {} blocks checked", format_count(report.pairs),
                                       format_count(report.blocks));
  if (report.stores_may_be_missing)
    text +=
        "copied while it was open, or the machine went down: pairs may be missing, old or torn\n";
  return text + (report.ok() ? fmt::format("{} is sound; {}\n", printable(o.pool), seen)
                             : fmt::format("{} is damaged: {} problems; {}\n", printable(o.pool),
                                           report.problems.size(), seen));
}

}  // namespace

ExitStatus check(const CheckOptions& o) {
  const CheckReport report = Pool::verify(o.pool, with_plugins());
  Output out;
  out.write(o.json ? as_json(o, report) : as_text(o, report));
  out.flush();
  return report.ok() ? ExitStatus::ok : ExitStatus::negative;
}

}  // namespace perdix::tool
