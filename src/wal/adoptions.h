// Surviving chains that were adopted, until the log is resumed and they are listed. Memory is taken
// before a chain is adopted, so that adopting can't fail. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

#include "wal/chain.h"
#include "wal/layout.h"
#include "wal/marks.h"

namespace perdix::detail::wal {

struct AdoptedChain {
  Generation generation;
  Position first;
  Chain* chain;
};

class Adoptions {
 public:
  /// Takes memory for one that add() or cancel() follows. Throws bad_alloc.
  void prepare() {
    const std::lock_guard guard(lock_);
    const std::size_t places = adopted_.size() + prepared_ + 1;
    if (places > adopted_.capacity()) adopted_.reserve(2 * places);
    ++prepared_;
  }
  void cancel() noexcept {
    const std::lock_guard guard(lock_);
    --prepared_;
  }
  void add(const AdoptedChain& adopted) noexcept {
    const std::lock_guard guard(lock_);
    --prepared_;
    adopted_.push_back(adopted);
  }

  /// Returns all that were added, the youngest first, and keeps none.
  std::vector<AdoptedChain> take() {
    std::vector<AdoptedChain> taken;
    {
      const std::lock_guard guard(lock_);
      taken.swap(adopted_);
    }
    std::sort(taken.begin(), taken.end(), [](const AdoptedChain& a, const AdoptedChain& b) {
      return a.generation > b.generation;
    });
    return taken;
  }

 private:
  std::mutex lock_;
  std::vector<AdoptedChain> adopted_;  // guarded by lock_; has room for those that are prepared
  std::size_t prepared_ = 0;           // guarded by lock_
};

}  // namespace perdix::detail::wal
