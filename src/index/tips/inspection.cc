#include "index/tips/inspection.h"

#include "index/tips/damage.h"
#include "index/tips/reach.h"

namespace perdix::detail::index::tips {

bool Inspection::run(const std::stop_token& stop) {
  if (is_done()) return true;
  Reach reach(pool_, guest_.kinds(), nullptr, stop);
  if (!guest_.inspect(reach)) {
    if (stop.stop_requested()) return false;
    throw_damaged_part(pool_, "the plugged-in index");
  }
  resumption_.set_done();  // before any replay
  return true;
}

void Inspection::run_if_small() {
  constexpr std::uint64_t kFew = 10'000;
  const bool small = guest_.size() <= pm::limit("tips: pairs inspected on opening", kFew);
  if (small || !guest_.facts().doubts) run();
}

bool Inspection::find_doubting(Word key, Word& value) const {
  Trail trail;
  const Way way(pool_, guest_.kinds(), trail);
  const bool found = guest_.find_doubting(way, key, &value);
  if (!way.is_damaged() && (!found || way.value(value))) return found;
  // What replay changes during the inspection may look like damage.
  if (is_done()) return guest_.find(key, &value);
  throw_damaged_part(pool_, "the plugged-in index");
}

}  // namespace perdix::detail::index::tips
