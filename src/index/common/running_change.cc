#include "index/common/running_change.h"

#include <perdix/error.h>

namespace perdix::detail::index {

constinit thread_local RunningChange* innermost_change = nullptr;

void throw_nested_change() {
  throw Error(Errc::invalid_argument,
              "the function that update_with() calls can't change the key that it is called for; "
              "return the change in place of making it");
}

RunningChange::RunningChange(const void* index, std::string_view key)
    : index_(index), key_(key), outer_(innermost_change) {
  if (contains(outer_, index, key)) throw_nested_change();
  innermost_change = this;
}

RunningChange::~RunningChange() {
  RunningChange** at = &innermost_change;  // but for fibers, which end in any order
  while (*at != nullptr && *at != this) at = &(*at)->outer_;
  if (*at != nullptr) *at = outer_;
}

bool RunningChange::contains(const RunningChange* innermost, const void* index,
                             std::string_view key) {
  for (const RunningChange* run = innermost; run != nullptr; run = run->outer_)
    if (run->index_ == index && run->key_ == key) return true;
  return false;
}

}  // namespace perdix::detail::index
