#include "support/settings.h"

#include <algorithm>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

namespace perdix::test {
namespace {

std::uint64_t read_seed() {
  if (const char* text = std::getenv("PERDIX_SEED")) return std::strtoull(text, nullptr, 0);
  return std::random_device{}();
}

double read_scale() {
  const char* text = std::getenv("PERDIX_TEST_SCALE");
  const double factor = text ? std::strtod(text, nullptr) : 1;
  return factor > 0 ? factor : 1;
}

}  // namespace

std::uint64_t seed() {
  static const std::uint64_t value = read_seed();
  return value;
}

double scale() {
  static const double value = read_scale();
  return value;
}

std::string disk_folder() {
  const char* folder = std::getenv("PERDIX_TEST_DISK");
  return folder == nullptr ? "" : folder;
}

std::size_t scaled(double count, std::size_t least) {
  // The build's own factor makes room for sanitizers, which slow all code down.
  return std::max(least, static_cast<std::size_t>(count * scale() * PERDIX_TEST_BUILD_SCALE));
}

std::string replay_environment() {
  return fmt::format("PERDIX_SEED={} PERDIX_TEST_SCALE={}", seed(), scale());
}

}  // namespace perdix::test
