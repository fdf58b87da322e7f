#include "kill/expectation.h"

#include <algorithm>

#include <fmt/format.h>

namespace perdix::test::kill {
namespace {

constexpr std::size_t kMaxProblems = 10;

void keep(std::vector<std::uint64_t>& tags, bool present) {
  std::erase_if(tags, [&](std::uint64_t tag) { return (tag != 0) != present; });
}

void add_tag(std::vector<std::uint64_t>& tags, std::uint64_t tag) {
  if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(tag);
}

/// The tag that an operation which takes effect leaves.
std::uint64_t outcome(const Command& command) { return command.op == Op::erase ? 0 : command.tag; }

/// Whether the key must have been there for the operation to return `result`; a put asks nothing.
bool needs_key(Op op, bool result) { return op == Op::insert ? !result : result; }

std::string show_tags(const std::vector<std::uint64_t>& tags) {
  std::vector<std::string> texts;
  for (const std::uint64_t tag : tags) texts.push_back(show_tag(tag));
  return fmt::format("{}", fmt::join(texts, " or "));
}

}  // namespace

std::unique_ptr<Expectation> Expectation::of(const Plan& plan) {
  if (plan.kinds.empty()) return std::make_unique<StepExpectation>();
  return std::make_unique<PairExpectation>(plan);
}

PairExpectation::PairExpectation(const Plan& plan) : plan_(plan), allowed_(plan.keys(), {0}) {}

void PairExpectation::begin_round(unsigned round) {
  round_ = round;
  time_ = 0;
  streams_.clear();
  for (unsigned thread = 0; thread < plan_.threads; ++thread) {
    streams_.emplace_back(plan_, round, thread);
  }
  done_.assign(plan_.threads, 0);
  observed_.assign(plan_.threads, 0);
  calls_.assign(plan_.threads, {});
}

void PairExpectation::add(const Record& record) {
  ++time_;
  switch (record.type) {
    case Record::Type::begin:
      calls_.at(record.thread).push_back({streams_.at(record.thread).next(), time_});
      break;
    case Record::Type::done: done(record); break;
    case Record::Type::observed: {
      const Tag tag = Tag::unpack(record.payload);
      if (tag.round != round_) break;
      auto& seen = observed_.at(tag.thread);
      seen = std::max(seen, std::uint64_t{tag.number} + 1);
      break;
    }
    case Record::Type::second: second_at(static_cast<SecondIndex>(record.number)); break;
    default: break;
  }
}

void PairExpectation::done(const Record& record) {
  ++acknowledged_;
  const bool result = record.payload != 0;
  if (record.number != done_.at(record.thread)++) problem("acknowledgements out of order");
  if (plan_.mode == Mode::together) {
    Call& call = calls_[record.thread].back();
    call.end = time_;
    call.result = result;
  } else {
    apply(streams_[record.thread].next(), result);
  }
}

void PairExpectation::apply(const Command& command, bool result) {
  auto& tags = allowed_[command.key];
  if (command.op != Op::put) {
    const bool present = needs_key(command.op, result);
    const auto before = tags;
    keep(tags, present);
    if (tags.empty()) {
      problem(fmt::format("{} of key {} ({}) returned {}, but the key had {}",
                          to_string(command.op), command.key, show_tag(command.tag), result,
                          show_tags(before)));
    }
  }
  // An operation that returned false leaves what is there.
  if (command.op == Op::put || result || tags.empty()) tags = {outcome(command)};
}

void PairExpectation::apply_in_flight(const Command& command, bool observed) {
  auto& tags = allowed_[command.key];
  if (command.op != Op::put) {
    const bool must_be_there = needs_key(command.op, true);
    const bool possible = std::any_of(
        tags.begin(), tags.end(), [&](std::uint64_t tag) { return (tag != 0) == must_be_there; });
    if (!possible) return;  // it would return false, and change nothing
  }
  if (observed) tags.clear();
  add_tag(tags, outcome(command));
}

void PairExpectation::end_round(bool opened) {
  if (!opened) return;
  if (plan_.mode == Mode::together) {
    resolve_calls();
    return;
  }
  for (unsigned thread = 0; thread < plan_.threads; ++thread) {
    if (observed_[thread] > std::uint64_t{done_[thread]} + 1) {
      problem(fmt::format("a reader saw operation {} of thread {}, which had done {}",
                          observed_[thread] - 1, thread, done_[thread]));
    }
    apply_in_flight(streams_[thread].next(), observed_[thread] > done_[thread]);
  }
}

void PairExpectation::resolve_calls() {
  std::vector<std::vector<const Call*>> by_key(plan_.keys());
  for (const auto& calls : calls_) {
    for (const Call& call : calls) by_key[call.command.key].push_back(&call);
  }
  for (std::size_t key = 0; key < by_key.size(); ++key) resolve_key(key, by_key[key]);
}

// A call may have been the last to take effect on its key, unless one that certainly took effect
// began after it had ended.
void PairExpectation::resolve_key(std::size_t key, const std::vector<const Call*>& calls) {
  std::uint64_t last_begin = 0;
  for (const Call* call : calls) {
    const bool effective = call->end != kNever && (call->command.op == Op::put || call->result);
    if (effective) last_begin = std::max(last_begin, call->begin);
  }
  auto& tags = allowed_[key];
  if (last_begin != 0) tags.clear();
  for (const Call* call : calls) {
    const bool in_flight = call->end == kNever;
    const bool effective = in_flight || call->command.op == Op::put || call->result;
    if (effective && call->end > last_begin) add_tag(tags, outcome(call->command));
  }
}

void PairExpectation::second_at(SecondIndex state) {
  using enum SecondIndex;
  second_may_be_absent_ = state == dropped || state == creating || state == dropping;
  second_may_exist_ = state != dropped;
  if (state != dropping) second_is_full_ = state == filled;
}

void PairExpectation::verify(const Record& record) {
  if (record.type == Record::Type::second) {
    verify_second(static_cast<SecondIndex>(record.number));
    return;
  }
  auto& tags = allowed_.at(record.number);
  if (std::find(tags.begin(), tags.end(), record.payload) == tags.end()) {
    problem(fmt::format("key {} has {}, but must have {}", record.number, show_tag(record.payload),
                        show_tags(tags)));
  }
  tags = {record.payload};
}

void PairExpectation::verify_second(SecondIndex found) {
  const bool exists = found != SecondIndex::dropped;
  const bool full = found == SecondIndex::filled;
  if (exists && !second_may_exist_) problem("the second index came back after its drop");
  if (!exists && !second_may_be_absent_) problem("the second index is gone");
  if (exists && second_is_full_ && !full) problem("the second index has lost pairs");
  second_may_exist_ = exists;
  second_may_be_absent_ = !exists;
  second_is_full_ = full;
}

void Expectation::problem(std::string text) {
  if (problems_.size() < kMaxProblems) problems_.push_back(std::move(text));
}

void StepExpectation::add(const Record& record) {
  if (record.type != Record::Type::done) return;
  ++acknowledged_;
  if (record.number != static_cast<std::uint32_t>(steps_++))
    problem("acknowledgements out of order");
}

void StepExpectation::verify(const Record& record) {
  steps_ += record.number;
  settled_ = true;
}

}  // namespace perdix::test::kill
