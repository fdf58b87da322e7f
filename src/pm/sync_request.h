// The wish of one thread to be durable: lines that it has flushed, and the stores of its commit.
#pragma once

#include <cstddef>
#include <span>

#include "pm/change.h"
#include "pm/page_notes.h"
#include "pm/turn.h"

namespace perdix::detail::pm {

/// Lies on the stack of the thread that waits for it.
struct SyncRequest {
  std::span<const MemoryRange> ranges;  // whole lines
  std::span<const Change> changes;      // made after the sync, as if they had been part of it
  SyncRequest* next = nullptr;
  Turn turn = {};
};

}  // namespace perdix::detail::pm
