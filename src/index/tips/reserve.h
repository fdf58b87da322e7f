// Space that a Tips index keeps for its replay, so that a full pool never lacks space for an
// acknowledged write.
//
//   Reserve::Admission admission(reserve, need);  // a put, before it is logged
//   if (admission.answer() == no_space) ...       // it goes into the index within its call
//   admission.keep();                             // it is logged, and waits for its replay
//   ...
//   while (!replay()) if (!reserve.spend()) ...   // the pool is full: gives it a part of the space
//   reserve.settle(need);                         // it was replayed
//
// The reserve consists of allocated blocks of the size of a span, which a lane of the allocator
// divides into blocks of one size class. So it counts the blocks of each class that all waiting
// puts need, and has as many spans as these fill. It is in PM: after a crash it is there before the
// first replay. For a block above the largest class it has as many spans as the block takes, which
// need not be neighbours: they become a run only if what lies between them is free, too.
//
// Space that was spent is the allocator's until the replay has taken it block by block. A thread of
// another index that finds the pool full in this moment may get some of it. A put that lacks it
// then stays in its log, where lookups and scans find it, until the pool has space again.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "alloc/size_class.h"
#include "index/common/owned.h"
#include "index/tips/layout.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// The blocks that a put may need.
class Need {
 public:
  /// Blocks above the largest class take runs of spans.
  void add(std::uint64_t bytes, unsigned count) {
    if (bytes > alloc::kLargestClass) {
      spans_ += (bytes + alloc::kSpanSize - 1) / alloc::kSpanSize * count;
    } else {
      parts_[used_++] = {alloc::size_class_of(bytes), count};
    }
  }

  /// Spans in runs.
  std::uint64_t spans() const { return spans_; }

  template <class Use>
  void for_each(Use use) const {
    for (unsigned i = 0; i < used_; ++i) use(parts_[i].size_class, parts_[i].count);
  }

 private:
  static constexpr unsigned kMaxParts = 7;  // key, value, five kinds of nodes

  struct Part {
    unsigned size_class;
    unsigned count;
  };

  std::array<Part, kMaxParts> parts_{};
  unsigned used_ = 0;
  std::uint64_t spans_ = 0;
};

class Reserve {
 public:
  /// Checks the blocks. Throws corrupt.
  Reserve(pool::PoolCore& pool, Header& header);
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  enum class Answer {
    admitted,
    wait,      ///< too many puts wait for their replay
    no_space,  ///< the pool has none for the reserve, or the need is too large for it
  };

  /// The space of a put, until keep() or the end.
  class Admission {
   public:
    Admission(Reserve& reserve, const Need& need)
        : reserve_(reserve), need_(need), answer_(reserve.admit(need)) {}
    ~Admission() {
      if (answer_ == Answer::admitted && !kept_) reserve_.settle(need_);
    }
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;

    Answer answer() const { return answer_; }
    void keep() { kept_ = true; }

   private:
    Reserve& reserve_;
    const Need need_;
    const Answer answer_;
    bool kept_ = false;
  };

  /// A put that was logged before this opening: it is admitted, whatever there is.
  void admit_logged(const Need& need) noexcept { change(need, true); }

  /// A put has been replayed.
  void settle(const Need& need) noexcept { change(need, false); }

  /// Frees a block. False if there is none.
  bool spend();

  /// Frees the blocks that waiting puts do not need.
  void release_spare();

  /// Tells of all blocks. The counters stay as they are.
  void walk(Owned& owned) const;

 private:
  static constexpr std::int64_t kMaxBlocks = 64;
  static constexpr std::uint64_t kMaxRun = 16;  // spans in runs that one put may need

  Answer admit(const Need& need);
  void change(const Need& need, bool more) noexcept;
  bool is_enough() const { return needed_.load() <= held_.load(); }
  Answer grow();
  void push();
  void pop();

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  Header& header_;

  mutable std::mutex mutex_;  // guards the chain
  unsigned passes_ = 0;       // calls of grow() that do not try, since one has found no space

  std::atomic<std::int64_t> held_{0};    // blocks of the chain
  std::atomic<std::int64_t> needed_{0};  // spans for all that is counted below
  std::array<std::atomic<std::int64_t>, alloc::kClasses> counts_{};  // blocks
};

}  // namespace perdix::detail::index::tips
