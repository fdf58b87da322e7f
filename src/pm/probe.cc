#include "pm/probe.h"

#ifdef PERDIX_INSTRUMENTED

namespace perdix::detail::pm {

Probe* install_probe(Probe* probe) noexcept {
  internal::probe_of_reads.store(probe, std::memory_order_release);
  return internal::probe.exchange(probe, std::memory_order_acq_rel);
}

void watch_reads(bool watch) noexcept {
  internal::probe_of_reads.store(watch ? installed_probe() : nullptr, std::memory_order_release);
}

}  // namespace perdix::detail::pm

#endif
