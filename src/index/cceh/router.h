// The way to a segment: the directory, and the latches of segments in DRAM
// (index/common/latches.h). Writers hold the latch of the segment that they change; readers take
// none, but validate its version.
//
// look() takes the version of a segment and then reads the directory again. So the segment is the
// one of the hash as long as its version is the same. Thread-safe. The caller holds an
// epoch::Guard.
#pragma once

#include <cstdint>

#include "index/cceh/directory.h"
#include "index/cceh/layout.h"
#include "index/cceh/shape.h"
#include "index/common/buffered.h"
#include "index/common/latches.h"

namespace perdix::detail::index::cceh {

/// A segment with its latch's version, from before anything was read of it. Without an offset it is
/// the root block, whose pair has no segment (H7). What was read of it counts if it is valid()
/// afterwards.
struct SeenSegment {
  Entry entry;
  HashRange range;
  Latch* latch = nullptr;
  std::uint64_t version = 0;

  bool valid() const { return latch->read_validate(version); }
};

/// The segment, or the root block, whose latch is held.
using LockedSegment = LockedHome<SeenSegment>;

class Router {
 public:
  Router(pool::PoolCore& pool, Root& root, const Shape& shape)
      : root_(pool.offset(&root)), latches_(Latches::kBits), directory_(pool, root, shape) {}

  Directory& directory() { return directory_; }
  const Directory& directory() const { return directory_; }
  const Latches& latches() const { return latches_; }

  /// The segment that is responsible for a hash, as long as the result is valid.
  [[gnu::always_inline]] inline SeenSegment look(KeyHash hash) const {
    if (directory_.has_copy()) [[unlikely]]
      return look_in_copy(hash);
    return look_along(hash, [&] { return directory_.find_in_pool(hash); });
  }

  /// The root block, which has the pair of the key whose word is 0 (H7).
  SeenSegment look_at_root() const {
    Latch& latch = latches_.of(root_);
    return {{}, {}, &latch, latch.read_begin()};
  }

  /// The segment of a hash, if its latch is held. There is no version.
  SeenSegment held(KeyHash hash) const {
    for (;;) {
      const Directory::Route route = directory_.find(hash);
      if (!directory_.current(route)) continue;
      return {route.entry, range_of(hash, route.entry), &latches_.of(route.entry.offset())};
    }
  }

 private:
  /// `find()` returns the entry of the hash, as a Place or a Route.
  template <class Find>
  [[gnu::always_inline]] inline SeenSegment look_along(KeyHash hash, Find find) const {
    for (;;) {
      const auto found = find();
      Latch& latch = latches_.of(found.entry.offset());
      const std::uint64_t version = latch.read_begin();
      if (!directory_.current(found)) [[unlikely]]
        continue;
      return {found.entry, range_of(hash, found.entry), &latch, version};
    }
  }
  [[gnu::noinline]] SeenSegment look_in_copy(KeyHash hash) const {
    return look_along(hash, [&] { return directory_.find(hash); });
  }

  static HashRange range_of(KeyHash hash, const Entry& entry) {
    return {hash.prefix(entry.depth()), entry.depth()};
  }

  const pm::Offset root_;
  Latches latches_;
  Directory directory_;
};

}  // namespace perdix::detail::index::cceh
