// Command-line options that the benchmarks share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "terminal/format.h"

namespace perdix::bench {

/// An option that takes a count such as 500k or 10M.
inline CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& count,
                              const std::string& description) {
  return app
      .add_option_function<std::string>(
          name, [&count](const std::string& word) { count = terminal::parse_count(word); },
          description)
      ->default_str(std::to_string(count));
}

/// An option that takes counts with commas between them.
inline CLI::Option* add_counts(CLI::App& app, const std::string& name,
                               std::vector<std::uint64_t>& counts, const std::string& description) {
  const auto store = [&counts](const std::vector<std::string>& words) {
    counts.clear();
    for (const std::string& word : words) counts.push_back(terminal::parse_count(word));
  };
  return app.add_option_function<std::vector<std::string>>(name, store, description)
      ->delimiter(',');
}

}  // namespace perdix::bench
