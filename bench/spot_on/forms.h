// The names of systems: an index and the techniques that it has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perdix::bench::spot_on {

/// "cceh" and "bo" of "cceh+bo"; a plain index has no techniques.
struct Form {
  std::string index;
  std::string techniques;
};

Form form_of(std::string_view system);

/// "cceh", "cceh+b", ...: every form that the paper has, of each of its three indexes.
std::vector<std::string> all_forms();

/// Those that perdix has.
std::vector<std::string> known_forms();

/// A sentence about the forms that perdix does not have; empty if it has all.
std::string missing_forms();

}  // namespace perdix::bench::spot_on
