// The commands of `perdix elf`: tables of typed columns. As commands.h has the others.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "perdix/commands.h"

namespace perdix::tool {

struct ElfBuildCommand {
  Target target;
  std::string file;                 ///< "-" for standard input
  std::string columns;              ///< as parse_columns() takes it
  std::string order;                ///< as parse_names() takes it; empty: by cardinality
  std::optional<RowFormat> format;  ///< nothing: tsv for *.tsv, else csv
  bool header = false;
  bool progress = false;  ///< also where standard error is no terminal
};

struct ElfQueryCommand {
  Target target;
  std::string conditions;  ///< as parse_predicates() takes them
  bool count = false;
  std::uint64_t times = 0;  // that it is counted, to say how long it takes
  bool explain = false;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
};

/// For info, check and compact.
struct ElfCommand {
  Target target;
  bool json = false;      ///< info
  bool progress = false;  ///< compact
};

ExitStatus elf_build(const ElfBuildCommand& command);
ExitStatus elf_query(const ElfQueryCommand& command);
ExitStatus elf_info(const ElfCommand& command);
ExitStatus elf_check(const ElfCommand& command);
ExitStatus elf_compact(const ElfCommand& command);

}  // namespace perdix::tool
