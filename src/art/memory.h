// Where the tree's nodes live: the Memory policy, and the one for DRAM.
//
// A Memory is a copyable handle with
//   void* allocate(std::size_t bytes)
//     aligned to 64 if bytes is a multiple of 64, else to 16; throws if there is none
//   void release(void* memory, std::size_t bytes)
//     immediately: no reader has seen it, or no reader is left
//   template <class Node> void retire(Node* node)
//     after a grace period; Node is trivially destructible
#pragma once

#include <cstddef>
#include <type_traits>

#include "epoch/reclaimer.h"
#include "util/arena.h"

namespace perdix::detail::art {

/// Nodes in huge pages. Arena and reclaimer outlive the tree, and the reclaimer is drained before
/// the arena goes.
class DramMemory {
 public:
  DramMemory(util::Arena& arena, epoch::Reclaimer& reclaimer)
      : arena_(&arena), reclaimer_(&reclaimer) {}

  void* allocate(std::size_t bytes) { return arena_->allocate(bytes); }

  void release(void* memory, std::size_t bytes) noexcept { arena_->release(memory, bytes); }

  template <class Node>
  void retire(Node* node) noexcept {
    static_assert(std::is_trivially_destructible_v<Node>);
    reclaimer_->retire(
        node,
        [](void* object, void* arena) {
          static_cast<util::Arena*>(arena)->release(object, sizeof(Node));
        },
        arena_);
  }

 private:
  util::Arena* arena_;
  epoch::Reclaimer* reclaimer_;
};

}  // namespace perdix::detail::art
