// A fork of a process with readers: the child must neither wait for readers that it does not have,
// nor find locks that no thread will release.
#pragma once

namespace perdix::detail::epoch {

/// Waits until no grace period is ending, and has none end before the fork is over. False, and
/// nothing has happened, if the thread is in a Guard: a grace period may be waiting for it.
bool stop_for_fork() noexcept;

/// After the fork, if it was stopped.
void go_on_in_parent() noexcept;
void go_on_in_child() noexcept;

}  // namespace perdix::detail::epoch
