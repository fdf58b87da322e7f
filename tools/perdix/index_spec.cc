#include "perdix/index_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::tool {
namespace {

IndexOptions options_of(const IndexSpec& spec) {
  IndexOptions options;
  for (const std::string& option : spec.options) {
    const std::size_t end = option.find('=');
    if (end == std::string::npos)
      throw Error(
          Errc::invalid_argument,
          fmt::format("--option {} is not NAME=VALUE; `perdix engines` lists names", option));
    const std::string name = option.substr(0, end);
    if (!options.named.emplace(name, option.substr(end + 1)).second)
      throw Error(Errc::invalid_argument, fmt::format("--option {} is given twice", name));
  }
  return options;
}

}  // namespace

std::unique_ptr<Index> open_or_create(const Pool& pool, const std::string& name,
                                      const IndexSpec& spec) {
  const std::vector<IndexInfo> existing = pool.indexes();
  const auto found = std::ranges::find(existing, name, &IndexInfo::name);
  IndexInfo info =
      found != existing.end() ? *found : IndexInfo{name, "sptree", Kind::bytes, Kind::bytes};
  info.engine = spec.engine.value_or(info.engine);
  info.key_kind = spec.keys.value_or(info.key_kind);
  info.value_kind = spec.values.value_or(info.value_kind);
  return Index::open_or_create(pool, info, options_of(spec));
}

}  // namespace perdix::tool
