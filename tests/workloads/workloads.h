// Workloads that live in a pool, by name: an index of each type, an Elf, an ElfTable, and a TipsOf
// over each of the tested containers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/pool.h>

#include "support/engines.h"
#include "testing/workload.h"

namespace perdix::test {

struct WorkloadEntry {
  std::string name;
  /// How long it runs at most until it is killed: enough for some of its longest steps.
  std::chrono::microseconds longest_run;
  std::function<std::unique_ptr<testing::Workload>()> make;
  /// Opens what the pool holds under the name, and creates it if it is not there.
  std::function<std::unique_ptr<testing::Instance>(const Pool& pool, const std::string& name)> open;
  const IndexType* type = nullptr;  ///< null if it is no index
};

/// Those that are no indexes.
const std::vector<WorkloadEntry>& workloads();
/// Null if there is none of that name.
const WorkloadEntry* workload_named(std::string_view name);

/// Of few_index_types().
std::vector<WorkloadEntry> index_workloads();
/// Those, ElfTable and one container: for suites in which a case takes seconds.
std::vector<WorkloadEntry> few_workloads();

std::vector<WorkloadEntry> elf_workloads();
std::vector<WorkloadEntry> tips_of_workloads();

/// A workload, and its contents after so many steps, which follow from the seed: another process
/// knows them, too. One of `threads` may use it.
class Course {
 public:
  Course(const WorkloadEntry& entry, std::uint64_t seed, std::uint64_t steps = 0,
         unsigned thread = 0, unsigned threads = 1);

  std::uint64_t steps() const { return steps_; }
  const testing::State& state() const { return state_; }

  /// Makes the next step. If that throws, or ends with the process, it may have happened.
  void step(testing::Instance& instance);

  /// The call of step() alone, without what it does to the contents.
  void call(testing::Instance& instance);

  /// The next step has happened.
  void advance();

  /// Whether the next step has happened, too. Throws if the contents are not those before it, nor
  /// those behind it.
  bool next_has_happened(testing::Instance& instance);

 private:
  testing::Effects effects() const { return workload_->effects(next_, state_); }
  void draw() { next_ = workload_->next_step(random_, state_, thread_, threads_); }

  std::unique_ptr<testing::Workload> workload_;
  detail::util::Random random_;
  unsigned thread_, threads_;
  testing::State state_;
  testing::Step next_;
  std::uint64_t steps_ = 0;
};

}  // namespace perdix::test
