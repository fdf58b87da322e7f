// An Elf in a separate pool. Its caching policy can be changed.
#pragma once

#include <filesystem>

#include <perdix/elf.h>
#include <perdix/pool.h>

#include "special/elf/systems.h"

namespace perdix::bench::points {

class ElfSystem final : public System {
 public:
  ElfSystem(const Data& data, const std::filesystem::path& directory, bool hybrid);

  void exact(const Query& query, Tids& tids) override;
  void range(const Query& query, Tids& tids) override;
  std::uint64_t bytes() const override;

  /// Returns when the cache is filled.
  void set_policy(const CachePolicy& policy);
  ElfStats stats() const { return elf_.stats(); }

 private:
  Pool pool_;
  Elf elf_;
};

}  // namespace perdix::bench::points
