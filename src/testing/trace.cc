#include "testing/trace.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace perdix::testing {

std::string Sites::name(const detail::pm::Site& site) {
  std::string_view file = site.file_name();
  for (const std::string_view root : {"/src/", "/tests/"}) {
    const std::size_t at = file.rfind(root);
    if (at != std::string_view::npos) file.remove_prefix(at + 1);
  }
  return fmt::format("{}:{}:{}", file, site.line(), site.column());
}

std::uint32_t Sites::number(const detail::pm::Site& site) {
  for (const Key& key : recent_) {
    if (key.file == site.file_name() && key.line == site.line() && key.column == site.column())
      return key.number;
  }
  // Headers have a file name per translation unit, so the same place may come with several
  // pointers.
  const std::uint32_t number = this->number(name(site));
  uses_[number].function = site.function_name();
  recent_.push_back({site.file_name(), site.line(), site.column(), number});
  return number;
}

std::uint32_t Sites::number(const std::string& name) {
  const auto known =
      std::find_if(uses_.begin(), uses_.end(), [&](const Use& use) { return use.name == name; });
  const auto number = static_cast<std::uint32_t>(known - uses_.begin());
  if (known == uses_.end()) uses_.push_back({name, ""});
  return number;
}

}  // namespace perdix::testing
