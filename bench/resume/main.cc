// resume_bench: how soon SpTree answers after a process was killed, and how soon it is whole again
// (Zhao et al., ICPE 2024, section 5.4, figures 9 and 10).
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <perdix/error.h>

#include "common/options.h"
#include "common/report_file.h"
#include "resume/experiment.h"
#include "resume/process.h"
#include "terminal/interrupt.h"
#include "terminal/progress.h"

namespace perdix::bench::resumption {
namespace {

using terminal::ProgressStyle;

constexpr int kOk = 0;
constexpr int kLost = 1;
constexpr int kError = 2;

constexpr const char* kDescription =
    "How soon SpTree answers after its process was killed, and how soon it is whole again.\n\n"
    "For each number of keys, a process loads an index and is killed with SIGKILL in the middle\n"
    "of it; new processes open copies of what is left. Three tables:\n"
    "  1. the index is left alone after one lookup, until its DRAM layers are back; without\n"
    "     write buffers, and with one for each leaf;\n"
    "  2. the first lookup, by the size of the log of all buffers: SpTree's structured log\n"
    "     beside a plain log of the same live records, which has to be scanned first;\n"
    "  3. how many lookups are answered within so many milliseconds, for the same two.\n"
    "Every answer is compared with what the killed process had acknowledged.";

constexpr const char* kFooter =
    "Numbers of keys may end in k, M or G. A run with 10M keys needs about 3 GB below the\n"
    "directory; take an idle machine.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong or lost, 2 after an error.\n\n"
    "Examples:\n"
    "  resume_bench\n"
    "  resume_bench --keys 1M,10M --repeat 5 --html resume.html --json resume.json\n"
    "  resume_bench --keys 20M --threads 2 --within 1,10,100,1000,5000 --pool-dir /mnt/pmem";

struct Options {
  Config config;
  std::filesystem::path json;
  std::filesystem::path html;
  bool progress = false;
};

void add_options(CLI::App& app, Options& options) {
  Config& config = options.config;
  add_counts(app, "--keys", config.keys, "Sizes of the index, ascending")
      ->default_str("1M,2M,5M,10M");
  add_counts(app, "--within", config.within,
             "Milliseconds after the restart at which answers are counted, ascending")
      ->default_str("1,2,5,10,20,50,100,200,500,1000");
  add_count(app, "--repeat", config.repeat, "Restarts of each kind; medians are printed");
  add_count(app, "--threads", config.threads, "Threads that look keys up in table 3");
  add_count(app, "--load-threads", config.load_threads, "Threads that load, and are killed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
  app.add_option("--pool-dir", config.pool_dir,
                 "Directory for all files (default: /dev/shm if it is a tmpfs)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--json", options.json, "Write all results to this file");
  app.add_option("--html", options.html, "Write a page with plots to this file");
  app.add_flag("--progress", options.progress,
               "Show progress even if standard error is no terminal");
}

std::function<void(const Progress&)> progress_display(ProgressStyle style) {
  return [style, last = std::string()](const Progress& at) mutable {
    std::string text = at.step;
    if (style == ProgressStyle::terminal && at.total != 0) {
      const double share = static_cast<double>(at.done) / static_cast<double>(at.total);
      text += fmt::format("  {:3.0f} %", 100 * std::min(share, 1.0));
    }
    if (text == last) return;
    terminal::show_status(style, text);
    last = std::move(text);
  };
}

int run_and_report(Options& options) {
  validate(options.config);
  require_writable(options.json);
  require_writable(options.html);
  const ProgressStyle style =
      terminal::progress_style(options.progress ? ProgressStyle::log : ProgressStyle::none);
  options.config.on_progress = progress_display(style);
  options.config.stop = &terminal::catch_interrupts();
  const Report report = run(options.config);
  terminal::show_status(style, "");
  write_text(std::cout, report);
  write_file(options.json, [&](std::ostream& out) { out << to_json(report).dump(2) << '\n'; });
  write_file(options.html, [&](std::ostream& out) { write_html(out, report); });
  return report.lost() == 0 ? kOk : kLost;
}

int run_command_line(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "resume_bench");
  app.footer(kFooter);
  add_options(app, options);
  try {
    app.parse(argc, argv);
    return run_and_report(options);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kError;
  } catch (const std::exception& e) {
    terminal::show_status(terminal::progress_style(ProgressStyle::none), "");
    fmt::print(stderr, "resume_bench: {}\n", e.what());
    return kError;
  }
}

}  // namespace
}  // namespace perdix::bench::resumption

int main(int argc, char** argv) { return perdix::bench::resumption::run_command_line(argc, argv); }
