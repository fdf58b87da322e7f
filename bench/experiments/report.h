// What a run found.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/figure.h"
#include "hash/config.h"

namespace perdix::bench::hashing {

struct Contender {
  std::string name;
  bool persistent = false;  ///< its records survive the end of the process
  std::string settings;
};

struct Report {
  Config config;
  std::string directory;
  std::string file_system;
  std::string machine;
  std::string build;
  std::vector<Contender> contenders;
  std::vector<Figure> figures;
  std::uint64_t wrong = 0;  ///< answers that were not the expected ones, and lost records

  std::uint64_t wrong_answers() const { return wrong; }
};

void write_text(std::ostream& out, const Report& report);
nlohmann::json to_json(const Report& report);
void write_html(std::ostream& out, const Report& report);

}  // namespace perdix::bench::hashing
