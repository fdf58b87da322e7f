#include "perdix/bench_command.h"

#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <perdix/error.h>

#include "common/report_file.h"
#include "terminal/interrupt.h"
#include "ycsb/driver.h"
#include "ycsb/options.h"
#include "ycsb/progress.h"

namespace perdix::tool {
namespace {

using bench::require_writable;
using bench::write_file;
using terminal::ProgressStyle;

// The progress line goes before anything else is said, also after an error.
class StatusLine {
 public:
  explicit StatusLine(ProgressStyle style) : style_(style) {}
  ~StatusLine() { terminal::show_status(style_, ""); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  ProgressStyle style_;
};

bench::Report run_with_progress(bench::Config& config, ProgressStyle style) {
  const StatusLine line(style);
  config.on_progress = bench::progress_display(style);
  config.stop = &terminal::catch_interrupts();
  return bench::run(config);
}

void bench(bench::Options& options, ExitStatus& status) {
  require_writable(options.outputs.json);
  require_writable(options.outputs.html);
  const ProgressStyle style =
      terminal::progress_style(options.outputs.progress ? ProgressStyle::log : ProgressStyle::none);
  const bench::Report report = run_with_progress(options.config, style);
  bench::write_text(std::cout, report);
  write_file(options.outputs.json,
             [&](std::ostream& out) { out << bench::to_json(report).dump(2) << '\n'; });
  write_file(options.outputs.html, [&](std::ostream& out) { bench::write_html(out, report); });
  if (!report.problems().empty()) status = ExitStatus::negative;
}

}  // namespace

void add_bench(CLI::App& app, ExitStatus& status) {
  auto options = std::make_shared<bench::Options>();
  CLI::App* command =
      app.add_subcommand("bench", "Compare indexes with LMDB, RocksDB and maps in DRAM (YCSB)");
  bench::add_options(*command, *options);
  command->footer(
      "Exit status 1 if a system gave a wrong answer or lost a record.\n\n"
      "Examples:\n"
      "  perdix bench\n"
      "  perdix bench --records 10M --workloads load,get,absent,reopen --repeat 3\n"
      "  perdix bench --threads 1,2,4 --workloads load,a,c --html bench.html --json bench.json\n"
      "  perdix bench --keys bytes --key-size 32 --value-size 100 --durability power --pool-dir "
      "/mnt/disk");
  command->callback([options, &status] { bench(*options, status); });
}

}  // namespace perdix::tool
