// The wish of one thread to be durable: lines that it has flushed, and the stores of its commit.
#pragma once

#include <cstddef>
#include <span>

#include "pm/change.h"
#include "pm/page_notes.h"

namespace perdix::detail::pm {

/// Lies on the stack of the thread that waits for it.
struct SyncRequest {
  std::span<const MemoryRange> ranges;  // whole lines
  std::span<const Change> changes;      // made after the sync, as if they had been part of it
  SyncRequest* next = nullptr;
  bool done = false;
};

}  // namespace perdix::detail::pm
