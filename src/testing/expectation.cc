#include "testing/expectation.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "util/hash.h"
#include "util/random.h"

namespace perdix::testing {
namespace {

std::uint64_t pair_hash(const std::string& key, const std::string& value) {
  std::uint64_t state = detail::util::hash(std::string_view(key));
  state = detail::util::splitmix64(state) ^ detail::util::hash(std::string_view(value));
  return detail::util::splitmix64(state);
}

std::uint64_t hash_of(const State& state, const std::string& key) {
  const auto it = state.find(key);
  return it == state.end() ? 0 : pair_hash(key, it->second);
}

std::string show(const std::string& bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 24)) {
    const bool plain = c >= ' ' && c <= '~';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return bytes.size() > 24 ? fmt::format("'{}'... ({} bytes)", text, bytes.size())
                           : fmt::format("'{}'", text);
}

std::string show(const std::optional<std::string>& value) {
  return value ? show(*value) : "nothing";
}

std::optional<std::string> value_at(const State& state, const std::string& key) {
  const auto it = state.find(key);
  return it == state.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace

std::uint64_t digest(const State& state) {
  std::uint64_t sum = 0;
  for (const auto& [key, value] : state) sum += pair_hash(key, value);
  return sum;
}

void Expectation::apply(const Event& event, const std::vector<Call>& calls, const State& observed) {
  saw_undecided_ = false;
  switch (event.kind) {
    case Event::Kind::begin: return begin(event.id, calls[event.id]);
    case Event::Kind::end: {
      const auto it = std::find_if(undecided_.begin(), undecided_.end(),
                                   [&](const Undecided& u) { return u.step == event.id; });
      if (it != undecided_.end()) {
        if (calls[event.id].result.refused) {
          undecided_.erase(it);
        } else {
          happened(static_cast<std::size_t>(it - undecided_.begin()));
        }
      }
      return returned(event.id);
    }
    case Event::Kind::observe:
      state_ = observed;
      digest_ = digest(state_);
      undecided_.clear();
      readings_.clear();
      return;
    default: return;
  }
}

void Expectation::begin(std::uint32_t step, const Call& call) {
  if (call.result.reads) {
    readings_.push_back({step, call.step.key, call.result.value, false});
    explain_readings();
  }
  Undecided entry{step, subject_->effects(call.step, state_), 0, subject_->describe(call.step)};
  if (entry.effects.empty()) return;
  for (const Effect& effect : entry.effects) {
    entry.change -= hash_of(state_, effect.key);
    if (effect.after) entry.change += pair_hash(effect.key, *effect.after);
    writers_[effect.key] = entry.what;
  }
  undecided_.push_back(std::move(entry));
}

void Expectation::happened(std::size_t undecided) {
  apply_effects(undecided_[undecided].effects, state_);
  digest_ += undecided_[undecided].change;
  undecided_.erase(undecided_.begin() + static_cast<std::ptrdiff_t>(undecided));
  explain_readings();
}

void Expectation::explain_readings() {
  for (Reading& reading : readings_)
    reading.explained |= value_at(state_, reading.key) == reading.value;
}

void Expectation::returned(std::uint32_t step) {
  const auto reading = std::ranges::find(readings_, step, &Reading::step);
  if (reading == readings_.end()) return;
  if (!reading->explained) saw(*reading);
  readings_.erase(reading);
}

/// A read has returned what only a step under way can have written.
void Expectation::saw(const Reading& reading) {
  for (std::size_t i = 0; i < undecided_.size(); ++i) {
    const Effects& effects = undecided_[i].effects;
    const bool seen = std::any_of(effects.begin(), effects.end(), [&](const Effect& effect) {
      return effect.key == reading.key && effect.after == reading.value;
    });
    if (!seen) continue;
    saw_undecided_ = true;
    return happened(i);
  }
}

bool Expectation::is_settled(const Step& step) const {
  State after = state_;
  std::set<std::string> open;
  for (const Undecided& undecided : undecided_) {
    apply_effects(undecided.effects, after);
    for (const Effect& effect : undecided.effects) open.insert(effect.key);
  }
  if (open.contains(step.key)) return false;
  const auto settled = [&](const Effect& effect) { return !open.contains(effect.key); };
  for (const State* state : {&state_, static_cast<const State*>(&after)}) {
    const Effects effects = subject_->effects(step, *state);
    if (!std::all_of(effects.begin(), effects.end(), settled)) return false;
  }
  return true;
}

Expectation Expectation::after_crash() const {
  Expectation expected = *this;
  for (Undecided& step : expected.undecided_) step.step = kEarlierSession;
  expected.readings_.clear();
  return expected;
}

Expectation Expectation::at_first_look(const Trace& trace, const std::vector<Call>& calls) const {
  Expectation expected = *this;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    if (trace[i].kind == Event::Kind::observe) break;
    expected.apply(trace[i], calls, {});
  }
  return expected;
}

bool Expectation::allows(std::uint64_t contents) const {
  const std::uint64_t subsets = std::uint64_t{1} << undecided_.size();
  for (std::uint64_t subset = 0; subset < subsets; ++subset) {
    std::uint64_t sum = digest_;
    for (std::size_t i = 0; i < undecided_.size(); ++i) {
      if (subset >> i & 1) sum += undecided_[i].change;
    }
    if (sum == contents) return true;
  }
  return false;
}

Problems Expectation::explain(const State& contents) const {
  Problems problems;
  State all = state_;
  all.insert(contents.begin(), contents.end());
  for (const auto& [key, ignored] : all) {
    const auto found = value_at(contents, key), acknowledged = value_at(state_, key);
    if (found == acknowledged) continue;
    const auto writer = writers_.find(key);
    const std::string since = writer == writers_.end()
                                  ? "since the start"
                                  : "with " + writer->second + " as the last step on it";
    problems.push_back(fmt::format("key {} has {}, but {} was acknowledged, {}", show(key),
                                   show(found), show(acknowledged), since));
  }
  for (const Undecided& step : undecided_)
    problems.push_back("allowed in full or not at all: " + step.what);
  if (problems.size() > 12) problems.resize(12);
  return problems;
}

}  // namespace perdix::testing
