// Lookups in the plugged-in index, and its first inspection after it was opened.
//
// The file may hold anything, and plug-ins follow addresses. So the index is inspected before the
// first replay, scan or count, in time proportional to its nodes. A small index is inspected
// immediately, a larger one by a separate thread. Until then each lookup inspects the nodes on its
// way, and writes wait in the logs.
//
// Invariant: once is_done() is true, each node and each string that the index leads to is a block
// of the pool, unless a plug-in has contradicted itself since.
//
// Thread-safe, but for the calls that say otherwise.
#pragma once

#include <stop_token>
#include <string_view>
#include <utility>

#include "index/common/resumption.h"
#include "index/tips/guest.h"
#include "index/tips/uno.h"
#include "index/tips/words.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Inspection {
 public:
  Inspection(pool::PoolCore& pool, const Guest& guest, const Uno& uno)
      : pool_(pool), guest_(guest), uno_(uno) {}

  /// Whether all of the index was inspected.
  bool is_done() const { return resumption_.done(); }

  /// Calls use(value), its bytes, if the index has the key. The caller is in an epoch::Guard, as
  /// long as it uses them. Throws corrupt, and what Uno::require_whole() throws.
  template <class Use>
  bool find(std::string_view key, const Use& use) const {
    const KeyWord wanted(key, guest_.kinds().key);
    Word value = 0;
    const bool found =
        is_done() ? guest_.find(wanted.word(), &value) : find_doubting(wanted.word(), value);
    guest_.report();
    uno_.require_whole();
    if (found) use(bytes_of(value, guest_.kinds().value));
    return found;
  }

  /// Inspects the index unless that was done. False if the stop came first. The index does not
  /// change meanwhile, and no other thread inspects it. Throws corrupt.
  bool run(const std::stop_token& stop = {});

  /// Inspects an index of a few pairs, and one whose lookups can't doubt. As run().
  void run_if_small();

  /// Runs work(stop_token) on a separate thread, which inspects; until stop(), if that comes first.
  /// Not thread-safe.
  template <class Work>
  void start(Work work) noexcept {
    resumption_.start_thread(std::move(work));
  }
  void stop() { resumption_.stop(); }

  /// From the opening until it was done; 0 before.
  double seconds() const { return resumption_.seconds(); }

 private:
  bool find_doubting(Word key, Word& value) const;

  pool::PoolCore& pool_;
  const Guest& guest_;
  const Uno& uno_;
  Resumption resumption_;
};

}  // namespace perdix::detail::index::tips
