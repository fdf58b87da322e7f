// NUMA nodes: how many there are and which one the current thread runs on.
#pragma once

namespace perdix::detail::alloc {

struct Topology {
  unsigned nodes = 1;  ///< at least 1
  unsigned (*current_node)() =
      nullptr;  ///< asked only if there are several nodes; may return any number

  /// Of this machine; one node where it can't be found out.
  static Topology system() noexcept;
};

}  // namespace perdix::detail::alloc
