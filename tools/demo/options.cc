#include "demo/options.h"

#include <getopt.h>

#include <array>

#include <fmt/format.h>

#include <perdix/error.h>

#include "terminal/format.h"

namespace perdix::demo {
namespace {

// What getopt_long returns for each option.
enum Choice : int { kWords = 1, kDirectory, kSeed, kRecords, kNoComparison, kHelp };

constexpr std::array<option, 7> kOptions = {{{"words", required_argument, nullptr, kWords},
                                             {"dir", required_argument, nullptr, kDirectory},
                                             {"seed", required_argument, nullptr, kSeed},
                                             {"records", required_argument, nullptr, kRecords},
                                             {"no-comparison", no_argument, nullptr, kNoComparison},
                                             {"help", no_argument, nullptr, kHelp},
                                             {nullptr, 0, nullptr, 0}}};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Errc::invalid_argument, what + "; see 'perdix-demo --help'");
}

std::filesystem::path existing_directory(const char* path) {
  if (!std::filesystem::is_directory(path)) refuse(fmt::format("{} is no directory", path));
  return path;
}

std::uint64_t positive_count(const char* text) {
  const std::uint64_t count = terminal::parse_count(text);
  if (count == 0) refuse("--records must be at least 1");
  return count;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  ::opterr = 0;
  for (int choice = 0; (choice = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    switch (choice) {
      case kWords: options.words = ::optarg; break;
      case kDirectory: options.directory = existing_directory(::optarg); break;
      case kSeed: options.seed = terminal::parse_count(::optarg); break;
      case kRecords: options.records = positive_count(::optarg); break;
      case kNoComparison: options.comparison = false; break;
      case kHelp: options.help = true; break;
      default: refuse(fmt::format("'{}' can't be understood", argv[::optind - 1]));
    }
  }
  if (::optind < argc) refuse(fmt::format("'{}' can't be understood", argv[::optind]));
  return options;
}

const char* help_text() {
  return "Loads words into an index, kills a process that does the same, reopens its pool, checks\n"
         "that nothing which it had acknowledged is lost, and compares with other stores.\n\n"
         "Usage: perdix-demo [options]\n"
         "  --words FILE      list of words, one per line\n"
         "                    (default: /usr/share/dict/american-english-insane)\n"
         "  --dir DIRECTORY   where the pools lie (default: /dev/shm if it is a tmpfs)\n"
         "  --seed N          seed of the random moment (default: another one each time)\n"
         "  --records N       records of the comparison (default: 300k)\n"
         "  --no-comparison   leave out the comparison with other stores\n\n"
         "Exit status: 0; 1 if anything was lost or wrong; 2 after an error.\n";
}

}  // namespace perdix::demo
