#include "storm/board.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>

namespace perdix::test::storm {
namespace {

std::size_t bytes_of_model(const IndexPlan& index) {
  return alignof(HotCell) + kHotKeys * sizeof(HotCell) + std::size_t{index.count} * sizeof(Cell);
}

std::size_t bytes_of_ground(const Episode& episode) {
  std::size_t bytes = sizeof(Board);
  for (const IndexPlan& index : episode.indexes) bytes += bytes_of_model(index) + 64;
  return bytes;
}

}  // namespace

bool any(const ByPool& facts) {
  return std::any_of(facts.begin(), facts.end(), [](const auto& fact) { return fact.load(); });
}

Shared::Shared(std::size_t bytes)
    : bytes_(bytes),
      data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (data_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
}

Shared::~Shared() { ::munmap(data_, bytes_); }

// Zeroed memory is a model without keys, so cells are only given their places.
Ground::Ground(const Episode& episode)
    : memory_(bytes_of_ground(episode)), board_(new (memory_.data()) Board) {
  auto* at = reinterpret_cast<std::byte*>(board_ + 1);
  for (const IndexPlan& index : episode.indexes) {
    at += 64 - reinterpret_cast<std::uintptr_t>(at) % 64;
    IndexModel model;
    model.hot = reinterpret_cast<HotCell*>(at);
    model.cells = reinterpret_cast<Cell*>(model.hot + kHotKeys);
    models_.push_back(model);
    at += bytes_of_model(index);
  }
}

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

void require(bool condition, const std::string& what) {
  if (!condition) throw Finding(what);
}

}  // namespace perdix::test::storm
