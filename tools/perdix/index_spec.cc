#include "perdix/index_wishes.h"

#include <algorithm>

namespace perdix::tool {

std::unique_ptr<Index> open_or_create(const Pool& pool, const std::string& name,
                                      const IndexWishes& wishes) {
  const std::vector<IndexInfo> existing = pool.indexes();
  const auto found = std::ranges::find(existing, name, &IndexInfo::name);
  IndexInfo info =
      found != existing.end() ? *found : IndexInfo{name, "sptree", Kind::bytes, Kind::bytes};
  info.engine = wishes.engine.value_or(info.engine);
  info.key_kind = wishes.keys.value_or(info.key_kind);
  info.value_kind = wishes.values.value_or(info.value_kind);
  return Index::open_or_create(pool, info);
}

}  // namespace perdix::tool
