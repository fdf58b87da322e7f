// The plug-ins that the tool has: perdix's further indexes for Tips. An index of another plug-in is
// left alone.
#pragma once

#include <perdix/pool.h>
#include <perdix/tips_indexes.h>

namespace perdix::tool {

/// The options with which the tool opens pools.
inline PoolOptions with_plugins() {
  PoolOptions options;
  options.plugins = tips::further_plugins();
  return options;
}

}  // namespace perdix::tool
