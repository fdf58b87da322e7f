// The options of a pool for all engines that the suites run over, of which some are plug-ins.
#pragma once

#include <perdix/pool.h>
#include <perdix/tips_indexes.h>

namespace perdix::test {

inline PoolOptions options_for_all_engines() {
  PoolOptions options;
  options.plugins = tips::further_plugins();
  return options;
}

}  // namespace perdix::test
