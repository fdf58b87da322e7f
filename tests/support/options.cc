#include "support/options.h"

#include <stdexcept>

#include <fmt/format.h>

namespace perdix::test {

Options::Options(int count, char** arguments) {
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--") || i + 1 == count) {
      throw std::invalid_argument(fmt::format("{}: options are '--name value'", name));
    }
    values_.emplace_back(name.substr(2), arguments[i + 1]);
  }
}

std::string Options::text(std::string_view name, std::string_view fallback) const {
  for (const auto& [known, value] : values_) {
    if (known == name) return value;
  }
  return std::string(fallback);
}

std::uint64_t Options::number(std::string_view name, std::uint64_t fallback) const {
  const std::string value = text(name);
  return value.empty() ? fallback : std::stoull(value);
}

}  // namespace perdix::test
