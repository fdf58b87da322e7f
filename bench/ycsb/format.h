// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace perdix::bench {

/// Three significant digits: "0.0213", "1.24", "87.1", "653".
std::string format_number(double value);

/// "812 ns", "14.2 us", "3.10 ms", "1.42 s".
std::string format_nanoseconds(double nanoseconds);

/// "1,000,000"
std::string format_count(std::uint64_t count);

/// "16.0 MiB"
std::string format_bytes(double bytes);

}  // namespace perdix::bench
