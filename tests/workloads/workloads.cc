#include "workloads/workloads.h"

#include <utility>

namespace perdix::test {

const std::vector<WorkloadEntry>& workloads() {
  static const std::vector<WorkloadEntry> all = [] {
    std::vector<WorkloadEntry> entries = elf_workloads();
    for (WorkloadEntry& entry : tips_of_workloads()) entries.push_back(std::move(entry));
    return entries;
  }();
  return all;
}

const WorkloadEntry* workload_named(std::string_view name) {
  for (const WorkloadEntry& entry : workloads())
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace perdix::test
