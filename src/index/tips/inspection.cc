// The first inspection of an index after it was opened.
//
// The file may hold anything, and plug-ins follow addresses. So the index is inspected before the
// first replay, scan or count, in time proportional to its nodes. A small index is inspected
// immediately, a larger one by a separate thread. Until then each lookup inspects the nodes on its
// way, and writes wait in the logs.
#include "index/tips/core.h"
#include "index/tips/damage.h"
#include "index/tips/reach.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// With replaying_, or before the index is used. False if the stop came first.
bool Core::inspect(const std::stop_token& stop) const {
  if (is_inspected()) return true;
  Reach reach(pool_, kinds_, nullptr, stop);
  if (!plugin_.inspect(index_, reach)) {
    if (stop.stop_requested()) return false;
    throw_damaged_part(pool_, "the plugged-in index");
  }
  inspected_.store(true, std::memory_order_release);  // before any replay
  resumption_.set_done();
  return true;
}

/// An index of a few pairs is inspected here and now, and one whose lookups can't doubt.
void Core::inspect_if_small() const {
  constexpr std::uint64_t kFew = 10'000;
  const std::uint64_t size = plugin_.size(index_);
  const bool small = size <= pm::limit("tips: pairs inspected on opening", kFew);
  if (small || !plugin_.facts().doubts) inspect({});
}

/// Under a probe the first call that needs it inspects.
void Core::start_inspection() {
  if (is_inspected() || !settings_.resumes || !pm::background_work()) return;
  resumption_.start_thread([this](const std::stop_token& stop) {
    {
      const std::lock_guard lock(replaying_);
      if (!inspect(stop)) return;
    }
    replay_in_background();
  });
}

bool Core::find_doubting(Word key, Word& value) const {
  const Way way(pool_, kinds_);
  const bool found = plugin_.find_doubting(index_, way, key, &value);
  if (!way.is_damaged() && (!found || way.value(value))) return found;
  // What replay changes during the inspection may look like damage.
  if (is_inspected()) return plugin_.find(index_, key, &value);
  throw_damaged_part(pool_, "the plugged-in index");
}

}  // namespace perdix::detail::index::tips
