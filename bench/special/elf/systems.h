// The systems that answer the queries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "special/elf/data.h"

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

  /// The size of what the system has built from the data; 0 if it builds nothing.
  virtual std::uint64_t bytes() const = 0;

 protected:
  System() = default;
};

/// Compares columns in runs of rows, by loops that the compiler vectorises. Skips the rest of a run
/// when no row of it is left. Builds nothing.
std::unique_ptr<System> make_scan(const Data& data);

/// boost::geometry's R-tree, bulk loaded.
std::unique_ptr<System> make_rtree(const Data& data);

/// SQLite's R*Tree in memory. It has at most five dimensions; rows that it finds are compared in
/// the others.
std::unique_ptr<System> make_sqlite(const Data& data);

/// An Elf in a separate pool in the directory. If `hybrid`, it is in DRAM as a whole.
std::unique_ptr<System> make_elf(const Data& data, const std::filesystem::path& directory,
                                 bool hybrid);

}  // namespace perdix::bench::points
