#include "resume/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace perdix::bench::resumption {
namespace {

using nlohmann::json;

template <class Round, class Field>
auto median_of(const std::vector<Round>& rounds, Field field) {
  std::vector<decltype(field(rounds.front()))> values;
  for (const Round& round : rounds) values.push_back(field(round));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

json to_json(const Rebuilt& round) {
  return {{"first_answer_seconds", round.first_answer_seconds},
          {"rebuilt_seconds", round.rebuilt_seconds},
          {"leaves", round.leaves},
          {"dram_bytes", round.dram_bytes},
          {"lost", round.lost}};
}

json to_json(const ServingLog& log, std::size_t moments) {
  json out = {{"log_bytes", log.log_bytes},
              {"first_answer_seconds", log.first_answer_seconds()},
              {"answers", json::array()},
              {"rounds", json::array()}};
  for (std::size_t i = 0; i < moments; ++i) out["answers"].push_back(log.answers(i));
  for (const Served& round : log.rounds) {
    out["rounds"].push_back(
        {{"first_answer_seconds", round.first_answer_seconds},
         {"answers", std::vector(round.answers.begin(), round.answers.begin() + moments)},
         {"lost", round.lost}});
  }
  return out;
}

}  // namespace

double RebuildRow::first_answer_seconds() const {
  return median_of(rounds, [](const Rebuilt& round) { return round.first_answer_seconds; });
}

double RebuildRow::rebuilt_seconds() const {
  return median_of(rounds, [](const Rebuilt& round) { return round.rebuilt_seconds; });
}

double ServingLog::first_answer_seconds() const {
  return median_of(rounds, [](const Served& round) { return round.first_answer_seconds; });
}

std::uint64_t ServingLog::answers(std::size_t moment) const {
  return median_of(rounds, [&](const Served& round) { return round.answers[moment]; });
}

std::uint64_t Report::wrong_answers() const {
  std::uint64_t sum = 0;
  for (const RebuildRow& row : rebuild) {
    for (const Rebuilt& round : row.rounds) sum += round.lost;
  }
  for (const ServiceRow& row : service) {
    for (const ServingLog* log : {&row.structured, &row.plain}) {
      for (const Served& round : log->rounds) sum += round.lost;
    }
  }
  return sum;
}

json to_json(const Report& report) {
  const Config& config = report.config;
  json out = {{"config",
               {{"keys", config.keys},
                {"within_milliseconds", config.within},
                {"repeat", config.repeat},
                {"threads", config.threads},
                {"load_threads", config.load_threads},
                {"seed", config.seed}}},
              {"directory", report.directory},
              {"file_system", report.file_system},
              {"machine", report.machine},
              {"build", report.build},
              {"rebuild", json::array()},
              {"service", json::array()},
              {"lost", report.wrong_answers()}};
  for (const RebuildRow& row : report.rebuild) {
    json rounds = json::array();
    for (const Rebuilt& round : row.rounds) rounds.push_back(to_json(round));
    out["rebuild"].push_back({{"keys", row.keys},
                              {"buffers", row.buffers ? "all" : "none"},
                              {"first_answer_seconds", row.first_answer_seconds()},
                              {"rebuilt_seconds", row.rebuilt_seconds()},
                              {"keys_per_second", row.keys_per_second()},
                              {"rounds", rounds}});
  }
  for (const ServiceRow& row : report.service) {
    out["service"].push_back({{"keys", row.keys},
                              {"live_records", row.records},
                              {"structured_log", to_json(row.structured, config.within.size())},
                              {"plain_log", to_json(row.plain, config.within.size())}});
  }
  return out;
}

}  // namespace perdix::bench::resumption
