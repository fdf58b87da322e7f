// The oracle: what contents are allowed after a crash at one moment of a session.
//
// A step that has returned must have happened. So must one whose effect another step saw. One that
// is under way has happened entirely or not at all. Nothing else may differ. Steps under way touch
// different keys, so their effects add up; contents are compared by a sum of hashes of their pairs.
// A read shows the effect of a step under way only if its value can come from nothing else: the key
// has not had it since the read began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "testing/subject.h"
#include "testing/trace.h"

namespace perdix::testing {

std::uint64_t digest(const State& state);

/// A step as the oracle needs it.
struct Call {
  Step step;
  StepResult result;  ///< valid once it has returned
};

class Expectation {
 public:
  Expectation(const Subject& subject, State state)
      : subject_(&subject), state_(std::move(state)), digest_(digest(state_)) {}

  /// The next mark of a session that has made these calls and had `observed` as contents when it
  /// looked at all of them.
  void apply(const Event& event, const std::vector<Call>& calls, const State& observed);

  /// Whether the last event was the return of a read that showed the effect of a step under way:
  /// from then on that must survive.
  bool saw_undecided() const noexcept { return saw_undecided_; }

  bool allows(std::uint64_t contents) const;

  /// Why contents are not allowed, in words.
  Problems explain(const State& contents) const;

  /// What must be there, apart from what steps under way may change.
  const State& state() const noexcept { return state_; }
  /// Whether the step does the same, whatever became of the steps under way.
  bool is_settled(const Step& step) const;

  /// The expectation for the session that opens the image of a crash at this moment. Nothing that
  /// was under way ever returns.
  Expectation after_crash() const;

  /// What is expected when that session, with these calls, looks at the contents for the first
  /// time.
  Expectation at_first_look(const Trace& trace, const std::vector<Call>& calls) const;

 private:
  static constexpr std::uint32_t kEarlierSession = ~std::uint32_t{0};

  struct Undecided {
    std::uint32_t step;
    Effects effects;
    std::uint64_t change;  // of the digest, if it happened
    std::string what;
  };

  /// A read under way. It may have found what was there at any time since it began.
  struct Reading {
    std::uint32_t step;
    std::string key;
    std::optional<std::string> value;
    bool explained;  // its key has had the value that it returns
  };

  void begin(std::uint32_t step, const Call& call);
  void happened(std::size_t undecided);
  void returned(std::uint32_t step);
  void saw(const Reading& reading);
  void explain_readings();

  const Subject* subject_;
  State state_;
  std::uint64_t digest_;
  std::vector<Undecided> undecided_;
  std::vector<Reading> readings_;
  bool saw_undecided_ = false;
  std::map<std::string, std::string>
      writers_;  // by key: the step that was the last to begin, in words
};

}  // namespace perdix::testing
