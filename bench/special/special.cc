#include "special/special.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "common/command_line.h"
#include "terminal/progress.h"

namespace perdix::bench {
namespace {

constexpr Special kSpecials[] = {
    {"alloc", "Calloc beside libpmemobj's allocator and malloc", run_alloc},
    {"elf", "selective caching in Elf: the experiments of its paper", run_elf},
    {"nbtree", "NbTree's throughput by skew, and its inserts by allocator (fig. 11, 15)",
     run_nbtree},
    {"resume", "SpTree after SIGKILL (fig. 9, 10)", run_resume},
};

std::string usage() {
  std::string text =
      "Experiments that are programs of their own.\n\n"
      "Usage: perdix-bench special NAME [options]\n"
      "       perdix-bench special NAME --help\n\n";
  for (const Special& special : kSpecials)
    text += fmt::format("  {:<8} {}\n", special.name, special.about);
  return text;
}

}  // namespace

int run_special_command(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "--help";
  const auto found = std::ranges::find(kSpecials, name, &Special::name);
  if (found != std::end(kSpecials)) return found->run(argc - 1, argv + 1);
  if (name == "--help" || name == "-h") {
    fmt::print("{}", usage());
    return kAllRight;
  }
  terminal::tell(fmt::format(
      "perdix-bench: nothing special is named '{}'; see 'perdix-bench special'\n", name));
  return kFailed;
}

}  // namespace perdix::bench
