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

/// Returns all forms of the three indexes in the paper: "cceh", "cceh+b" and so on.
std::vector<std::string> all_forms();

/// Returns the forms that perdix has.
std::vector<std::string> known_forms();

/// Returns a sentence about the forms that perdix lacks, or an empty string.
std::string missing_forms();

}  // namespace perdix::bench::spot_on
