// Processes that load an index and are killed, and the content of the log that one of them left.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "special/resume/process.h"
#include "special/resume/records.h"

namespace perdix::bench::resumption {

inline constexpr const char* kIndexName = "index";

struct LoadOptions {
  Records records;
  unsigned threads;
  const std::atomic<bool>* stop;
  std::function<void(std::uint64_t done)> on_progress;
};

/// Creates a pool with an index in a separate process. The process inserts records on all its
/// threads and is killed with SIGKILL while it does so, when it has acknowledged `keys` of them.
/// Throws perdix::Error if the process fails before.
void load_and_kill(const std::filesystem::path& pool, std::uint64_t dram_budget, std::uint64_t keys,
                   const LoadOptions& options, Acknowledged& acknowledged);

/// The content of an index's write buffers when its process was killed.
struct Leftover {
  std::uint64_t log_bytes = 0;  ///< of records that are not reclaimed
  std::uint64_t records = 0;    ///< of chains that are not merged
};

/// Writes the content of the buffers to a plain log. Repairs the pool, so the caller must pass a
/// copy.
Leftover write_leftover(const std::filesystem::path& pool, const std::filesystem::path& plain_log,
                        const std::atomic<bool>& stop);

/// Creates a pool with an index without buffers, in a process that is killed, too. The index has
/// all records but those of the plain log.
void load_rest_and_kill(const std::filesystem::path& pool, const std::filesystem::path& plain_log,
                        const LoadOptions& options, const Acknowledged& acknowledged);

}  // namespace perdix::bench::resumption
