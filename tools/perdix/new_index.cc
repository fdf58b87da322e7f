#include "perdix/new_index.h"

#include <algorithm>

#include <perdix/error.h>

namespace perdix::tool {

NewIndex::NewIndex(Pool& pool, const std::string& name)
    : pool_(pool),
      name_(name),
      is_new_(std::ranges::count(pool.indexes(), name, &IndexInfo::name) == 0) {}

NewIndex::~NewIndex() {
  if (!is_new_) return;
  try {
    pool_.drop(name_);
  } catch (const Error&) {
    // The command failed before it created the index, or so badly that it can't be dropped.
  }
}

}  // namespace perdix::tool
