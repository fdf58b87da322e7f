#include "spot_on/forms.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/run.h"

namespace perdix::bench::spot_on {

Form form_of(std::string_view system) {
  const std::size_t plus = system.find('+');
  if (plus == std::string_view::npos) return {std::string(system), ""};
  return {std::string(system.substr(0, plus)), std::string(system.substr(plus + 1))};
}

std::vector<std::string> all_forms() {
  std::vector<std::string> all;
  for (const char* index : {"cceh", "fastfair", "skiplist"}) {
    for (const char* techniques : {"", "+b", "+bo", "+boc"})
      all.push_back(fmt::format("{}{}", index, techniques));
  }
  return all;
}

std::vector<std::string> known_forms() { return known_systems(all_forms()); }

std::string missing_forms() {
  const std::vector<std::string> known = known_forms();
  std::vector<std::string> missing = all_forms();
  std::erase_if(missing, [&](const std::string& name) {
    return std::ranges::find(known, name) != known.end();
  });
  if (missing.empty()) return {};
  return fmt::format("not there, so left out: {}", fmt::join(missing, ", "));
}

}  // namespace perdix::bench::spot_on
