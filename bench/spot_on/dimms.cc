#include "spot_on/dimms.h"

#include <algorithm>
#include <array>

namespace perdix::bench::spot_on {
namespace {

// Rows of a system lie together.
constexpr std::array<DimmInserts, 14> kInserts = {{
    {"cceh", false, 851.4, 583.5, 922'758},
    {"cceh+b", false, 373.1, 137.1, 1'165'527},
    {"cceh+b", true, 408.3, 275.7, 1'093'680},
    {"cceh+bo", false, 311.3, 136.1, 1'424'769},
    {"cceh+bo", true, 341.0, 267.5, 1'330'751},
    {"cceh+boc", false, 307.8, 136.1, 1'445'997},
    {"cceh+boc", true, 339.1, 267.7, 1'356'682},
    {"fastfair", false, 1501.7, 813.1, 498'904},
    {"fastfair+b", false, 954.7, 148.3, 547'011},
    {"fastfair+b", true, 1010.0, 269.2, 525'192},
    {"fastfair+bo", false, 933.4, 205.2, 609'025},
    {"fastfair+bo", true, 974.0, 330.7, 585'715},
    {"fastfair+boc", false, 221.1, 204.3, 880'207},
    {"fastfair+boc", true, 258.5, 327.1, 826'111},
}};

}  // namespace

std::span<const DimmInserts> dimm_inserts(std::string_view system) {
  const auto rows = std::ranges::equal_range(kInserts, system, {}, &DimmInserts::system);
  return {rows.begin(), rows.end()};
}

}  // namespace perdix::bench::spot_on
