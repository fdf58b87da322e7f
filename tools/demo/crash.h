// Kills a process that loads words, and checks the pool afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "demo/words.h"
#include "terminal/progress.h"

namespace perdix::demo {

/// The hidden command with which the demo starts itself as the process that is killed.
inline constexpr const char* kLoaderCommand = "load-and-acknowledge";

/// The body of that process. It creates the pool and puts the words in order. After each put it
/// writes the word's position to standard output (eight bytes). It stops when the reader has closed
/// that.
void load_and_acknowledge(const std::filesystem::path& words, const std::filesystem::path& pool);

struct Crash {
  std::uint64_t acknowledged = 0;  ///< words whose acknowledgement arrived
  double seconds = 0;              ///< from the start of the process to its end
  std::int64_t pid = 0;
};

/// Starts that process and kills it with SIGKILL at a random moment, which the seed gives roughly:
/// after between a tenth and nine tenths of the words. Throws perdix::Error if it ends by itself.
Crash load_and_kill(const std::filesystem::path& words_file, const std::filesystem::path& pool,
                    std::uint64_t words, std::uint64_t seed, terminal::ProgressStyle style);

/// The words that have survived.
struct Survivors {
  std::uint64_t lost = 0;       ///< acknowledged words that are absent or have a wrong value
  std::uint64_t in_flight = 0;  ///< words beyond the acknowledged ones that are there; one may be
  std::uint64_t foreign = 0;    ///< pairs that are no word of the list with its line
  std::vector<std::string> problems;  ///< of check(), and one sentence for each kind of fault above

  bool ok() const { return problems.empty(); }
};

/// Looks up every acknowledged word, then reads the whole index.
Survivors inspect(const WordIndex& index, const std::vector<Word>& words,
                  std::uint64_t acknowledged);

}  // namespace perdix::demo
