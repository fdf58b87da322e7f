// The command line of the demo. It uses getopt, because the tool's parser takes long to compile and
// a new user waits for the demo first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "demo/words.h"

namespace perdix::demo {

struct Options {
  std::filesystem::path words = kDefaultWords;
  std::filesystem::path directory;    ///< empty: see bench::default_parent()
  std::optional<std::uint64_t> seed;  ///< nothing: another one each time
  std::uint64_t records = 200'000;    ///< of the comparison
  bool comparison = true;
  bool help = false;
};

/// Throws perdix::Error invalid_argument.
Options parse_options(int argc, char** argv);

/// The text of --help.
const char* help_text();

}  // namespace perdix::demo
