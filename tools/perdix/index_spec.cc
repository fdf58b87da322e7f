#include "perdix/index_spec.h"

#include <algorithm>

namespace perdix::tool {

std::unique_ptr<Index> open_or_create(const Pool& pool, const std::string& name,
                                      const IndexSpec& spec) {
  const std::vector<IndexInfo> existing = pool.indexes();
  const auto found = std::ranges::find(existing, name, &IndexInfo::name);
  IndexInfo info =
      found != existing.end() ? *found : IndexInfo{name, "sptree", Kind::bytes, Kind::bytes};
  info.engine = spec.engine.value_or(info.engine);
  info.key_kind = spec.keys.value_or(info.key_kind);
  info.value_kind = spec.values.value_or(info.value_kind);
  return Index::open_or_create(pool, info);
}

}  // namespace perdix::tool
