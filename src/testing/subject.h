// What is explored: something durable that steps change and that can be opened again after a crash.
//
// A subject says what its contents are, as pairs of bytes, and what each step does to them. All the
// rest (running it, crashing it, opening what a crash leaves, and judging it) is done for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testing/medium.h"
#include "util/random.h"

namespace perdix::testing {

/// The contents, as far as calls can observe them.
using State = std::map<std::string, std::string>;
using Problems = std::vector<std::string>;

/// One call. What `action` means is the subject's matter.
struct Step {
  unsigned action = 0;
  std::string key;
  std::string value;
};

/// The effect of a step on one key: its value afterwards, or nothing if it is gone. A step's
/// effects happen all or none.
struct Effect {
  std::string key;
  std::optional<std::string> after;
};
using Effects = std::vector<Effect>;

inline void apply_effects(const Effects& effects, State& state) {
  for (const Effect& effect : effects) {
    if (effect.after) {
      state[effect.key] = *effect.after;
    } else {
      state.erase(effect.key);
    }
  }
}

struct StepResult {
  bool changed = false;  ///< as the call says; must be true exactly if there are effects
  bool reads = false;    ///< the call read the key, and `value` is what it found
  std::optional<std::string> value;
  bool refused = false;  ///< there was no space for it, and so nothing has changed

  static StepResult refusal() { return {false, false, std::nullopt, true}; }
  static StepResult write(bool changed) { return {changed, false, std::nullopt, false}; }
  static StepResult read(std::optional<std::string> found) {
    return {false, true, std::move(found), false};
  }
};

/// An open instance. Destroying it without close() must be possible too.
class Opened {
 public:
  virtual ~Opened() = default;
  virtual State contents() = 0;
  /// Verifies every invariant.
  virtual Problems check() = 0;
  /// Called by several threads concurrently if the subject was asked for steps of several. Only
  /// steps of a single thread may be refused.
  virtual StepResult apply(const Step& step) = 0;
  /// Ends the instance in an orderly way, and verifies what can only be verified then (that nothing
  /// leaks, for example).
  virtual Problems close() = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  /// Bytes of its medium.
  virtual std::uint64_t size() const = 0;
  /// Brings the medium, whatever it holds, into a durable first state. How that looks, and how
  /// steps are drawn until the next call, depends on `random`.
  virtual State create(Medium& medium, detail::util::Random& random) = 0;
  /// Opens the content of the medium and repairs the effects of a crash. Throws what the subject
  /// throws when it can't.
  virtual std::unique_ptr<Opened> open(Medium& medium) = 0;
  /// A step for one of several threads; different threads must get effects on different keys.
  /// Depends on the arguments and on what create() drew, so that a session can be run again. Values
  /// should be new, so that it shows which step wrote them.
  virtual Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                         unsigned threads) = 0;
  virtual Effects effects(const Step& step, const State& state) const = 0;
  /// The step as a call, for people.
  virtual std::string describe(const Step& step) const = 0;
};

}  // namespace perdix::testing
