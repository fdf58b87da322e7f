// Blocks that were freed and may still be read, but only by sections (epoch::Guard) that began
// before: a structure retires a block when no new reader can reach it (alloc/session.h, R4).
//
// A probe tells it of sections, and of what is freed and reused. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

namespace perdix::testing {

class RetiredBlocks {
 public:
  /// The calling thread begins a section.
  void begin_section();

  void retired(const void* p, std::size_t n);
  void reclaimed(const void* p);

  /// Whether the calling thread may read there. One that never began a section may.
  bool may_read(const void* p, std::size_t n) const;

 private:
  using Address = std::uintptr_t;
  struct Block {
    Address end;
    std::uint64_t retired;
  };

  mutable std::mutex mutex_;
  std::uint64_t now_ = 0;  // how many blocks were retired
  std::map<Address, Block> blocks_;
  std::map<std::thread::id, std::uint64_t> sections_;  // when the last one of a thread began
};

}  // namespace perdix::testing
