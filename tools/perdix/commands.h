// The commands of the tool and their options. The commands do not depend on the command line;
// command_line.cc turns it into these options.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "perdix/index_spec.h"
#include "perdix/rows.h"

namespace perdix::tool {

/// The exit status of the process.
enum class ExitStatus : int {
  ok = 0,
  negative = 1,  ///< the answer is no: a key was not found, a check found problems
  failed =
      2,  ///< the command could not do what it was asked for; commands throw perdix::Error for it
};

/// The pool and the index that most commands are about.
struct Target {
  std::string pool;
  std::string index;
};

struct CreateOptions {
  std::string pool;
  std::string size;      ///< as parse_size() takes it; empty: the smallest pool
  std::string max_size;  ///< the same; empty: the default of PoolOptions
  Durability durability = Durability::automatic;
  DomainChoice domain = DomainChoice::detect;
};

struct LoadOptions {
  Target target;
  IndexSpec spec;
  std::string file;                 ///< "-" for standard input
  std::optional<RowFormat> format;  ///< nothing: by the name of the file
  std::uint64_t key_column = 1;     ///< from 1
  std::uint64_t value_column = 2;   ///< from 1; 0 for the line number
  bool header = false;
  bool plain = false;  ///< backslashes in TSV stand for themselves
  bool hex = false;
  bool progress = false;  ///< also where standard error is no terminal
};

struct IncrementOptions {
  Target target;
  IndexSpec spec;
  std::string key;
  std::string by = "1";  ///< from -(2^64 - 1) to 2^64 - 1
  bool hex = false;
};

struct EnginesOptions {
  bool json = false;
};

/// For get and put.
struct PointOptions {
  Target target;
  IndexSpec spec;  ///< put
  std::string key;
  std::string value;  ///< put
  bool hex = false;
  bool raw = false;  ///< get
};

/// For del.
struct DeleteOptions {
  Target target;
  std::string key;
  std::vector<std::string> range;  ///< from and to in place of a key, or empty
  bool hex = false;
};

struct ScanOptions {
  Target target;
  std::optional<std::string> from;
  std::optional<std::string> to;  ///< ends before it
  std::optional<std::string> prefix;
  bool reverse = false;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  bool keys_only = false;
  bool hex = false;
};

struct DumpOptions {
  Target target;
  bool header = true;
};

struct InfoOptions {
  std::string pool;
  bool stats = false;
  bool json = false;
};

struct CheckOptions {
  std::string pool;
  bool json = false;
};

ExitStatus create(const CreateOptions& options);
ExitStatus load(const LoadOptions& options);
ExitStatus get(const PointOptions& options);
ExitStatus put(const PointOptions& options);
ExitStatus del(const DeleteOptions& options);
ExitStatus incr(const IncrementOptions& options);
ExitStatus scan(const ScanOptions& options);
ExitStatus dump(const DumpOptions& options);
ExitStatus info(const InfoOptions& options);
ExitStatus check(const CheckOptions& options);
ExitStatus drop(const Target& target);
ExitStatus engines(const EnginesOptions& options);

}  // namespace perdix::tool
