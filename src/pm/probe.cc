#include "pm/probe.h"

#ifdef PERDIX_INSTRUMENTED

namespace perdix::pm {

Probe* install_probe(Probe* probe) noexcept {
  return internal::probe.exchange(probe, std::memory_order_acq_rel);
}

}  // namespace perdix::pm

#endif
