// In place of elf_command_line.cc in a build without the engine elf_table.
#include <perdix/error.h>

#include "perdix/elf_command_line.h"

namespace perdix::tool {

void add_elf(CLI::App& app, ExitStatus&) {
  CLI::App* command = app.add_subcommand("elf", "Tables of rows (not in this build)");
  command->prefix_command();
  command->callback([] {
    throw Error(Errc::unsupported,
                "this build has no tables: it was configured with PERDIX_ENGINES that leave out "
                "elf_table");
  });
}

}  // namespace perdix::tool
