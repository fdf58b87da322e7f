// perdix-bench: compares indexes with LMDB, RocksDB and maps in DRAM. `perdix bench` runs it.
#include <iostream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/command_line.h"
#include "common/report_file.h"
#include "figure/command.h"
#include "special/special.h"
#include "terminal/interrupt.h"
#include "terminal/progress.h"
#include "ycsb/driver.h"
#include "ycsb/options.h"
#include "ycsb/progress.h"

namespace perdix::bench {
namespace {

constexpr const char* kDescription =
    "Compares indexes with LMDB, RocksDB and maps in DRAM: the workloads of YCSB, and phases of\n"
    "single operations.";

constexpr const char* kFooter =
    "Exit status: 0 if all answers were right, 1 if a system gave a wrong answer or lost a "
    "record,\n"
    "2 after an error.\n\n"
    "Beside this:\n"
    "  perdix bench figure NAME     makes the figures of a paper; `perdix bench figure` lists "
    "them\n"
    "  perdix bench special NAME    other experiments; `perdix bench special` lists them\n\n"
    "Examples:\n"
    "  perdix bench\n"
    "  perdix bench --records 10M --workloads load,get,absent,reopen --repeat 3\n"
    "  perdix bench --threads 1,2,4 --workloads load,a,c --html bench.html --json bench.json\n"
    "  perdix bench --keys bytes --key-size 32 --value-size 100 --durability power --pool-dir "
    "/mnt/disk";

// The progress line goes before anything else is said, also after an error.
class StatusLine {
 public:
  explicit StatusLine(terminal::ProgressStyle style) : style_(style) {}
  ~StatusLine() { terminal::show_status(style_, ""); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  terminal::ProgressStyle style_;
};

Report run_with_progress(Config& config, terminal::ProgressStyle style) {
  const StatusLine line(style);
  config.on_progress = progress_display(style);
  config.stop = &terminal::catch_interrupts();
  return run(config);
}

ExitStatus run_and_write(Options& options) {
  require_writable(options.outputs.json);
  require_writable(options.outputs.html);
  const Report report = run_with_progress(options.config, options.outputs.style());
  write_text(std::cout, report);
  write_file(options.outputs.json,
             [&](std::ostream& out) { out << to_json(report).dump(2) << '\n'; });
  write_file(options.outputs.html, [&](std::ostream& out) { write_html(out, report); });
  return report.problems().empty() ? kAllRight : kWrongAnswers;
}

int fail(std::string_view message) {
  terminal::tell(fmt::format("perdix-bench: {}\n", message));
  return kFailed;
}

int main_of(int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string_view("figure"))
    return run_figure_command(argc - 1, argv + 1);
  if (argc > 1 && argv[1] == std::string_view("special"))
    return run_special_command(argc - 1, argv + 1);
  CLI::App app(kDescription, "perdix-bench");
  app.footer(kFooter);
  Options options;
  try {
    add_options(app, options);
    app.parse(argc, argv);
    return run_and_write(options);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return fail(fmt::format("{}; see 'perdix-bench --help'", e.what()));
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}

}  // namespace
}  // namespace perdix::bench

int main(int argc, char** argv) { return perdix::bench::main_of(argc, argv); }
