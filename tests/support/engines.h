// The engines that every suite runs over, each with all combinations of kinds: those of
// cmake/engines.cmake, and the sample engines.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/perdix.h>

#include "support/any_index.h"

namespace perdix::test {

/// One engine with one combination of kinds, opened in one way: a class that an index may be of.
struct IndexType {
  std::string name;    ///< of the engine and how it is opened: "sptree", "sptree+buffers",
                       ///< "elimda+small"
  std::string engine;  ///< the name that pools know it by
  Kind key_kind;
  Kind value_kind;
  bool ordered;  ///< it has scan(); hash indexes have none, and the cases for scans skip them

  /// Those that open() takes; null: none.
  IndexOptions (*options)();
  AnyIndex (*open_as_usual)(const Pool& pool, std::string_view index);
  AnyIndex (*open_with)(const Pool& pool, std::string_view index, const IndexOptions& options);

  AnyIndex open(const Pool& pool, std::string_view index) const;

  /// Opened with write buffers, which come with a log, or with a cached way.
  bool buffered() const;

  /// "u64_bytes" for keys that are numbers and values that are strings.
  std::string kinds() const;
};

/// All of them, engine by engine. Thread-safe.
std::span<const IndexType> index_types();

/// All but mixed kinds of most indexes of Tips: kinds are the framework's, which is the same in all
/// of these. For suites in which a case takes seconds. Thread-safe.
const std::vector<IndexType>& few_index_types();

}  // namespace perdix::test
