// The memory that an allocator divides: one growing range, which the pool provides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/layout.h"
#include "epoch/reclaimer.h"
#include "pm/persist.h"

namespace perdix::detail::alloc {

/// Used on cold paths only, and by one thread at a time. The range stays where it is for the life
/// of the Space.
class Space {
 public:
  virtual ~Space() = default;

  /// Address of offset 0; aligned to pages.
  virtual std::byte* base() const = 0;

  /// Bytes that can be used, a multiple of kChunkSize.
  virtual std::uint64_t size() const = 0;

  /// The size can't grow beyond this.
  virtual std::uint64_t max_size() const = 0;

  /// Makes [size(), new_size) usable, with space that is really allocated, and durable as part of
  /// the pool. Throws Errc::out_of_space or io_error, and then nothing has changed.
  virtual void extend(std::uint64_t new_size) = 0;

  /// Gives [offset, offset + bytes), which is part of the range, its space if the file has a hole
  /// there: free chunks of a copy that skipped zeros. False if there is none, and then nothing has
  /// changed.
  virtual bool provide(Offset /*offset*/, std::uint64_t /*bytes*/) { return true; }

  /// Says that [offset, offset + bytes) will be written soon, for example so that its pages are
  /// touched in advance.
  virtual void prepare(Offset /*offset*/, std::uint64_t /*bytes*/) {}

  virtual const pm::Persister& pm() const = 0;
  virtual epoch::Reclaimer& reclaimer() const = 0;
};

}  // namespace perdix::detail::alloc
