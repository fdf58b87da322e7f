#include "index/nbtree/resumer.h"

#include <array>
#include <mutex>

#include "epoch/guard.h"
#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

template <class K>
void Resumer<K>::start(bool in_background) {
  // Each operation with strings and each modification needs a stripe of the ledger: most of them
  // must be free.
  constexpr unsigned kMostOccupied = kOperationStripes / 2;
  if (ledger_.occupied(Ledger::Purpose::operation) > kMostOccupied ||
      ledger_.occupied(Ledger::Purpose::modification) > kMostOccupied)
    return require_resumed();
  if (!in_background) return;
  resumption_.start_thread([this](const std::stop_token& stop) {
    resume(stop);
    resolve_blocks();
  });
}

/// Makes all leaves warm, unless it is told to stop.
template <class K>
void Resumer<K>::resume(const std::stop_token& stop) {
  constexpr unsigned kLeavesPerGuard = 64;
  K from{};
  while (!stop.stop_requested()) {
    const epoch::Guard guard;
    Leaf<K>* leaf = locator_.locate(from).leaf;
    std::array<Position<K>*, kLeavesPerGuard> warm;
    unsigned count = 0;
    while (leaf != nullptr && leaf->next() != nullptr && count < warm.size()) {
      from = leaf->end();
      warm[count++] = leaf->next();
      leaf = cold_.leaf_of(*leaf->next());
    }
    pm::on_step("nbtree: resume some leaves");
    writer_.renew(std::span(warm.data(), count));
    if (leaf != nullptr && leaf->next() == nullptr) return resumption_.set_done();
  }
}

template <class K>
void Resumer<K>::require_resumed() {
  resumption_.wait_for_thread();
  if (!resumption_.done()) resume(std::stop_token());
  resolve_blocks();
}

/// Frees the blocks that a crash has left on their way into the index or out of it, once all leaves
/// are warm; then places of anchors, which may come free by that, become known.
template <class K>
void Resumer<K>::resolve_blocks() {
  // Under a Guard (of check(), for example) a thread must not wait for the lock: the lock's holder
  // may be waiting for that Guard.
  if (!resumption_.done() || epoch::Guard::held()) return;
  const std::lock_guard lock(resolving_);
  if (resolved_) return;
  if (has_unresolved()) {
    const bool interrupted = ledger_.occupied(Ledger::Purpose::modification) != 0;
    pool_.reclaimer().advance();  // after this no thread is late in making a leaf warm
    pm::on_step("nbtree: resolve what a crash has left");
    ledger_.resolve_all(Ledger::Purpose::modification);
    ledger_.resolve_all(Ledger::Purpose::operation);
    // A leaf that the crash has left frozen needs a block before anything in it can be erased: one
    // of those that have just been freed.
    if (interrupted) reserve_.fill();
  }
  ledger_.learn_places();
  signposts_.take_out_stale();
  resolved_ = true;
}

template <class K>
bool Resumer<K>::free_unresolved() {
  {
    const std::lock_guard lock(resolving_);
    if (resolved_ || !has_unresolved()) return false;
  }
  require_resumed();
  return true;
}

template class Resumer<std::uint64_t>;
template class Resumer<std::string>;

}  // namespace perdix::detail::index::nbtree
