#include "ycsb/workload.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

namespace perdix::bench {
namespace {

using enum Distribution;
using enum PhaseKind;

// Shares are in the order of OpKind: get, absent, insert, update, rmw, scan, erase,
// batched_get, insert_ahead.
constexpr Workload kWorkloads[] = {
    {"load", "insert every record", load, {0, 0, 100, 0, 0, 0, 0}, uniform},
    {"a", "50% read, 50% update", mix, {50, 0, 0, 50, 0, 0, 0}, zipfian},
    {"b", "95% read, 5% update", mix, {95, 0, 0, 5, 0, 0, 0}, zipfian},
    {"c", "100% read", mix, {100, 0, 0, 0, 0, 0, 0}, zipfian},
    {"d", "95% read, 5% insert", mix, {95, 0, 5, 0, 0, 0, 0}, latest},
    {"e", "95% scan of 1-100 pairs, 5% insert", mix, {0, 0, 5, 0, 0, 95, 0}, zipfian, 1, 100},
    {"f", "50% read, 50% read-modify-write", mix, {50, 0, 0, 0, 50, 0, 0}, zipfian},
    {"get", "get of present keys", mix, {100, 0, 0, 0, 0, 0, 0}, uniform},
    {"batch", "get of present keys, 16 at a time", mix, {0, 0, 0, 0, 0, 0, 0, 100}, uniform},
    {"absent", "get of absent keys", mix, {0, 100, 0, 0, 0, 0, 0}, uniform},
    {"insert", "insert of new keys", mix, {0, 0, 100, 0, 0, 0, 0}, uniform},
    {"insert_ahead", "insert of new keys, no answer", mix, {0, 0, 0, 0, 0, 0, 0, 0, 100}, uniform},
    {"update", "update of present keys", mix, {0, 0, 0, 100, 0, 0, 0}, uniform},
    {"seek", "first pair from a present key on", mix, {0, 0, 0, 0, 0, 100, 0}, uniform, 1, 1},
    {"scan100", "scan of 100 pairs", mix, {0, 0, 0, 0, 0, 100, 0}, uniform, 100, 100},
    {"erase", "erase of present keys, oldest first", mix, {0, 0, 0, 0, 0, 0, 100}, uniform},
    {"reopen", "open after SIGKILL", reopen},
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

}  // namespace

std::string_view to_string(Distribution distribution) noexcept {
  switch (distribution) {
    case uniform: return "uniform";
    case zipfian: return "zipfian";
    case latest: return "latest";
  }
  return "unknown";
}

std::span<const Workload> workloads() noexcept { return kWorkloads; }

const Workload& find_workload(std::string_view name) {
  const auto found = std::ranges::find(kWorkloads, lower(name), &Workload::name);
  if (found != std::end(kWorkloads)) return *found;
  std::vector<std::string_view> names;
  for (const Workload& workload : kWorkloads) names.push_back(workload.name);
  throw Error(Errc::invalid_argument,
              fmt::format("no workload '{}'; choose from: {}", name, fmt::join(names, ", ")));
}

}  // namespace perdix::bench
