// One pool that goes through many rounds of work, kills, kills during recovery, and verification.
// One thread may use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kill/expectation.h"
#include "kill/plan.h"
#include "kill/process.h"
#include "support/rng.h"
#include "support/temp_dir.h"

namespace perdix::test::kill {

struct Tally {
  std::uint64_t kills = 0;
  std::uint64_t kills_in_open = 0;  ///< of these, while the pool or the index was being opened
  std::uint64_t verifications = 0;
  std::uint64_t acknowledged = 0;
  std::chrono::nanoseconds slowest_open{0};  ///< of an unclean pool

  void add(const Tally& other);
};

class Lane {
 public:
  /// Creates the pool.
  explicit Lane(const Plan& plan);

  /// Runs some kills and usually a verification. Returns false if there are problems().
  bool run_round();

  /// Verifies once more, drops all indexes and expects that nothing stays allocated.
  bool finish();

  const Plan& plan() const { return plan_; }
  const Tally& tally() const { return tally_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  using Duration = std::chrono::nanoseconds;
  enum class Victim { writer, opener };

  void create_pool();
  void kill_one(Victim victim);
  void wait_and_kill(Process& child, Victim victim);
  void verify();
  void begin_anew();
  void drop_all();
  std::vector<std::string> child_arguments(const std::string& role) const;
  void take(const std::vector<Record>& records, bool verifying);
  Duration typical_open();
  void problem(std::string text);

  Plan plan_;
  Rng rng_;
  TempDir folder_;
  std::unique_ptr<Expectation> expectation_;
  Tally tally_;
  std::vector<std::string> problems_;
  std::vector<Duration> opens_;  // the latest ones of unclean pools
  std::string text_;             // pieces of a problem that a child describes
  unsigned round_ = 0;
  bool clean_ = true;
  bool opening_ = false;  // what the child at hand has said
  bool opened_ = false;
  bool finished_ = false;
};

}  // namespace perdix::test::kill
