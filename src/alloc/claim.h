// A part of the pool's free space that is kept for one user: when the pool is full, only that user
// gets it.
//
//   Claim claim(allocator, 0);
//   claim.raise(16);                   // 16 spans; the pool grows if it has to
//   session.reserve(bytes, claim);     // a block of them, when reserve(bytes) has found no space
//   claim.lower(16);
//
// What is claimed is a number of free spans. A span that is taken from the claim for a small block
// stays the claim's own: only the claim hands out the rest of its blocks. So for each size it has
// as many blocks as fill its spans, whatever other users do meanwhile. A larger object takes a run
// of neighbouring spans, which the claim may lack though it has enough of them.
//
// The number is in DRAM. After a crash the pool keeps what its directory says (pool/layout.h).
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "alloc/record.h"
#include "alloc/span_cursor.h"

namespace perdix::detail::alloc {

class Calloc;

class Claim {
 public:
  /// Takes over spans that the allocator keeps already.
  Claim(Calloc& allocator, std::uint64_t spans) : allocator_(allocator), spans_(spans) {}
  ~Claim() { surrender(); }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  /// Free spans that are claimed.
  std::uint64_t spans() const { return spans_.load(std::memory_order_relaxed); }

  /// Claims more. Throws out_of_space, and then nothing has changed. The caller holds no Session.
  void raise(std::uint64_t spans);

  /// Gives free spans up, of those that there are.
  void lower(std::uint64_t spans) noexcept;

  /// Gives the spans up of which the claim has handed out blocks.
  void surrender() noexcept;

 private:
  friend class Session;

  BlockRef take(std::uint64_t bytes, Block& block);
  BlockRef take_run(std::uint64_t bytes, Block& block);
  void require(std::uint64_t spans) const;

  Calloc& allocator_;
  std::atomic<std::uint64_t> spans_;

  std::mutex mutex_;  // guards what follows
  std::array<SpanCursor, kClasses> cursors_{};
};

}  // namespace perdix::detail::alloc
