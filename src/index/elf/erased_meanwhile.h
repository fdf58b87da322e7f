// TIDs of rows that are erased while a compact runs, which may have read them before.
//
// Guarded by the mutex of a table's writers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "index/elf/node.h"

namespace perdix::detail::index::elf {

class ErasedMeanwhile {
 public:
  /// The end of the noting, in whatever way a compact ends. Locks the writers' mutex for it.
  class EndOfNoting {
   public:
    EndOfNoting(ErasedMeanwhile& erased, std::mutex& writers)
        : erased_(erased), writers_(writers) {}
    EndOfNoting(const EndOfNoting&) = delete;
    EndOfNoting& operator=(const EndOfNoting&) = delete;
    ~EndOfNoting() {
      const std::lock_guard lock(writers_);
      erased_.end();
    }

   private:
    ErasedMeanwhile& erased_;
    std::mutex& writers_;
  };

  /// From now on erases are noted, until an EndOfNoting.
  void begin() {
    noting_ = true;
    tids_.clear();
  }

  /// Has room for one more TID, so that nothing can fail once the row is erased.
  void prepare() {
    if (noting_ && tids_.size() == tids_.capacity())
      tids_.reserve(std::max<std::size_t>(64, 2 * tids_.size()));
  }

  void note(Tid tid) {
    if (noting_) tids_.push_back(tid);
  }

  std::size_t size() const { return tids_.size(); }

  /// Those that were noted since the last call.
  std::vector<Tid> take() { return std::exchange(tids_, {}); }

 private:
  void end() {
    noting_ = false;
    tids_ = std::vector<Tid>();  // {} would keep the memory
  }

  bool noting_ = false;
  std::vector<Tid> tids_;
};

}  // namespace perdix::detail::index::elf
