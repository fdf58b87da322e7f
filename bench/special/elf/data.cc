#include "special/elf/data.h"

#include <algorithm>

#include "util/random.h"

namespace perdix::bench::points {
namespace {

constexpr std::array<unsigned, 3> kPartial = {0, 3, 6};

}  // namespace

std::string to_string(QueryType type) {
  switch (type) {
    case QueryType::exact: return "exact";
    case QueryType::range: return "range";
    default: return "partial";
  }
}

Data::Data(std::uint64_t rows, std::uint64_t seed) {
  detail::util::Random random(seed);
  for (std::vector<std::uint32_t>& column : columns_) {
    column.resize(rows);
    for (std::uint32_t& value : column)
      value = static_cast<std::uint32_t>(random.below(kMaxValue + 1));
  }
}

std::vector<std::span<const std::uint32_t>> Data::columns() const {
  return {columns_.begin(), columns_.end()};
}

Point Data::point(std::uint64_t row) const {
  Point point;
  for (unsigned d = 0; d < kDimensions; ++d) point[d] = columns_[d][row];
  return point;
}

std::vector<Query> make_queries(const Data& data, QueryType type, std::uint64_t count,
                                std::uint64_t seed, double share) {
  detail::util::Random random(seed);
  const auto rows = static_cast<std::uint64_t>(share * static_cast<double>(data.rows()));
  const auto any = [&] { return data.point(random.below(std::max<std::uint64_t>(rows, 1))); };
  std::vector<Query> queries;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Point a = any();
    Query query{a, a};
    if (type != QueryType::exact) {
      const Point b = any();
      for (unsigned d = 0; d < kDimensions; ++d) {
        const bool bounded =
            type == QueryType::range || std::ranges::find(kPartial, d) != kPartial.end();
        query.lower[d] = bounded ? std::min(a[d], b[d]) : 0;
        query.upper[d] = bounded ? std::max(a[d], b[d]) : ~std::uint32_t{0};
      }
    }
    queries.push_back(query);
  }
  return queries;
}

}  // namespace perdix::bench::points
