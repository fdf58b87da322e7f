// The measurements. Each runs in a new process, which opens and uses the index of a killed process.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

#include "special/resume/config.h"
#include "special/resume/records.h"

namespace perdix::bench::resumption {

/// The result for an index that is idle while its DRAM layers are rebuilt. Is shared by processes.
struct Rebuilt {
  double first_answer_seconds = 0;  ///< since before the pool was opened
  double rebuilt_seconds = 0;       ///< the same, until all is back
  std::uint64_t leaves = 0;
  std::uint64_t dram_bytes = 0;
  std::uint64_t lost = 0;  ///< acknowledged records that are absent
};

/// The result for an index that is used from the start. Is shared by processes.
struct Served {
  double first_answer_seconds = 0;                   ///< since before the pool was opened
  std::array<std::uint64_t, kMaxMoments> answers{};  ///< within each of Config::within
  std::uint64_t lost = 0;                            ///< of them, wrong
};

/// The input of a measurement.
struct Restart {
  std::filesystem::path pool;
  std::filesystem::path plain_log;  ///< empty: the index's own log is all there is
  std::uint64_t dram_budget = 0;
  Records records;
  const Acknowledged& acknowledged;
  std::uint64_t seed = 0;  ///< of the choice of records
};

/// Looks up one record, waits until everything is rebuilt, then looks up all records.
Rebuilt measure_rebuild(const Restart& restart);

/// Looks up random records until the last of the moments, after the plain log has been scanned if
/// there is one.
Served measure_service(const Restart& restart, unsigned threads,
                       std::span<const std::uint64_t> within);

}  // namespace perdix::bench::resumption
