#include "workloads/workloads.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

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

std::vector<WorkloadEntry> few_workloads() {
  std::vector<WorkloadEntry> few = index_workloads();
  // Not "elf", which is the engine alone: the pool's health is its class's matter.
  for (const char* name : {"elf_table", "tips_of:std::map"}) few.push_back(*workload_named(name));
  return few;
}

Course::Course(const WorkloadEntry& entry, std::uint64_t seed, std::uint64_t steps, unsigned thread,
               unsigned threads)
    : workload_(entry.make()), random_(seed), thread_(thread), threads_(threads) {
  draw();
  while (steps_ < steps) advance();
}

void Course::call(testing::Instance& instance) {
  if (instance.apply(next_).changed == effects().empty())
    throw std::runtime_error("a wrong result of " + workload_->describe(next_));
}

void Course::advance() {
  testing::apply_effects(effects(), state_);
  ++steps_;
  draw();
}

void Course::step(testing::Instance& instance) {
  call(instance);
  advance();
}

bool Course::next_has_happened(testing::Instance& instance) {
  if (instance.shows(state_)) return false;
  testing::State behind = state_;
  testing::apply_effects(effects(), behind);
  if (instance.shows(behind)) return true;
  throw std::runtime_error(
      fmt::format("the contents are not those after {} steps, or one more", steps_));
}

}  // namespace perdix::test
