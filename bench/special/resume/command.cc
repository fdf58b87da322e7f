// How soon SpTree answers after a process was killed, and how soon it is whole again
// (Zhao et al., ICPE 2024, section 5.4, figures 9 and 10).
#include <CLI/CLI.hpp>

#include "common/command_line.h"
#include "common/options.h"
#include "special/resume/experiment.h"
#include "special/special.h"
#include "ycsb/progress.h"

namespace perdix::bench {
namespace {

constexpr const char* kDescription =
    "How soon SpTree answers after its process was killed, and how soon it is whole again.\n\n"
    "For each number of keys, a process loads an index and is killed with SIGKILL in the middle\n"
    "of it; new processes open copies of what is left. Three tables:\n"
    "  1. the index is left alone after one lookup, until its DRAM layers are back; without\n"
    "     write buffers, and with one for each leaf;\n"
    "  2. the first lookup, by the size of the log of all buffers: SpTree's structured log\n"
    "     beside a plain log of the same live records, which has to be scanned first;\n"
    "  3. how many lookups are answered within --within milliseconds, for the same two.\n"
    "Every answer is compared with what the killed process had acknowledged.";

constexpr const char* kFooter =
    "Numbers of keys may end in k, M or G. A run with 10M keys needs about 3 GB below the\n"
    "directory; take an idle machine.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong or lost, 2 after an error.\n\n"
    "Examples:\n"
    "  perdix-bench special resume\n"
    "  perdix-bench special resume --keys 1M,10M --repeat 5 --html resume.html --json resume.json\n"
    "  perdix-bench special resume --keys 20M --threads 2 --within 1,10,100,1000,5000 --pool-dir "
    "/mnt/pmem";

void add_options(CLI::App& app, resumption::Config& config) {
  add_counts(app, "--keys", config.keys, "Sizes of the index, ascending")
      ->default_str("1M,2M,5M,10M");
  add_counts(app, "--within", config.within,
             "Milliseconds after the restart at which answers are counted, ascending")
      ->default_str("1,2,5,10,20,50,100,200,500,1000");
  add_count(app, "--repeat", config.repeat, "Restarts of each kind; medians are printed");
  add_count(app, "--threads", config.threads, "Threads that look keys up in table 3");
  add_count(app, "--load-threads", config.load_threads, "Threads that load, and are killed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace

int run_resume(int argc, char** argv) {
  CLI::App app(kDescription, "perdix-bench special resume");
  app.footer(kFooter);
  resumption::Config config;
  add_options(app, config);
  return run_program(app, argc, argv, config, progress_display);
}

}  // namespace perdix::bench
