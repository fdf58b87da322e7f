// The allowed content of the pool, derived from what the children acknowledged before the kill.
//
// For each key the set of tags that it may have, where 0 stands for no value. An acknowledged
// operation must agree with the set and leaves one tag; an operation in flight (at most one per
// thread) adds what it would have left, and replaces the set if a reader had seen its effect.
// Verification reduces each set to what was found. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kill/plan.h"
#include "kill/record.h"

namespace perdix::test::kill {

class Expectation {
 public:
  explicit Expectation(const Plan& plan);

  /// A child starts with this round.
  void begin_round(unsigned round);

  /// A record of that child, in the order of the pipe.
  void add(const Record& record);

  /// The child is dead; `opened`: it had begun to work.
  void end_round(bool opened);

  /// What a verification found; one record for each key, and one for the second index.
  void verify(const Record& record);

  /// Describes the contradictions to the contract. Empty if there are none.
  const std::vector<std::string>& problems() const { return problems_; }

  std::uint64_t acknowledged() const { return acknowledged_; }

 private:
  // An operation in mode `together`; times are positions in the order of the pipe.
  struct Call {
    Command command;
    std::uint64_t begin;
    std::uint64_t end = kNever;
    bool result = false;
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void done(const Record& record);
  void apply(const Command& command, bool result);
  void apply_in_flight(const Command& command, bool observed);
  void resolve_calls();
  void resolve_key(std::size_t key, const std::vector<const Call*>& calls);
  void second_at(SecondIndex state);
  void verify_second(SecondIndex found);
  void problem(std::string text);

  const Plan& plan_;
  std::vector<std::vector<std::uint64_t>> allowed_;  // by key
  std::vector<std::string> problems_;
  std::uint64_t acknowledged_ = 0;

  unsigned round_ = 0;
  std::uint64_t time_ = 0;
  std::vector<Stream> streams_;           // by thread; the next command is in flight
  std::vector<std::uint32_t> done_;       // by thread: operations acknowledged
  std::vector<std::uint64_t> observed_;   // by thread: operations whose effect a reader saw
  std::vector<std::vector<Call>> calls_;  // by thread, mode `together`

  bool second_may_be_absent_ = true;
  bool second_may_exist_ = false;
  bool second_is_full_ = false;
};

}  // namespace perdix::test::kill
