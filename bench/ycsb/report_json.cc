// The report as JSON: one object per system, workload and number of threads, with every round.
#include <nlohmann/json.hpp>

#include "ycsb/report.h"

namespace perdix::bench {
namespace {

using nlohmann::json;

json to_json(const std::optional<std::uint64_t>& value) {
  return value ? json(*value) : json(nullptr);
}

json to_json(const Footprint& size) {
  return {{"records", size.records},
          {"dram_bytes", to_json(size.own.dram_bytes)},
          {"dram_bytes_rss", size.resident},
          {"stored_bytes", to_json(size.own.stored_bytes)},
          {"file_bytes", size.files}};
}

json to_json(const Round& round) {
  if (round.reopened) {
    return {{"open_seconds", round.reopened->open_seconds},
            {"first_answer_seconds", round.reopened->first_answer_seconds},
            {"resumed_seconds", round.reopened->resumed_seconds},
            {"records", round.reopened->records},
            {"lost", round.reopened->lost}};
  }
  return {{"seconds", round.seconds},
          {"operations", round.operations},
          {"wrong", round.wrong},
          {"footprint", to_json(round.footprint)}};
}

void add_throughput(json& out, const Report& report, const Result& result) {
  out["operations_per_second"] = result.operations_per_second();
  out["nanoseconds_per_operation"] = result.nanoseconds_per_operation();
  out["latency_ns"] = {
      {"samples", result.latency.count()},        {"mean", result.latency.mean()},
      {"p50", result.latency.percentile(50)},     {"p99", result.latency.percentile(99)},
      {"p99.9", result.latency.percentile(99.9)}, {"max", result.latency.max()}};
  out["distribution"] =
      to_string(report.config.distribution.value_or(find_workload(result.workload).distribution));
  for (const Count& count : result.counts)
    out["per_operation"][count.operation][count.name] = result.per_operation(count);
}

json to_json(const Report& report, const Result& result) {
  json out = {
      {"system", result.system}, {"workload", result.workload}, {"threads", result.threads}};
  if (!result.is_reopen()) add_throughput(out, report, result);
  if (const auto ratio = report.ratio(result)) out["ratio_to_baseline"] = *ratio;
  if (const auto scaling = report.scaling(result)) out["ratio_to_first_threads"] = *scaling;
  for (const Round& round : result.rounds) out["rounds"].push_back(to_json(round));
  return out;
}

json to_json(const Config& config) {
  const Shape& shape = config.data.shape;
  return {{"systems", config.systems},
          {"baseline", config.baseline},
          {"records", config.records},
          {"operations", config.operations},
          {"threads", config.threads},
          {"keys", {{"kind", to_string(shape.key_kind)}, {"bytes", shape.key_size}}},
          {"values", {{"kind", to_string(shape.value_kind)}, {"bytes", shape.value_size}}},
          {"key_order", config.data.order == KeyOrder::random ? "random" : "sequential"},
          {"seed", config.seed},
          {"repeat", config.repeat},
          {"sample_every", config.sample_every}};
}

}  // namespace

nlohmann::json to_json(const Report& report) {
  json out = {{"config", to_json(report.config)},
              {"directory", report.directory},
              {"file_system", report.file_system},
              {"durability", report.durability == Durability::power ? "power" : "process"},
              {"machine", report.machine},
              {"build", report.build},
              {"clock_nanoseconds", report.clock_nanoseconds},
              {"results", json::array()},
              {"problems", report.problems()}};
  for (const SystemNote& note : report.notes) {
    out["systems"].push_back(
        {{"system", note.system}, {"threads", note.threads}, {"settings", note.text}});
  }
  for (const Result& result : report.results) out["results"].push_back(to_json(report, result));
  return out;
}

}  // namespace perdix::bench
