// What the operator chooses: arguments of --loadmodule, `perdix.NAME` in the server's configuration
// file, and CONFIG SET perdix.NAME for those that may change while the server runs.
//
//   loadmodule /usr/lib/perdix.so path /mnt/pmem/redis.pool mode keyspace
//
// The configuration file wins over the arguments.
#pragma once

#include <cstdint>

#include <perdix/index.h>

#include "api.h"

namespace perdix::valkey {

enum class Mode : int {
  tables = 0,    ///< the module's own commands are durable; native keys are the server's business
  keyspace = 1,  ///< native keys of all types, too
};

enum class Oversize : int {
  warn = 0,    ///< a large value is stored, and the log says so
  refuse = 1,  ///< a command with a larger argument gets an error and is not executed
};

enum class Unreadable : int {
  refuse = 0,  ///< a server that can't take all keys from the pool does not start
  skip = 1,    ///< it starts without them; they stay in the pool until they are written again
};

enum class Partial : int {
  refuse = 0,  ///< a pool that has a part of a primary's keys waits for that primary
  serve = 1,   ///< its keys are given to the server, which takes them for all
};

struct Settings {
  static constexpr long long kDefaultMaxValue = 64LL << 20;

  std::string path = "perdix.pool";  ///< the pool; relative to the server's directory
  int durability = static_cast<int>(Durability::automatic);
  int mode = static_cast<int>(Mode::tables);
  std::string engine = "sptree";  ///< of tables that are created without ENGINE
  long long dram_budget = 0;      ///< of tables opened from now on whose engine has write buffers
  int technique = static_cast<int>(Technique::none);  ///< of those whose engine needs one for that
  long long max_size = 0;                             ///< PoolOptions::max_size
  long long max_value = kDefaultMaxValue;  ///< bytes of a native value that are no surprise
  int oversize = static_cast<int>(Oversize::warn);
  int unreadable = static_cast<int>(Unreadable::refuse);
  int partial = static_cast<int>(Partial::refuse);

  /// As IndexOptions name it.
  const char* technique_name() const;
  bool keeps_native_keys() const { return mode == static_cast<int>(Mode::keyspace); }
  bool refuses_oversize() const { return oversize == static_cast<int>(Oversize::refuse); }
  bool skips_unreadable() const { return unreadable == static_cast<int>(Unreadable::skip); }
  bool serves_partial() const { return partial == static_cast<int>(Partial::serve); }
};

/// Fills in the settings and makes the server know them. They must stay where they are. Throws
/// Error for an argument that has no meaning.
void load_settings(Context* context, Arguments arguments, Settings& settings);

}  // namespace perdix::valkey
