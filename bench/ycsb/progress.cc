#include "ycsb/progress.h"

#include <fmt/format.h>

namespace perdix::bench {
namespace {

std::string describe(const Progress& at) {
  const std::string number =
      at.phases == 0 ? "" : fmt::format("{:3} of {}  ", at.phase + 1, at.phases);
  return fmt::format("{}{} {}, {} thread{}", number, at.system, at.workload, at.threads,
                     at.threads == 1 ? "" : "s");
}

}  // namespace

std::function<void(const Progress&)> progress_display(terminal::ProgressStyle style) {
  if (style == terminal::ProgressStyle::none) return {};
  return [style, last = std::string()](const Progress& at) mutable {
    std::string text = describe(at);
    if (style == terminal::ProgressStyle::terminal) {
      const double share =
          at.total == 0 ? 0 : static_cast<double>(at.done) / static_cast<double>(at.total);
      terminal::show_status(style, fmt::format("{}  {:3.0f} %", text, share * 100));
    } else if (text != last) {
      terminal::show_status(style, text);
      last = std::move(text);
    }
  };
}

}  // namespace perdix::bench
