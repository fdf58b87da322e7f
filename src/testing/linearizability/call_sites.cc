#include "testing/linearizability/call_sites.h"

namespace perdix::testing {

void CallSites::suppress(const std::string& site, Event::Kind kind) {
  const std::lock_guard lock(mutex_);
  suppressed_ = Suppression{sites_.number(site), kind};
}

bool CallSites::suppresses() const {
  const std::lock_guard lock(mutex_);
  return suppressed_.has_value();
}

bool CallSites::counts(const detail::pm::Site& site, Event::Kind kind) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = sites_.number(site);
  sites_.count(number, kind);
  return !suppressed_ || suppressed_->site != number || suppressed_->kind != kind;
}

std::vector<Sites::Use> CallSites::uses() const {
  const std::lock_guard lock(mutex_);
  return sites_.uses();
}

}  // namespace perdix::testing
