// Formats figures for people, and parses figures that people write.
#pragma once

#include <cstdint>
#include <string>

namespace perdix::terminal {

/// Three significant digits: "0.0213", "1.24", "87.1", "653".
std::string format_number(double value);

/// "812 ns", "14.2 us", "3.10 ms", "1.42 s".
std::string format_nanoseconds(double nanoseconds);

/// "1,000,000"
std::string format_count(std::uint64_t count);

/// "16.0 MiB"
std::string format_bytes(double bytes);

/// Numbers with an optional suffix: a count such as "500k" or "10M" in powers of 1000, a size such
/// as "64M" or "1GiB" in powers of 1024. Throw perdix::Error invalid_argument.
std::uint64_t parse_count(const std::string& text);
std::uint64_t parse_size(const std::string& text);

}  // namespace perdix::terminal
