// Space that a Tips index keeps for its replay, so that a full pool never lacks space for an
// acknowledged write.
//
//   Reserve::Admission admission(reserve, need);  // a put, before it is logged
//   if (!admission) ...                           // it goes into the index within its call
//   admission.keep();                             // it is logged, and waits for its replay
//   ...
//   session.reserve(bytes, reserve.claim());      // its replay, in a full pool
//   settling.add(need);                           // it was replayed
//
// The space is a claim on free spans of the pool (alloc/claim.h), each of which can be divided into
// blocks of one size class. So the reserve counts the blocks of each class that all waiting puts
// need, and claims as many spans as these fill. For a block above the largest class it claims as
// many spans as the block takes, which need not be neighbours: they become a run only if what lies
// between them is free, too.
//
// Invariants:
//   1. The claim has a span for each span that the blocks of all waiting puts may fill, but for
//      those which it has begun to hand out.
//   2. The index's word in the directory of the pool is at least as much, durably, before a put
//      that relies on it is logged. So after a crash the pool keeps the space before the index is
//      open.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "alloc/claim.h"
#include "alloc/size_class.h"
#include "index/tips/layout.h"
#include "index/tips/need.h"
#include "pool/pool_core.h"
#include "util/line.h"

namespace perdix::detail::index::tips {

class Reserve {
 public:
  /// `noted` is the index's word in the directory (PoolCore::claim_of()).
  Reserve(pool::PoolCore& pool, std::uint64_t& noted);
  ~Reserve();  ///< what waiting puts need stays claimed for the next opening
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  /// The space of a put, until keep() or the end: true if the put is admitted. False if the pool
  /// has no space for it, or if the need is too large. `alike`: all puts of the index need the
  /// same.
  class Admission {
   public:
    Admission(Reserve& reserve, const Need& need, bool alike = false)
        : reserve_(reserve),
          need_(need),
          admitted_(alike ? reserve.admit_alike(need) : reserve.admit(need)) {}
    ~Admission() {
      if (admitted_ && !kept_) reserve_.change(need_, -1);
    }
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;

    explicit operator bool() const { return admitted_; }
    void keep() { kept_ = true; }

   private:
    Reserve& reserve_;
    const Need need_;
    const bool admitted_;
    bool kept_ = false;
  };

  /// A put that was logged before this opening: it is admitted, whatever there is.
  void admit_logged(const Need& need) noexcept { change(need, 1); }

  /// Puts that were replayed: their needs are given up together, at the end.
  class Settling {
   public:
    explicit Settling(Reserve& reserve) : reserve_(reserve) {}
    ~Settling();
    Settling(const Settling&) = delete;
    Settling& operator=(const Settling&) = delete;

    void add(const Need& need) noexcept;

   private:
    Reserve& reserve_;
    std::int64_t runs_ = 0;  // spans
    std::array<std::int64_t, alloc::kClasses> counts_{};
  };

  /// What the replay of a put may take its need from, when the pool has no other space.
  alloc::Claim& claim() { return claim_; }

  /// Gives up what waiting puts do not need. `alike` is the need of puts that need the same.
  void release_spare(const Need& alike = {});

  /// Gives up all of it: the index is being dropped.
  void release_all();

 private:
  /// Puts that are admitted before they come, for the threads of some stripes: so that not each of
  /// them changes the counters of all.
  struct alignas(util::kCacheLine) Admitted {
    std::atomic<std::int64_t> puts{0};
  };

  bool admit(const Need& need);
  bool admit_alike(const Need& need);
  void change(const Need& need, std::int64_t puts) noexcept;
  std::int64_t change(unsigned size_class, std::int64_t blocks) noexcept;
  std::uint64_t missing() const;
  std::uint64_t spare() const;
  bool grow();
  bool raise(std::uint64_t spans);
  void lower(std::uint64_t spans);

  pool::PoolCore& pool_;
  std::uint64_t& noted_;
  alloc::Claim claim_;

  std::mutex mutex_;     // guards the size of the claim
  unsigned passes_ = 0;  // calls of grow() that do not try, since one has found no space

  std::array<Admitted, kLogs> admitted_;
  std::atomic<std::uint64_t> giving_up_{0};  // spans of the claim on which no put may rely
  std::atomic<std::int64_t> needed_{0};      // spans for all that is counted below
  std::array<std::atomic<std::int64_t>, alloc::kClasses> counts_{};  // blocks
};

}  // namespace perdix::detail::index::tips
