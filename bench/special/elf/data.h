// The table and the queries of the paper: ten dimensions, uniform values from 0 to 100.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace perdix::bench::points {

inline constexpr unsigned kDimensions = 10;
inline constexpr std::uint32_t kMaxValue = 100;

using Point = std::array<std::uint32_t, kDimensions>;
using Tids = std::vector<std::uint32_t>;

/// Bounds, both included. An exact match has equal ones.
struct Query {
  Point lower;
  Point upper;
};

enum class QueryType : std::uint8_t { exact, range, partial };

std::string to_string(QueryType type);

class Data {
 public:
  Data(std::uint64_t rows, std::uint64_t seed);

  std::uint64_t rows() const { return columns_[0].size(); }
  std::span<const std::uint32_t> column(unsigned dimension) const { return columns_[dimension]; }
  std::vector<std::span<const std::uint32_t>> columns() const;
  Point point(std::uint64_t row) const;
  std::uint64_t bytes() const { return rows() * kDimensions * sizeof(std::uint32_t); }

 private:
  std::array<std::vector<std::uint32_t>, kDimensions> columns_;
};

/// Queries whose bounds are of rows below `share` of all: one row, or two for each. A partial match
/// has bounds in three of the dimensions.
std::vector<Query> make_queries(const Data& data, QueryType type, std::uint64_t count,
                                std::uint64_t seed, double share = 1);

}  // namespace perdix::bench::points
