#include <utility>

#include <perdix/elf.h>
#include <perdix/pool.h>

#include "special/elf/elf_system.h"

namespace perdix::bench::points {

ElfSystem::ElfSystem(const Data& data, const std::filesystem::path& directory, bool hybrid)
    : pool_(Pool::create(directory / "elf.pool")), elf_(pool_, "points", kDimensions) {
  const auto columns = data.columns();
  elf_.build(columns);
  if (!hybrid) return;
  elf_.cache(CachePolicy::hybrid());
  elf_.wait_for_cache();
}

void ElfSystem::exact(const Query& query, Tids& tids) {
  if (const auto tid = elf_.exact(query.lower)) tids.push_back(*tid);
}

void ElfSystem::range(const Query& query, Tids& tids) {
  tids = elf_.range(query.lower, query.upper);
}

std::uint64_t ElfSystem::bytes() const { return elf_.stats().elf_bytes; }

void ElfSystem::set_policy(const CachePolicy& policy) {
  elf_.cache(policy);
  elf_.wait_for_cache();
}

std::unique_ptr<System> make_elf(const Data& data, const std::filesystem::path& directory,
                                 bool hybrid) {
  return std::make_unique<ElfSystem>(data, directory, hybrid);
}

}  // namespace perdix::bench::points
