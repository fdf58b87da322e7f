// Changing bits of a word in PM whose other bits may change at the same time.
#pragma once

#include <cstdint>

#include "alloc/session.h"
#include "pm/access.h"
#include "pm/change.h"
#include "pm/persist.h"

namespace perdix::detail::index::elimda {

/// Whether other threads may change other bits of a word during a change.
enum class Shared : bool { no, yes };

/// Atomic. Not durable before a flush and a fence. False if the bits were like that already.
inline bool change_bits(const pm::Persister& pm, const pm::Change& change) {
  std::uint64_t before = pm::load(*change.word);
  while ((before & change.mask) != change.value) {
    if (pm.compare_exchange(*change.word, before, change.of(before))) return true;
  }
  return false;
}

/// Changes some bits of a word, which no other thread changes at the same time. All that this
/// thread has flushed is durable before the change, and the change is durable when this returns. A
/// word that is not shared is stored: that does not wait for its line, as a compare-and-swap does.
inline void commit_bits(const pm::Persister& pm, const pm::Change& change,
                        Shared shared = Shared::yes) {
  if (pm.commits_as_one()) return pm.commit({&change, 1});
  pm.fence();  // what was flushed comes first
  if (shared == Shared::yes)
    change_bits(pm, change);
  else
    pm.store(*change.word, change.of(pm::load(*change.word)));
  pm.persist(change.word, sizeof *change.word);  // the commit
}

/// Like the other one, where the change is also the commit of an allocator session. Calls unlink()
/// when the change is durable and before the grace period of freed blocks begins (alloc/session.h,
/// R4). The session is finished when this returns.
template <class Unlink>
void commit_bits(const pm::Persister& pm, alloc::Session& session, const pm::Change& change,
                 Unlink unlink) {
  if (pm.commits_as_one()) return session.commit_as_one({&change, 1}, unlink);
  session.commit_when(*change.word, change.mask, change.value);
  session.log();
  change_bits(pm, change);
  pm.persist(change.word, sizeof *change.word);  // the commit, before blocks are marked free
  session.finish(unlink);
}

}  // namespace perdix::detail::index::elimda
