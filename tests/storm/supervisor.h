// Starts the workers of an episode one after the other, watches their progress, and decides whether
// their ends are correct. One thread may use it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storm/board.h"
#include "storm/plan.h"
#include "support/temp_dir.h"

namespace perdix::test::storm {

/// A problem of an episode, and its place.
struct Report {
  std::string problem;
  std::string where;    ///< round and step
  std::string details;  ///< stacks; may be empty
};

class Supervisor {
 public:
  Supervisor(Episode episode, std::uint64_t number, std::chrono::seconds bound);

  /// Kills a worker that still runs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Looks at the worker. False once the episode is over.
  bool tick();

  const std::optional<Report>& report() const { return report_; }
  const Episode& episode() const { return episode_; }
  std::uint64_t number() const { return number_; }
  const Counters& counters() { return ground_.board().counters; }
  void keep() { folder_.keep(); }
  std::string folder() const { return folder_.path().string(); }

 private:
  void start();
  void judge(int status);
  void watch();
  bool over_bound(const Seat& seat) const;
  void fail(std::string problem, std::string details);
  std::string where();

  Episode episode_;
  std::uint64_t number_;
  std::chrono::seconds bound_;
  TempDir folder_;
  std::vector<std::string> paths_;
  Ground ground_;
  pid_t worker_ = -1;
  unsigned workers_ = 0;
  std::optional<Report> report_;
  bool over_ = false;
};

}  // namespace perdix::test::storm
