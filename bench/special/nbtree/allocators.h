// Figure 15: what the allocator takes of NbTree's inserts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "special/nbtree/config.h"

namespace perdix::bench::figures {

/// What one allocator would come to. Times are of all inserts together.
struct AllocatorResult {
  std::string name;
  double insert_seconds = 0;       ///< the index's, with this allocator in place of its own
  double allocator_seconds = 0;    ///< of these
  std::uint64_t replacements = 0;  ///< for which the allocator was needed
};

struct AllocatorResults {
  std::vector<AllocatorResult> allocators;
  std::uint64_t wrong = 0;
};

/// Inserts `operations` random keys into an index of `records`, twice. The first time it is noted
/// which inserts replaced leaves, and by how large ones. The second time is measured: after each of
/// those inserts, each allocator does on its own memory what it would have to do for it, and is
/// timed. The index runs with Calloc; with another allocator it is taken to need as much less, or
/// more, as that one needed. `on_phase` is called with the name of each phase.
AllocatorResults compare_allocators(const Config& config, const std::filesystem::path& directory,
                                    const std::function<void(const char*)>& on_phase);

/// How often `on_phase` is called.
inline constexpr std::uint64_t kAllocatorPhases = 4;

}  // namespace perdix::bench::figures
