// What the user has asked of an index: its engine and the kinds of its keys and values.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <perdix/index.h>
#include <perdix/pool.h>

namespace perdix::tool {

struct IndexSpec {
  std::optional<std::string> engine;
  std::optional<Kind> keys;
  std::optional<Kind> values;
};

/// Opens the index if it exists, or creates it as `spec` asks (byte strings and "sptree" where it
/// says nothing). Throws perdix::Error if the index exists and differs from `spec`.
std::unique_ptr<Index> open_or_create(const Pool& pool, const std::string& name,
                                      const IndexSpec& spec);

}  // namespace perdix::tool
