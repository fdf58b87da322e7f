#include "ycsb/progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace perdix::bench {
namespace {

std::string describe(const Progress& at) {
  if (at.phases == 0) return at.what;
  return fmt::format("{:3} of {}  {}", at.phase + 1, at.phases, at.what);
}

}  // namespace

std::function<void(const Progress&)> progress_display(terminal::ProgressStyle style) {
  if (style == terminal::ProgressStyle::none) return {};
  return [style, last = std::string()](const Progress& at) mutable {
    std::string text = describe(at);
    if (style == terminal::ProgressStyle::terminal) {
      if (at.total != 0)
        text += fmt::format("  {:3} %", 100 * std::min(at.done, at.total) / at.total);
      terminal::show_status(style, text);
    } else if (text != last) {
      terminal::show_status(style, text);
      last = std::move(text);
    }
  };
}

}  // namespace perdix::bench
