#include <algorithm>

#include "special/elf/systems.h"

namespace perdix::bench::points {
namespace {

constexpr std::size_t kRun = 256;  // of rows

class Scan final : public System {
 public:
  explicit Scan(const Data& data) : data_(data) {}

  void exact(const Query& query, Tids& tids) override {
    scan(query, [&](std::uint32_t tid) {
      tids.push_back(tid);
      return false;
    });
  }

  void range(const Query& query, Tids& tids) override {
    scan(query, [&](std::uint32_t tid) {
      tids.push_back(tid);
      return true;
    });
  }

  std::uint64_t bytes() const override { return 0; }

 private:
  using Mask = std::array<std::uint8_t, kRun>;  // 1: the row meets all conditions so far

  /// Rows that are no longer in the mask stay out. Returns whether any is left.
  bool narrow(Mask& mask, unsigned d, const Query& query, std::size_t begin, std::size_t n) const {
    const std::uint32_t* const values = data_.column(d).data() + begin;
    const std::uint32_t lower = query.lower[d];
    const std::uint32_t width = query.upper[d] - lower;
    std::uint8_t any = 0;
    for (std::size_t i = 0; i < n; ++i) {
      mask[i] &= static_cast<std::uint8_t>(values[i] - lower <= width);
      any |= mask[i];
    }
    return any != 0;
  }

  template <class Visit>
  void scan(const Query& query, const Visit& visit) const {
    std::vector<unsigned> bounded;
    for (unsigned d = 0; d < kDimensions; ++d) {
      if (query.lower[d] != 0 || query.upper[d] != ~std::uint32_t{0}) bounded.push_back(d);
    }
    Mask mask;
    for (std::size_t begin = 0; begin < data_.rows(); begin += kRun) {
      const std::size_t n = std::min(kRun, data_.rows() - begin);
      mask.fill(1);
      const bool left = std::ranges::all_of(
          bounded, [&](unsigned d) { return narrow(mask, d, query, begin, n); });
      for (std::size_t i = 0; left && i < n; ++i) {
        if (mask[i] != 0 && !visit(static_cast<std::uint32_t>(begin + i))) return;
      }
    }
  }

  const Data& data_;
};

}  // namespace

std::unique_ptr<System> make_scan(const Data& data) { return std::make_unique<Scan>(data); }

}  // namespace perdix::bench::points
