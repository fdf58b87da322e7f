// Ways to answer the same queries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "elf/data.h"

namespace perdix::bench::points {

class System {
 public:
  virtual ~System() = default;

  /// Answers are row numbers in any order. An exact match has at most one: the lowest.
  virtual void exact(const Query& query, Tids& tids) = 0;
  virtual void range(const Query& query, Tids& tids) = 0;

  void answer(QueryType type, const Query& query, Tids& tids) {
    tids.clear();
    type == QueryType::exact ? exact(query, tids) : range(query, tids);
  }

  /// What it has made of the data; 0 if it needs nothing.
  virtual std::uint64_t bytes() const = 0;

 protected:
  System() = default;
};

/// Columns are compared in runs of rows, by loops that the compiler vectorises; a run of which no
/// row is left is given up. Nothing is made of the data.
std::unique_ptr<System> make_scan(const Data& data);

/// boost::geometry's R-tree, bulk loaded.
std::unique_ptr<System> make_rtree(const Data& data);

/// SQLite's R*Tree in memory. It has at most five dimensions; rows that it finds are compared in
/// the others.
std::unique_ptr<System> make_sqlite(const Data& data);

/// An Elf in a pool of its own in the directory, with all of it in DRAM if `hybrid`.
std::unique_ptr<System> make_elf(const Data& data, const std::filesystem::path& directory,
                                 bool hybrid);

}  // namespace perdix::bench::points
