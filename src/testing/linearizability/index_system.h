// Any engine as a system under test: an index in a separate pool, behind perdix::Index.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "testing/linearizability/map.h"

namespace perdix::testing {

struct IndexSystemOptions {
  std::string engine = "sptree";
  Kind key_kind = Kind::u64;
  Kind value_kind = Kind::u64;
  /// cpu_cache, memory_controller or page_cache: decides what a crash leaves.
  DomainChoice domain = DomainChoice::cpu_cache;
  std::filesystem::path folder;  ///< for the pools' files; best on a tmpfs
  /// In half of the runs threads find the index as it is after its opening, which may have left
  /// things to them.
  bool reopen = false;
  std::uint64_t dram_budget = 0;        ///< of an engine that has it
  std::uint64_t dram_budget_after = 0;  ///< the same, once the index is opened again
  Technique technique = Technique::none;
  /// The pools have little or no space left when the threads begin.
  bool full = false;
  bool growing = false;                  ///< opened as EngineTraits::growing says
  bool straight = false;                 ///< opened as EngineTraits::straight says
  std::optional<Beginning> beginning{};  ///< if it is not to be drawn
};

/// Systems made from these options; each is a new pool in a new file, removed at the end.
MakeSystem index_systems(const IndexSystemOptions& options);

}  // namespace perdix::testing
