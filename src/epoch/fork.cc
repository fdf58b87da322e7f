#include "epoch/fork.h"

#include <urcu/urcu-bp.h>

#include "epoch/guard.h"

namespace perdix::detail::epoch {

bool stop_for_fork() noexcept {
  if (Guard::held()) return false;
  urcu_bp_before_fork();
  return true;
}

void go_on_in_parent() noexcept { urcu_bp_after_fork_parent(); }

void go_on_in_child() noexcept { urcu_bp_after_fork_child(); }

}  // namespace perdix::detail::epoch
