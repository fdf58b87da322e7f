// A pool's memory for unit tests: anonymous memory, with a limit that stands for a full disk.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include <perdix/error.h>

#include "alloc/calloc.h"

namespace perdix::detail::alloc {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class TestSpace final : public Space {
 public:
  explicit TestSpace(std::uint64_t max_size, pm::Domain domain = pm::Domain::cpu_cache)
      : max_size_(max_size), pm_(domain, domain != pm::Domain::cpu_cache) {
    void* memory = ::mmap(nullptr, max_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
  }
  ~TestSpace() override { ::munmap(base_, max_size_); }
  TestSpace(const TestSpace&) = delete;
  TestSpace& operator=(const TestSpace&) = delete;

  std::byte* base() const override { return base_; }
  std::uint64_t size() const override { return size_; }
  std::uint64_t max_size() const override { return max_size_; }
  void extend(std::uint64_t new_size) override {
    if (new_size > limit_) throw Error(Errc::out_of_space, "the test's disk is full");
    size_ = new_size;
  }
  void prepare(Offset, std::uint64_t bytes) override { prepared_ += bytes; }
  const pm::Persister& pm() const override { return pm_; }
  epoch::Reclaimer& reclaimer() const override { return reclaimer_; }

  void set_size(std::uint64_t size) { size_ = size; }

  /// The disk has room for this many bytes.
  void set_limit(std::uint64_t limit) { limit_ = limit; }
  std::uint64_t prepared() const { return prepared_; }

  template <class T>
  T& at(Offset offset) const {
    return *reinterpret_cast<T*>(base_ + offset);
  }

 private:
  std::uint64_t max_size_;
  std::uint64_t size_ = kChunkSize;
  std::uint64_t limit_ = ~std::uint64_t{0};
  std::uint64_t prepared_ = 0;
  std::byte* base_ = nullptr;
  pm::Persister pm_;
  mutable epoch::Reclaimer reclaimer_;
};

/// A word in the pool's own area, for tests to link blocks to.
inline std::uint64_t& root(const TestSpace& space, unsigned i = 0) {
  return space.at<std::uint64_t>(4096 + i * sizeof(std::uint64_t));
}

/// Allocates a block and links it to a word, crash-atomically.
inline Offset allocate(Calloc& calloc, const TestSpace& space, std::size_t bytes,
                       std::uint64_t& word) {
  Session session = calloc.session();
  const Offset block = session.reserve(bytes);
  session.commit_when(word, ~std::uint64_t{0}, block);
  session.log();
  space.pm().publish(word, block);  // the commit
  session.finish();
  return block;
}

/// Frees the block that a word links to.
inline void deallocate(Calloc& calloc, const TestSpace& space, std::uint64_t& word) {
  Session session = calloc.session();
  session.free(word);
  session.commit_when(word, ~std::uint64_t{0}, 0);
  session.log();
  space.pm().publish(word, 0);  // the commit
  session.finish();
}

/// Allocates without a link: for tests that remember the block themselves.
inline Offset allocate(Calloc& calloc, std::size_t bytes) {
  Session session = calloc.session();
  const Offset block = session.reserve(bytes);
  session.log();
  session.finish();
  return block;
}

inline void deallocate(Calloc& calloc, Offset block) {
  Session session = calloc.session();
  session.free(block);
  session.log();
  session.finish();
}

inline std::vector<Offset> blocks_of(const Calloc& calloc) {
  std::vector<Offset> blocks;
  calloc.for_each_allocated([&](Offset block, std::uint64_t) { blocks.push_back(block); });
  return blocks;
}

/// What is left when the process is killed now: all stores, nothing of DRAM.
inline std::unique_ptr<TestSpace> kill_copy(const TestSpace& space) {
  auto copy = std::make_unique<TestSpace>(space.max_size());
  copy->set_size(space.size());
  constexpr std::uint64_t kPage = 4096;
  static constexpr std::array<std::byte, kPage> kZeros{};
  for (Offset page = 0; page < space.size(); page += kPage) {
    if (std::memcmp(space.base() + page, kZeros.data(), kPage) == 0) continue;
    std::memcpy(copy->base() + page, space.base() + page, kPage);
  }
  return copy;
}

}  // namespace perdix::detail::alloc
