#include "index/tips/settings.h"

#include <algorithm>
#include <thread>

#include "index/tips/options.h"

namespace perdix::detail::index::tips {

Settings settings_of(const TipsOptions& options) {
  require_valid(kOptions, "tips", options);
  return {options, options.resume_in_background, true};
}

Settings settings_for_the_end() { return {TipsOptions{}, false, false}; }

unsigned max_workers(const TipsOptions& options) {
  return options.max_workers > 0 ? options.max_workers
                                 : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace perdix::detail::index::tips
