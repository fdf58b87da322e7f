#include "alloc/topology.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace perdix::detail::alloc {
namespace {

unsigned node_of_thread() {
  unsigned cpu = 0;
  unsigned node = 0;
  ::getcpu(&cpu, &node);  // fails only for bad addresses
  return node;
}

}  // namespace

Topology Topology::system() noexcept {
  constexpr unsigned long kMemsAllowed = 4;  // MPOL_F_MEMS_ALLOWED of <linux/mempolicy.h>
  constexpr unsigned kWordBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, 1024 / kWordBits> mask{};
  if (::syscall(SYS_get_mempolicy, nullptr, mask.data(), mask.size() * kWordBits, nullptr,
                kMemsAllowed) != 0) {
    return {};
  }
  unsigned nodes = 1;
  for (unsigned i = 0; i < mask.size() * kWordBits; ++i) {
    if (mask[i / kWordBits] >> (i % kWordBits) & 1) nodes = i + 1;
  }
  return {nodes, &node_of_thread};
}

}  // namespace perdix::detail::alloc
