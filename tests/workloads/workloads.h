// Workloads that live in a pool, by name: an Elf, an ElfTable, and a TipsOf over each of the tested
// containers. Indexes by name have suites of their own for what all of them do.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/pool.h>

#include "testing/workload.h"

namespace perdix::test {

class PoolWorkload : public testing::Workload {
 public:
  /// Opens what the pool holds, and creates it if it is not there.
  virtual std::unique_ptr<testing::Instance> open(const Pool& pool) = 0;
};

struct WorkloadEntry {
  std::string name;
  /// How long it runs at most until it is killed: enough for some of its longest steps.
  std::chrono::microseconds longest_run;
  std::function<std::unique_ptr<PoolWorkload>()> make;
};

const std::vector<WorkloadEntry>& workloads();
/// Null if there is none of that name.
const WorkloadEntry* workload_named(std::string_view name);

std::vector<WorkloadEntry> elf_workloads();
std::vector<WorkloadEntry> tips_of_workloads();

}  // namespace perdix::test
