// The median of the rounds of a benchmark.
#pragma once

#include <algorithm>
#include <vector>

namespace perdix::bench {

/// 0 of no values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace perdix::bench
