#include "pm/no_fork.h"

namespace perdix::detail::pm {

std::mutex& NoFork::mutex() noexcept {
  static std::mutex instance;  // has no destructor to speak of: pools may close after all others
  return instance;
}

}  // namespace perdix::detail::pm
