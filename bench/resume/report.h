// What a run found.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "resume/config.h"
#include "resume/measure.h"

namespace perdix::bench::resumption {

/// The rounds of an index that is rebuilt while it is idle.
struct RebuildRow {
  bool buffers = false;    ///< a write buffer for each leaf, or none
  std::uint64_t keys = 0;  ///< acknowledged
  std::vector<Rebuilt> rounds;

  double first_answer_seconds() const;  ///< these are medians
  double rebuilt_seconds() const;
  double keys_per_second() const { return static_cast<double>(keys) / rebuilt_seconds(); }
};

/// The rounds of one of the two logs of a ServiceRow.
struct ServingLog {
  std::uint64_t log_bytes = 0;
  std::vector<Served> rounds;

  double first_answer_seconds() const;  ///< these are medians
  std::uint64_t answers(std::size_t moment) const;
};

/// The two logs, each with an index that serves lookups while it is rebuilt.
struct ServiceRow {
  std::uint64_t keys = 0;     ///< acknowledged
  std::uint64_t records = 0;  ///< live, in either log
  ServingLog structured;
  ServingLog plain;
};

struct Report {
  Config config;
  std::string directory;
  std::string file_system;
  std::string machine;
  std::string build;
  std::vector<RebuildRow> rebuild;
  std::vector<ServiceRow> service;

  /// The number of answers that differ from what had been acknowledged.
  std::uint64_t wrong_answers() const;
};

void write_text(std::ostream& out, const Report& report);
nlohmann::json to_json(const Report& report);
void write_html(std::ostream& out, const Report& report);

}  // namespace perdix::bench::resumption
