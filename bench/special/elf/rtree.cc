#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/geometry.hpp>
#include <boost/geometry/index/rtree.hpp>

#include "special/elf/systems.h"

namespace perdix::bench::points {
namespace {

namespace bg = boost::geometry;

using Place = bg::model::point<std::int32_t, kDimensions, bg::cs::cartesian>;
using Box = bg::model::box<Place>;
using Entry = std::pair<Place, std::uint32_t>;

constexpr std::size_t kEntriesOfNode = 16;

template <std::size_t... D>
Place place_of(const Point& point, std::index_sequence<D...>) {
  Place place;
  // Values are small; bounds that are none are greater than any.
  (bg::set<D>(place, static_cast<std::int32_t>(std::min(point[D], kMaxValue))), ...);
  return place;
}

Place place_of(const Point& point) {
  return place_of(point, std::make_index_sequence<kDimensions>());
}

class RTree final : public System {
 public:
  explicit RTree(const Data& data) {
    std::vector<Entry> entries;
    entries.reserve(data.rows());
    for (std::uint64_t row = 0; row < data.rows(); ++row)
      entries.emplace_back(place_of(data.point(row)), static_cast<std::uint32_t>(row));
    tree_ = Tree(entries);
  }

  void exact(const Query& query, Tids& tids) override {
    range(query, tids);
    if (tids.size() > 1) tids = {*std::ranges::min_element(tids)};
  }

  void range(const Query& query, Tids& tids) override {
    const Box box(place_of(query.lower), place_of(query.upper));
    for (auto it = tree_.qbegin(bg::index::covered_by(box)); it != tree_.qend(); ++it)
      tids.push_back(it->second);
  }

  std::uint64_t bytes() const override { return tree_.size() * sizeof(Entry); }

 private:
  using Tree = bg::index::rtree<Entry, bg::index::quadratic<kEntriesOfNode>>;
  Tree tree_;
};

}  // namespace

std::unique_ptr<System> make_rtree(const Data& data) { return std::make_unique<RTree>(data); }

}  // namespace perdix::bench::points
