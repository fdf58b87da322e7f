// Who changes the layers above the leaves: one writer at a time, by flat combining (Hendler et al.
// 2010). A thread publishes its request and tries the lock; if that fails, the lock holder, or the
// next thread to get the lock, applies it. So no thread waits for a suspended writer. But while a
// writer is suspended, requests and the leaves that they retire accumulate, and a search walks by
// `next` over all that has been split since.
//
// Invariants:
//   1. A change that lacks memory is kept with its request, and made with a later one.
//   2. The memory of a request is taken before the structure modification that it reports
//   (prepare()). So submit() cannot fail.
//
// Thread-safe. Callers of submit() hold an epoch::Guard.
#pragma once

#include <atomic>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "epoch/reclaimer.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/signposts.h"
#include "index/nbtree/top.h"
#include "pm/probe.h"
#include "util/arena.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::nbtree {

/// A change of the layers that a thread requests: see TopWriter::submit().
template <class K>
struct Request {
  Position<K>* position = nullptr;
  View<K> low{};  // of the position, whose anchor may be another's when this is applied
  TopChange what = kRenew;
  Leaf<K>* former = nullptr;
  Request* next = nullptr;  // in the stack of requests
};

template <class K>
class TopWriter {
 public:
  /// Disposes of a position, or of a leaf, that is out of reach of new readers.
  using Release = void (*)(void* object, void* context);

  /// `signposts`: are told of what is added and removed; null: none are.
  TopWriter(TopLayer<K>& layer, Signposts<K>* signposts, util::Arena& arena,
            epoch::Reclaimer& reclaimer, Release release, Release release_leaf, void* context)
      : layer_(layer),
        signposts_(signposts),
        arena_(arena),
        reclaimer_(reclaimer),
        release_(release),
        release_leaf_(release_leaf),
        context_(context) {}
  /// Releases the positions that could not be removed for want of memory.
  ~TopWriter();
  TopWriter(const TopWriter&) = delete;
  TopWriter& operator=(const TopWriter&) = delete;

  /// Takes the memory of a request. Throws std::bad_alloc. The caller passes it to submit(), or
  /// gives it back by take_back().
  Request<K>* prepare() { return new (arena_.allocate(sizeof(Request<K>))) Request<K>; }
  void take_back(Request<K>* prepared) { arena_.release(prepared, sizeof *prepared); }

  /// Requests a change, and applies it unless another thread does:
  ///   kAdd     the position is found from now on. If another position has the same low bound, that
  ///            one is no longer in the list, and is replaced.
  ///   kRemove  the position is not found any more, and is released. `former` was its leaf.
  ///   kRenew   the position's leaf is another one now. `former` was its leaf.
  /// `former` is retired when no search finds it any more. A position is added once and removed
  /// once, and the requests may be applied in any order. The first position of all is never
  /// removed.
  void submit(Request<K>* prepared, Position<K>& position, TopChange what,
              Leaf<K>* former = nullptr);

  /// Stores the leaves of these positions, which were cold, so that searches find them. Does
  /// nothing if another thread is writing: searches then read the position.
  void renew(std::span<Position<K>* const> positions);

 private:
  static constexpr unsigned kBoth = kAdd | kRemove;

  void retire(Leaf<K>* leaf) { reclaimer_.retire(leaf, release_leaf_, context_); }
  void apply_all();
  void apply_deferred();
  bool try_apply(Request<K>& request);
  void apply(Request<K>& request);
  unsigned change_for(const Request<K>& request, unsigned state);
  void note(const Request<K>& request) {
    if (signposts_ != nullptr) signposts_->note(request.low, request.position->anchor());
  }

  TopLayer<K>& layer_;
  Signposts<K>* const signposts_;
  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  const Release release_;
  const Release release_leaf_;
  void* const context_;
  std::atomic<Request<K>*> requests_{nullptr};  // a stack, taken as a whole
  util::SpinLock writer_;
  Request<K>* deferred_ = nullptr;  // a stack of requests that lacked memory; the writer's
};

