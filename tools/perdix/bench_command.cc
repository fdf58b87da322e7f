#include "perdix/bench_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::tool {
namespace {

constexpr const char* kProgram = "perdix-bench";

/// The program beside this one, where an installation and a build have it.
std::string beside_this_program() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).replace_filename(kProgram);
}

[[noreturn]] void run_bench(std::vector<std::string> options) {
  std::vector<char*> arguments = {const_cast<char*>(kProgram)};
  for (std::string& option : options) arguments.push_back(option.data());
  arguments.push_back(nullptr);
  ::execv(beside_this_program().c_str(), arguments.data());
  ::execvp(kProgram, arguments.data());
  if (errno != ENOENT)
    throw Error(Errc::io_error, fmt::format("can't run {}: {}", kProgram, std::strerror(errno)));
  throw Error(Errc::unsupported,
              "the benchmark is a separate program, perdix-bench, and not installed; "
              "`make install-bench` in the sources of perdix builds and installs it");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("bench", "Compare indexes with LMDB, RocksDB and others (perdix-bench)");
  command->prefix_command();
  command->set_help_flag();  // perdix-bench has it
  command->callback([command] { run_bench(command->remaining()); });
}

}  // namespace perdix::tool
