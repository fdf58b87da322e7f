// What the suites run: calls that change something durable, and what they do to its contents, as
// pairs of bytes. The explorer has a form of it (subject.h), and the suites that kill, fork or fail
// another (tests/workloads), which say where the durable thing lies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// A call, for suites that make each of them where all must be refused.
struct NamedCall {
  const char* name;
  bool writes;
  std::function<void()> call;
};

/// Something durable that is open. Destroying it must be possible at any time.
class Instance {
 public:
  virtual ~Instance() = default;
  /// Verifies every invariant.
  virtual Problems check() = 0;
  /// Called by several threads concurrently if the workload was asked for steps of several. Only
  /// steps of a single thread may be refused.
  virtual StepResult apply(const Step& step) = 0;
  /// Whether its contents are these.
  virtual bool shows(const State& state) = 0;
  /// Calls that other threads may make again and again beside the steps; they change no contents.
  virtual std::vector<std::function<void()>> companions() { return {}; }
  /// All calls that there are, with any arguments. The first one writes.
  virtual std::vector<NamedCall> calls() { return {}; }
};

class Workload {
 public:
  virtual ~Workload() = default;
  /// A step for one of several threads; different threads must get effects on different keys.
  /// Depends on the arguments and on what was drawn before, so that a run can be repeated. Values
  /// should be new, so that it shows which step wrote them.
  virtual Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                         unsigned threads) = 0;
  virtual Effects effects(const Step& step, const State& state) const = 0;
  /// The step as a call, for people.
  virtual std::string describe(const Step& step) const = 0;
};

}  // namespace perdix::testing