template <class K>
TopWriter<K>::~TopWriter() {
  // Releases the positions that are removed. At most one request of a position is deferred: kRemove
  // needs memory only if kAdd was applied.
  while (Request<K>* request = deferred_) {
    deferred_ = request->next;
    const bool removed = (request->position->top_state() & kRemove) != 0;
    if (request->what == kRemove || removed) release_(request->position, context_);
    take_back(request);
  }
}

template <class K>
void TopWriter<K>::submit(Request<K>* prepared, Position<K>& position, TopChange what,
                          Leaf<K>* former) {
  if (what == kRenew && !position.add_pending_request(kBoth)) {
    // Out of the tree, and perhaps out of reach once the caller's guard ends.
    pm::on_step("nbtree: a position goes before its leaf is renewed");
    take_back(prepared);
    return retire(former);
  }
  *prepared = {&position, position.low(), what, former, requests_.load(std::memory_order_relaxed)};
  pm::on_step("nbtree: leave a request");
  while (!requests_.compare_exchange_weak(prepared->next, prepared)) {
  }
  apply_all();
}

template <class K>
void TopWriter<K>::apply_all() {
  // Looks again after unlocking: a thread that found the lock held has left its request to this
  // one.
  while (requests_.load() != nullptr) {
    if (!writer_.try_lock()) {
      pm::on_step("nbtree: leave a request to another");
      return;
    }
    const std::lock_guard lock(writer_, std::adopt_lock);
    apply_deferred();
    Request<K>* request = requests_.exchange(nullptr);
    while (request != nullptr) {
      Request<K>* next = request->next;
      if (!try_apply(*request)) {
        // Until it is applied, `next` of the leaf at the left leads to the position.
        request->next = deferred_;
        deferred_ = request;
      }
      request = next;
    }
  }
}

/// Applies the requests that lacked memory, until one does so again.
template <class K>
void TopWriter<K>::apply_deferred() {
  while (Request<K>* request = deferred_) {
    Request<K>* next = request->next;
    if (!try_apply(*request)) return;
    deferred_ = next;
  }
}

/// Applies a request and takes its memory back. False, and nothing has changed, if there is no
/// memory for what it needs.
template <class K>
bool TopWriter<K>::try_apply(Request<K>& request) {
  try {
    apply(request);
  } catch (const std::bad_alloc&) {
    return false;
  }
  take_back(&request);
  return true;
}

template <class K>
void TopWriter<K>::apply(Request<K>& request) {
  Position<K>& position = *request.position;
  if (request.former != nullptr) {
    layer_.renew(position, request.low);  // so no search finds the former leaf any more
    retire(std::exchange(request.former, nullptr));
  }
  const unsigned state = change_for(request, position.top_state() | request.what);
  position.add_top_state(state);  // after the change: a position that is removed is found nowhere
  if (request.what == kRenew) position.drop_pending_request();
  // Both kAdd and kRemove were requested and no request is pending, so none will name it any more.
  if ((state & kBoth) == kBoth && !position.has_pending_requests())
    reclaimer_.retire(&position, release_, context_);
}

/// Adds or removes the request's position, as its state allows. Returns its state after that.
template <class K>
unsigned TopWriter<K>::change_for(const Request<K>& request, unsigned state) {
  const Position<K>& position = *request.position;
  const unsigned applied = state & ~kBoth;
  if (request.what == kAdd && applied == 0) {
    // A position that was joined before it was added is not added: another position may have its
    // bound by now.
    if (position.leaf.load() == nullptr) {
      pm::on_step("nbtree: a position goes before it comes");
      return state | kAdded | kRemoved;
    }
    if (Position<K>* displaced = layer_.add(position, request.low)) {
      pm::on_step("nbtree: a position succeeds one that is gone");
      displaced->add_top_state(kRemoved);
    }
    note(request);
    return state | kAdded;
  }
  if (request.what == kRemove && applied == kAdded) {
    layer_.remove(request.low);
    note(request);
    return state | kRemoved;
  }
  return state;
}

template <class K>
void TopWriter<K>::renew(std::span<Position<K>* const> positions) {
  {
    const std::unique_lock lock(writer_, std::try_to_lock);
    if (!lock) return;
    for (const Position<K>* position : positions) layer_.renew(*position, position->low());
  }
  apply_all();  // what other threads have left to this one
}

}  // namespace perdix::detail::index::nbtree
