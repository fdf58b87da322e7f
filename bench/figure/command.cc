#include "figure/command.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.h"
#include "common/options.h"
#include "common/require.h"
#include "figure/run.h"
#include "ycsb/progress.h"

namespace perdix::bench {
namespace {

constexpr const char* kUsage =
    "Makes figures that are described in a file: which systems do what, with which settings.\n\n"
    "Usage: perdix-bench figure NAME [options]\n"
    "       perdix-bench figure FILE.toml [options]\n"
    "       perdix-bench figure NAME --help     what is in it, and its options\n\n"
    "Names: {}\n";

constexpr const char* kFooter =
    "Numbers may end in k, M or G, sizes in KiB or MiB. Take an idle machine for times.\n"
    "Exit status: 0 if all answers were right, 1 if one was wrong, 2 after an error.\n\n"
    "Examples:\n"
    "  perdix-bench figure elimda --json elimda.json --html elimda.html\n"
    "  perdix-bench figure elimda --figures operations,latency --systems elimda,tbb --records 50M";

/// Where the files lie, for an installation and for a build.
std::filesystem::path folder() {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return program.parent_path().parent_path() / "share/perdix/figures";
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder(), missing))
    if (entry.path().extension() == ".toml") all.push_back(entry.path().stem().string());
  std::ranges::sort(all);
  return all;
}

std::filesystem::path path_of(const std::string& name) {
  if (name.ends_with(".toml")) return name;
  const std::vector<std::string> known = names();
  if (std::ranges::find(known, name) != known.end()) return folder() / (name + ".toml");
  refuse(
      fmt::format("no figures are named '{}'; choose from: {}, or name a file that ends in .toml",
                  name, fmt::join(known, ", ")));
}

std::string description_of(const FigureFile& file) {
  std::string text = file.title + "\n" + file.about + "\n";
  for (const FigureSpec& figure : file.figures)
    text += fmt::format("  {:<15} {}\n", figure.name, figure.title);
  return text;
}

/// The option of a setting: --log-bytes for "log_bytes".
std::string option_of(std::string name) {
  std::ranges::replace(name, '_', '-');
  return "--" + name;
}

void add_setting(CLI::App& app, Setting& setting) {
  const auto store = [&setting](const std::vector<std::string>& words) {
    setting.values.clear();
    for (const std::string& word : words) {
      if (!setting.values.emplace_back(word).is_number() && setting.is_number)
        refuse(fmt::format("{}: '{}' is no number; write for example 500k or 10M",
                           option_of(setting.name), word));
    }
  };
  std::vector<std::string> defaults;
  for (const Value& value : setting.values) defaults.push_back(value.text());
  app.add_option_function<std::vector<std::string>>(option_of(setting.name), store, setting.about)
      ->delimiter(',')
      ->default_str(fmt::format("{}", fmt::join(defaults, ",")));
}

void add_options(CLI::App& app, FigureConfig& config) {
  app.add_option("--figures", config.figures,
                 "Which of the above (default: all that the systems and the build allow)")
      ->delimiter(',');
  app.add_option("--systems,--engines", config.systems,
                 fmt::format("Systems, of those of perdix bench (default: {})",
                             fmt::join(config.file.systems, ",")))
      ->delimiter(',');
  for (Setting& setting : config.file.settings) add_setting(app, setting);
  add_count(app, "--repeat", config.repeat, "Rounds; medians are printed");
  add_count(app, "--seed", config.seed, "Seed of keys and choices");
}

}  // namespace

int run_figure_command(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h") {
    fmt::print(kUsage, fmt::join(names(), ", "));
    return kAllRight;
  }
  FigureConfig config;
  try {
    config.file = read_figure_file(path_of(name));
  } catch (const std::exception& e) {
    terminal::tell(fmt::format("perdix-bench: {}\n", e.what()));
    return kFailed;
  }
  CLI::App app(description_of(config.file), "perdix-bench figure " + name);
  app.footer(kFooter);
  add_options(app, config);
  return run_program(app, argc - 1, argv + 1, config, progress_display);
}

}  // namespace perdix::bench
