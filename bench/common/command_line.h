// The command line of a benchmark that is a separate program and writes a report.
#pragma once

#include <exception>
#include <filesystem>
#include <iostream>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/outputs.h"
#include "common/report.h"
#include "common/report_file.h"
#include "terminal/interrupt.h"
#include "terminal/progress.h"

namespace perdix::bench {

enum ExitStatus : int { kAllRight = 0, kWrongAnswers = 1, kFailed = 2 };

/// Adds the options that all of these programs have.
inline void add_places(CLI::App& app, std::filesystem::path& pool_dir, Outputs& outputs) {
  app.add_option("--pool,--pool-dir", pool_dir,
                 "Directory for all files (default: /dev/shm if it is a tmpfs)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--json", outputs.json, "Write all results to this file");
  app.add_option("--html", outputs.html, "Write a page with plots to this file");
  app.add_flag("--progress", outputs.progress,
               "Show progress even if standard error is no terminal");
}

/// Runs `config` and writes the report to `outputs`; `display(style)` shows the progress.
template <class Config, class Display>
ExitStatus run_and_report(Config& config, const Outputs& outputs, Display display) {
  validate(config);
  require_writable(outputs.json);
  require_writable(outputs.html);
  const terminal::ProgressStyle style = outputs.style();
  config.on_progress = display(style);
  config.stop = &terminal::catch_interrupts();
  const Report report = run(config);
  terminal::show_status(style, "");
  write_text(std::cout, report);
  write_file(outputs.json, [&](std::ostream& out) { out << to_json(report).dump(2) << '\n'; });
  write_file(outputs.html, [&](std::ostream& out) { write_html(out, report); });
  return report.problems().empty() ? kAllRight : kWrongAnswers;
}

/// Parses the command line and runs the benchmark. `app` must have the program's own options
/// already. Prints errors and returns the exit status.
template <class Config, class Display>
int run_program(CLI::App& app, int argc, char** argv, Config& config, Display display) {
  Outputs outputs;
  add_places(app, config.pool_dir, outputs);
  try {
    app.parse(argc, argv);
    return run_and_report(config, outputs, display);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    terminal::tell(fmt::format("{0}: {1}; see '{0} --help'\n", app.get_name(), e.what()));
    return kFailed;
  } catch (const std::exception& e) {
    terminal::show_status(terminal::progress_style(terminal::ProgressStyle::none), "");
    terminal::tell(fmt::format("{}: {}\n", app.get_name(), e.what()));
    return kFailed;
  }
}

}  // namespace perdix::bench
