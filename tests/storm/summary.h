// The sums of what a storm has done in all its episodes. One thread may use it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "storm/board.h"
#include "storm/plan.h"

namespace perdix::test::storm {

class Summary {
 public:
  void add(const Episode& episode, const Counters& counters);
  /// Adds an episode that did not end.
  void add_cut(const Episode& episode, const Counters& counters);
  void add_finding() { ++findings_; }
  std::uint64_t findings() const { return findings_; }

  /// One line.
  void print_progress(double seconds) const;

  /// A table, and the same in a line.
  void print(double seconds) const;

 private:
  struct Row {
    const char* name;
    std::uint64_t count = 0;
  };
  std::uint64_t count_of(std::string_view name) const;

  std::uint64_t episodes_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t findings_ = 0;
  std::set<std::string> configurations_;  ///< of engines, kinds, shapes, domains and work
  std::array<Row, 18> rows_{{{"operations"},
                             {"failed calls injected"},
                             {"calls that threw"},
                             {"kills"},
                             {"kills while opening"},
                             {"reopens"},
                             {"comparisons"},
                             {"forks"},
                             {"live copies"},
                             {"live copies refused"},
                             {"other indexes dropped"},
                             {"damaged copies"},
                             {"full pools"},
                             {"visitors that misbehave"},
                             {"threads restarted"},
                             {"stops and suspensions"},
                             {"power failures"},
                             {"descriptors lost"}}};
};

}  // namespace perdix::test::storm
