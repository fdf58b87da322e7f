// Open pools at a fork: the parent keeps them, the child has none.
//
// A pool's file is locked by its open file description, and the kernel frees such a lock when the
// last descriptor *and the last mapping* of it is gone, in whatever process. So a child must have
// neither: mappings are not inherited (pm::Mapping), descriptors are closed in the child before
// fork() returns there. For that, the descriptors of all open pools are listed in one place for the
// process, where a handler of pthread_atfork() finds them: such a handler has no argument. This
// list, NoFork's lock and what the handler of SIGBUS needs (lost_pages.h) are the only global state
// of the library. (Without it, each pool would
// need a thread with a separate table of descriptors, and an opening would fail where no such
// thread is available.)
//
// A fork also waits for threads in a pm::NoFork, and for the end of a grace period. In the child
// liburcu then forgets the readers that do not exist there.
//
// A child of a bare clone() or _Fork() runs no handlers: such a child holds the lock until it ends
// or executes another program, but finds the pool unusable (Health) as any other. posix_spawn(),
// system() and vfork() share memory until they execute, and are not concerned: descriptors close on
// exec.
#pragma once

#include "pm/descriptor.h"
#include "pm/no_fork.h"

namespace perdix::detail::pool {

/// From now on forks go as described. Throws forked in a process that was forked by a thread in a
/// Guard: the state of the readers is unknown in it, and pools can't be used.
void prepare_for_forks();

/// Has the descriptor closed in children, if it still is ours. No room for it: bad_alloc.
void close_in_children(const pm::Descriptor& descriptor, const pm::NoFork& no_fork);

/// No more.
void leave_to_children(const pm::Descriptor& descriptor) noexcept;

/// Gives an object up in a child that inherited it: it is neither destroyed nor freed, since other
/// threads, which the child has not, may have been at work in it, and their locks, waits and
/// mappings are no good to it. It stays reachable, as checkers of leaks want it.
void leave_to_parent(const void* object) noexcept;

}  // namespace perdix::detail::pool
