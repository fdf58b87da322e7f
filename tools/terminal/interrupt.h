// Ctrl-C and SIGTERM set a flag. Long work checks it and stops between two steps.
#pragma once

#include <atomic>

namespace perdix::terminal {

/// From now on SIGINT and SIGTERM set the flag that is returned, and blocking system calls return
/// with EINTR. A second signal ends the process as if nothing had been installed.
const std::atomic<bool>& catch_interrupts();

}  // namespace perdix::terminal
