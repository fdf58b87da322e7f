#include "pm/probe.h"

#ifdef PERDIX_INSTRUMENTED

#include <atomic>

namespace perdix::pm {
namespace {
// The one exception to "no global state": a probe watches the process, and only instrumented builds
// have it.
std::atomic<Probe*> current_probe{nullptr};
}  // namespace

Probe* install_probe(Probe* probe) noexcept {
  return current_probe.exchange(probe, std::memory_order_acq_rel);
}

Probe* installed_probe() noexcept { return current_probe.load(std::memory_order_acquire); }

}  // namespace perdix::pm

#endif
