// The index that the user has asked for: its engine and the kinds of its keys and values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <perdix/index.h>
#include <perdix/pool.h>

namespace perdix::tool {

/// `options` are what IndexOptions::named has, each as NAME=VALUE.
struct IndexSpec {
  std::optional<std::string> engine;
  std::optional<Kind> keys;
  std::optional<Kind> values;
  std::vector<std::string> options;
};

/// Opens the index if it exists, or creates it as `spec` asks (byte strings and "sptree" where it
/// says nothing). Throws perdix::Error if the index exists and differs from `spec`, or its engine
/// does not have an option.
std::unique_ptr<Index> open_or_create(const Pool& pool, const std::string& name,
                                      const IndexSpec& spec);

}  // namespace perdix::tool
