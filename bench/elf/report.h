// What a run found.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/figure.h"
#include "elf/config.h"

namespace perdix::bench::points {

struct Report {
  Config config;
  std::string directory;
  std::string file_system;
  std::string machine;
  std::string build;
  std::vector<Figure> figures;
  std::uint64_t wrong = 0;  ///< answers that were not those of the scan

  std::uint64_t wrong_answers() const { return wrong; }
};

void write_text(std::ostream& out, const Report& report);
nlohmann::json to_json(const Report& report);
void write_html(std::ostream& out, const Report& report);

}  // namespace perdix::bench::points
