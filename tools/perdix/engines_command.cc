#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <perdix/error.h>
#include <perdix/index.h>

#include "perdix/commands.h"
#include "perdix/output.h"
#include "perdix/plugins.h"

namespace perdix::tool {
namespace {

using nlohmann::ordered_json;

// Engines with the same options.
struct Family {
  std::vector<std::string> engines;
  std::vector<OptionInfo> options;
};

// In the order of the engines, of which neighbours may be alike.
std::vector<Family> families() {
  std::vector<Family> all;
  for (const std::string& engine : Index::engines(with_plugins().plugins)) {
    std::vector<OptionInfo> options = Index::options(engine);
    if (all.empty() || all.back().options != options) all.push_back({{}, std::move(options)});
    all.back().engines.push_back(engine);
  }
  return all;
}

std::string as_text(const Family& family) {
  std::string text = fmt::format("{}\n", fmt::join(family.engines, ", "));
  for (const OptionInfo& option : family.options) {
    text += fmt::format("  {:<21} {:<10} {}: {}\n", option.name, option.default_value,
                        option.range.empty() ? option.type : option.range, option.meaning);
  }
  return text;
}

ordered_json as_json(const Family& family) {
  ordered_json options = ordered_json::array();
  for (const OptionInfo& option : family.options)
    options.push_back({{"name", option.name},
                       {"type", option.type},
                       {"default", option.default_value},
                       {"range", option.range},
                       {"meaning", option.meaning}});
  return {{"engines", family.engines}, {"options", std::move(options)}};
}

}  // namespace

ExitStatus engines(const EnginesOptions& o) {
  Output out;
  ordered_json json = ordered_json::array();
  for (const Family& family : families())
    o.json ? json.push_back(as_json(family)) : out.write(as_text(family));
  if (o.json) out.write(json.dump(2) + "\n");
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
