// What an index is to be, where the user said so.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <perdix/index.h>
#include <perdix/pool.h>

namespace perdix::tool {

struct IndexWishes {
  std::optional<std::string> engine;
  std::optional<Kind> keys;
  std::optional<Kind> values;
};

/// Opens the index if it exists, or creates it as wished (byte strings and "sptree" where nothing
/// is said). Throws perdix::Error if it exists and is not as wished.
std::unique_ptr<Index> open_or_create(const Pool& pool, const std::string& name,
                                      const IndexWishes& wishes);

}  // namespace perdix::tool
