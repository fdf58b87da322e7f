// A sample table of points in the plane: an index that is no map, as small as one can be. It has no
// keys, so it is no perdix::Index; pools, `perdix info`, `check` and `drop` know it all the same.
// Thread-safe by a lock.
//
// In PM: the root leads to a block, or is 0. The block's first word is the number of points, which
// lie behind it, 16 bytes each. Adding a point writes it behind the last one, then publishes the
// number. A block that is full is replaced by one of twice the size.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::samples::points {

inline constexpr std::string_view kEngineName = "sample_points";

struct Point {
  std::uint64_t x;
  std::uint64_t y;
  friend bool operator==(const Point&, const Point&) = default;
};

class Table final : public detail::pool::OpenIndex {
 public:
  explicit Table(detail::pool::IndexHandle handle) : handle_(std::move(handle)) {}

  /// Opens the table of that name, or creates it.
  static std::unique_ptr<Table> open_or_create(const Pool& pool, std::string_view name);

  static void destroy(detail::pool::PoolCore& pool, std::uint64_t& root);

  /// Returns the number of the new row.
  std::uint64_t add(Point point);
  std::vector<Point> rows() const;

  IndexStats stats() const override;
  CheckReport check() const override;
  void for_each_block(const detail::pool::BlockVisitor& visit) const override;

 private:
  void grow();

  detail::pool::IndexHandle handle_;  // keeps the pool open
  mutable std::mutex lock_;
};

}  // namespace perdix::samples::points
