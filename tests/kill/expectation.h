// The allowed content of the pool, derived from what the children acknowledged before the kill.
// Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kill/plan.h"
#include "kill/record.h"

namespace perdix::test::kill {

class Expectation {
 public:
  virtual ~Expectation() = default;

  /// What the plan needs.
  static std::unique_ptr<Expectation> of(const Plan& plan);

  /// A child starts with this round.
  virtual void begin_round(unsigned round) = 0;

  /// A record of that child, in the order of the pipe.
  virtual void add(const Record& record) = 0;

  /// The child is dead; `opened`: it had begun to work.
  virtual void end_round(bool opened) = 0;

  /// What a verification found.
  virtual void verify(const Record& record) = 0;

  /// Whether another writer may work before a verification.
  virtual bool may_go_on() const = 0;

  /// Steps that have happened, which a child of a workload repeats in its model.
  virtual std::uint64_t steps() const { return 0; }

  /// Describes the contradictions to the contract. Empty if there are none.
  const std::vector<std::string>& problems() const { return problems_; }

  /// Operations acknowledged since the last call.
  std::uint64_t take_acknowledged() { return std::exchange(acknowledged_, 0); }

 protected:
  void problem(std::string text);

  std::uint64_t acknowledged_ = 0;

 private:
  std::vector<std::string> problems_;
};

/// Of an index by name: for each key the set of tags that it may have, where 0 stands for no value.
/// An acknowledged operation must agree with the set and leaves one tag. An operation in flight (at
/// most one per thread) adds what it would have left, and replaces the set if a reader had seen its
/// effect. Verification reduces each set to what was found.
class PairExpectation final : public Expectation {
 public:
  explicit PairExpectation(const Plan& plan);

  void begin_round(unsigned round) override;
  void add(const Record& record) override;
  void end_round(bool opened) override;
  /// One record for each key, and one for the second index.
  void verify(const Record& record) override;
  bool may_go_on() const override { return true; }

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

  const Plan& plan_;
  std::vector<std::vector<std::uint64_t>> allowed_;  // by key

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

/// Of a workload: the steps that were acknowledged, and perhaps the one after them. A verification
/// says which, so the next writer knows what is there.
class StepExpectation final : public Expectation {
 public:
  void begin_round(unsigned) override {}
  void add(const Record& record) override;
  void end_round(bool opened) override { settled_ = settled_ && !opened; }
  void verify(const Record& record) override;
  bool may_go_on() const override { return settled_; }
  std::uint64_t steps() const override { return steps_; }

 private:
  std::uint64_t steps_ = 0;
  bool settled_ = true;
};

}  // namespace perdix::test::kill
