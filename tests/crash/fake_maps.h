// Small durable structures that test the explorer. Each is correct or has one planted error.
//
// Each structure is the simplest one in which its error is possible, so there is no doubt about
// what the explorer must find.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pm/access.h"
#include "pm/persist.h"
#include "testing/subject.h"

namespace perdix::testing::fakes {

inline constexpr std::uint64_t kFakeSize = 1 << 16;

inline std::uint64_t number(const std::string& text) { return std::stoull(text); }

/// The base class: an array of words at the start of the medium.
class FakeMap : public Opened {
 public:
  FakeMap(Medium& medium, detail::pm::Domain domain)
      : pm_(domain), words_(reinterpret_cast<std::uint64_t*>(medium.bytes())) {
    detail::pm::on_map(medium.bytes(), medium.size());
  }
  Problems check() override { return {}; }
  Problems close() override { return {}; }

 protected:
  static constexpr std::size_t kLine = detail::pm::kLineSize / 8;

  detail::pm::Persister pm_;
  std::uint64_t* words_;
};

/// A subject whose steps set the numbers "0", "1", ... to new values. `T` is a FakeMap with a
/// constructor (Medium&, domain).
template <class T>
class Numbers : public Subject {
 public:
  explicit Numbers(detail::pm::Domain domain, std::uint64_t keys = 4)
      : domain_(domain), keys_(keys) {}

  std::uint64_t size() const override { return kFakeSize; }
  State create(Medium& medium, detail::util::Random&) override {
    std::memset(medium.bytes(), 0, kFakeSize);
    return {};
  }
  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<T>(medium, domain_);
  }
  Step next_step(detail::util::Random& random, const State&, unsigned thread,
                 unsigned threads) override {
    const std::uint64_t key = random.below(keys_) / threads * threads + thread;
    return {0, std::to_string(key), std::to_string(1 + random.below(1 << 30))};
  }
  Effects effects(const Step& step, const State&) const override {
    return {{step.key, step.value}};
  }
  std::string describe(const Step& step) const override {
    return fmt::format("set({}, {})", step.key, step.value);
  }

 protected:
  detail::pm::Domain domain_;
  std::uint64_t keys_;
};

/// Shows each word that is not 0 as a number, words `stride` apart from `first` on.
inline State words_as_state(const std::uint64_t* words, std::size_t count, std::size_t first,
                            std::size_t stride) {
  State state;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = detail::pm::load(words[first + i * stride]);
    if (word != 0) state[std::to_string(i)] = std::to_string(word);
  }
  return state;
}

// --- A value and a word that makes it valid
// --------------------------------------------------------

enum class CellBug { none, no_flush, no_fence, swapped, wrong_line };

/// Number i has two copies and a selector, on three lines; a set writes the other copy, then the
/// selector.
template <CellBug bug>
class Cells : public FakeMap {
 public:
  using FakeMap::FakeMap;

  State contents() override {
    State state;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t selected = detail::pm::load(selector(i));
      if (selected != 0)
        state[std::to_string(i)] = std::to_string(detail::pm::load(copy(i, selected)));
    }
    return state;
  }

  StepResult apply(const Step& step) override {
    const std::size_t i = number(step.key);
    const std::uint64_t other = detail::pm::load(selector(i)) == 1 ? 2 : 1;
    if (bug == CellBug::swapped) pm_.publish(selector(i), other);
    pm_.store(copy(i, other), number(step.value));
    if (bug == CellBug::wrong_line) {
      pm_.persist(&selector(i), 8);
    } else if (bug == CellBug::no_fence) {
      pm_.flush(&copy(i, other), 8);
    } else if (bug == CellBug::no_flush) {
      pm_.fence();
    } else {
      pm_.persist(&copy(i, other), 8);
    }
    if (bug != CellBug::swapped) pm_.publish(selector(i), other);
    return StepResult::write(true);
  }

 private:
  // In distant pages, so that no flush of one covers the other in any domain.
  std::uint64_t& selector(std::size_t i) { return words_[i * kLine]; }
  std::uint64_t& copy(std::size_t i, std::uint64_t which) {
    return words_[which * 1024 + i * kLine];
  }
};

// --- A block of many lines and a word that makes it valid
// --------------------------------------------------------

/// Number i has two copies, each in all of many lines, and a selector, as Cells.
template <bool fenced>
class WideCells : public FakeMap {
 public:
  using FakeMap::FakeMap;

  State contents() override {
    State state;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t selected = detail::pm::load(words_[i * kLine]);
      if (selected == 0) continue;
      const std::uint64_t value = detail::pm::load(*copy(i, selected));
      for (std::size_t line = 0; line < kLines; ++line) {
        const bool whole = detail::pm::load(copy(i, selected)[line * kLine]) == value;
        state[std::to_string(i)] = whole ? std::to_string(value) : "torn";
        if (!whole) break;
      }
    }
    return state;
  }

  StepResult apply(const Step& step) override {
    const std::size_t i = number(step.key);
    const std::uint64_t other = detail::pm::load(words_[i * kLine]) == 1 ? 2 : 1;
    for (std::size_t line = 0; line < kLines; ++line)
      pm_.store(copy(i, other)[line * kLine], number(step.value));
    pm_.flush(copy(i, other), kLines * detail::pm::kLineSize);
    if (fenced) pm_.fence();
    pm_.publish(words_[i * kLine], other);
    return StepResult::write(true);
  }

 private:
  static constexpr std::size_t kLines = 20;

  std::uint64_t* copy(std::size_t i, std::uint64_t which) {
    return words_ + which * 2048 + i * kLines * kLine;
  }
};

// --- Two words that belong together
// ----------------------------------------------------------------

/// A step sets both numbers to one value. Sound: in a spare copy of the pair, then the selector.
template <bool torn>
class Twins : public FakeMap {
 public:
  using FakeMap::FakeMap;

  State contents() override {
    const std::uint64_t* pair = words_ + (torn ? 1 : 1 + 2 * detail::pm::load(words_[0]));
    return words_as_state(pair, 2, 0, 1);
  }

  StepResult apply(const Step& step) override {
    const std::uint64_t spare = torn ? 0 : 1 - detail::pm::load(words_[0]);
    std::uint64_t* pair = words_ + 1 + 2 * spare;
    pm_.store(pair[0], number(step.value));
    pm_.store(pair[1], number(step.value));
    pm_.persist(pair, 16);
    if (!torn) pm_.publish(words_[0], spare);
    return StepResult::write(true);
  }
};

template <bool torn>
class TwinNumbers : public Numbers<Twins<torn>> {
 public:
  using Numbers<Twins<torn>>::Numbers;
  Effects effects(const Step& step, const State&) const override {
    return {{"0", step.value}, {"1", step.value}};
  }
};

// --- Blocks that must not leak
// ---------------------------------------------------------------------

/// Number i is in a block that slot i names; a word says which blocks are taken. A set takes a
/// block, links it, and frees the old one. Sound: opening makes the word what the slots say.
template <bool leaks>
class Blocks : public FakeMap {
 public:
  Blocks(Medium& medium, detail::pm::Domain domain) : FakeMap(medium, domain) {
    if (!leaks && detail::pm::load(taken()) != linked()) pm_.publish(taken(), linked());
  }

  State contents() override {
    State state;
    for (std::size_t i = 0; i < 4; ++i) {
      if (const std::uint64_t b = detail::pm::load(slot(i)))
        state[std::to_string(i)] = std::to_string(detail::pm::load(block(b)));
    }
    return state;
  }

  Problems check() override {
    if (detail::pm::load(taken()) == linked()) return {};
    return {"the taken blocks are not the linked ones"};
  }

  StepResult apply(const Step& step) override {
    const std::size_t i = number(step.key);
    std::uint64_t b = 1;
    while (detail::pm::load(taken()) >> b & 1) ++b;
    pm_.store(block(b), number(step.value));
    pm_.flush(&block(b), 8);
    pm_.publish(taken(), detail::pm::load(taken()) | std::uint64_t{1} << b);
    const std::uint64_t old = detail::pm::load(slot(i));
    pm_.publish(slot(i), b);
    if (old != 0) pm_.publish(taken(), detail::pm::load(taken()) & ~(std::uint64_t{1} << old));
    return StepResult::write(true);
  }

 private:
  std::uint64_t linked() {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      if (const std::uint64_t b = detail::pm::load(slot(i))) bits |= std::uint64_t{1} << b;
    }
    return bits;
  }
  std::uint64_t& taken() { return words_[0]; }
  std::uint64_t& slot(std::size_t i) { return words_[512 + i]; }
  std::uint64_t& block(std::uint64_t b) { return words_[1024 + b * kLine]; }
};

// --- Recovery that must survive a crash itself
// ----------------------------------------------------

/// A set first logs the old pair of words, then changes both in place. Sound: recovery undoes, and
/// only then clears the log.
template <bool clears_early>
class UndoLog : public FakeMap {
 public:
  UndoLog(Medium& medium, detail::pm::Domain domain) : FakeMap(medium, domain) {
    if (detail::pm::load(words_[0]) == 0) return;
    if (clears_early) pm_.publish(words_[0], 0);
    pm_.store(pair()[0], detail::pm::load(words_[1]));
    pm_.store(pair()[1], detail::pm::load(words_[2]));
    pm_.persist(pair(), 16);
    if (!clears_early) pm_.publish(words_[0], 0);
  }

  State contents() override { return words_as_state(pair(), 2, 0, 1); }

  StepResult apply(const Step& step) override {
    pm_.store(words_[1], detail::pm::load(pair()[0]));
    pm_.store(words_[2], detail::pm::load(pair()[1]));
    pm_.persist(words_ + 1, 16);
    pm_.publish(words_[0], 1);
    pm_.store(pair()[0], number(step.value));
    pm_.store(pair()[1], number(step.value));
    pm_.persist(pair(), 16);
    pm_.publish(words_[0], 0);
    return StepResult::write(true);
  }

 private:
  std::uint64_t* pair() { return words_ + 1024; }
};

template <bool clears_early>
class UndoNumbers : public Numbers<UndoLog<clears_early>> {
 public:
  using Numbers<UndoLog<clears_early>>::Numbers;
  Effects effects(const Step& step, const State&) const override {
    return {{"0", step.value}, {"1", step.value}};
  }
};

// --- Recovery that waits for the first use
// -------------------------------------------------------

/// Number i is two words that are equal. A set logs the old number, then changes both; what a crash
/// left in the log is undone when the map is first used. Correct: by the first reader or writer.
template <bool only_readers_repair>
class LateUndo : public FakeMap {
 public:
  using FakeMap::FakeMap;

  State contents() override {
    repair();
    State state;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t first = detail::pm::load(half(i, 0)),
                          second = detail::pm::load(half(i, 1));
      if (first == 0 && second == 0) continue;
      state[std::to_string(i)] = first == second ? std::to_string(first) : "torn";
    }
    return state;
  }

  StepResult apply(const Step& step) override {
    if (!only_readers_repair) repair();
    const std::size_t i = number(step.key);
    pm_.store(old(), detail::pm::load(half(i, 0)));
    pm_.persist(&old(), 8);
    pm_.publish(logged(), i + 1);
    set(i, number(step.value));
    pm_.publish(logged(), 0);
    return StepResult::write(true);
  }

 private:
  void repair() {
    const std::uint64_t i = detail::pm::load(logged());
    if (i == 0) return;
    set(i - 1, detail::pm::load(old()));
    pm_.publish(logged(), 0);
  }

  void set(std::size_t i, std::uint64_t value) {
    for (const std::size_t h : {0, 1}) {
      pm_.store(half(i, h), value);
      pm_.persist(&half(i, h), 8);
    }
  }

  std::uint64_t& logged() { return words_[0]; }
  std::uint64_t& old() { return words_[kLine]; }
  std::uint64_t& half(std::size_t i, std::size_t h) { return words_[(h + 1) * 1024 + i * kLine]; }
};

// --- Readers that must not see what a crash can undo
// -----------------------------------------------

/// A lock that threads get in the order in which they ask, so that only the schedule decides which
/// thread is next, and not the speed of threads when the lock becomes free.
class FairLock {
 public:
  void lock() {
    const unsigned ticket = next_.fetch_add(1);
    while (serving_.load() != ticket) std::this_thread::yield();
  }
  void unlock() { serving_.fetch_add(1); }

 private:
  std::atomic<unsigned> next_{0};
  std::atomic<unsigned> serving_{0};
};

/// One word per number, and reads of others' numbers. Sound: reads wait for writers; else they see
/// unpersisted values.
template <bool dirty_reads>
class Shared : public FakeMap {
 public:
  using FakeMap::FakeMap;

  State contents() override { return words_as_state(words_, 4, 0, kLine); }

  StepResult apply(const Step& step) override {
    std::uint64_t& word = words_[number(step.key) * kLine];
    if (step.action == 1) {
      std::unique_lock lock(lock_, std::defer_lock);
      if (!dirty_reads) lock.lock();
      const std::uint64_t found = detail::pm::load(word);
      return StepResult::read(found == 0 ? std::nullopt : std::optional(std::to_string(found)));
    }
    const std::lock_guard lock(lock_);
    pm_.publish(word, number(step.value));
    return StepResult::write(true);
  }

 private:
  FairLock lock_;
};

template <bool dirty_reads>
class SharedNumbers : public Numbers<Shared<dirty_reads>> {
 public:
  using Numbers<Shared<dirty_reads>>::Numbers;
  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    Step step = Numbers<Shared<dirty_reads>>::next_step(random, state, thread, threads);
    if (random.one_in(2)) step = {1, std::to_string(random.below(4)), ""};
    return step;
  }
  Effects effects(const Step& step, const State&) const override {
    return step.action == 1 ? Effects{} : Effects{{step.key, step.value}};
  }
};

// --- What the opening leaves to the first step
// -------------------------------------------------------

/// Numbers count if a mark is set; opening sets it, and clears them if it wasn't. Flushed only: the
/// thread that opens fences at its first step, but no other thread's fence covers the mark.
class Marked : public FakeMap {
 public:
  Marked(Medium& medium, detail::pm::Domain domain) : FakeMap(medium, domain) {
    if (detail::pm::load(words_[0]) == 1) return;
    pm_.zero(numbers(), 4 * detail::pm::kLineSize);
    pm_.persist(numbers(), 4 * detail::pm::kLineSize);
    pm_.store(words_[0], 1);
    pm_.flush(words_, 8);
  }

  State contents() override { return words_as_state(numbers(), 4, 0, kLine); }

  StepResult apply(const Step& step) override {
    const std::lock_guard lock(lock_);
    pm_.publish(numbers()[number(step.key) * kLine], number(step.value));
    return StepResult::write(true);
  }

 private:
  std::uint64_t* numbers() { return words_ + 1024; }

  FairLock lock_;
};

// --- Stores that mean nothing, to be counted
// --------------------------------------------------------

/// Stores `count` words, `stride` words apart, and then persists them all.
template <std::size_t count, std::size_t stride>
class Scratch : public FakeMap {
 public:
  using FakeMap::FakeMap;
  State contents() override { return {}; }
  StepResult apply(const Step&) override {
    for (std::size_t i = 0; i < count; ++i) pm_.store(words_[i * stride], words_[i * stride] + 1);
    pm_.persist(words_, count * stride * 8);
    return StepResult::write(false);
  }
};

template <std::size_t count, std::size_t stride>
class ScratchNumbers : public Numbers<Scratch<count, stride>> {
 public:
  using Numbers<Scratch<count, stride>>::Numbers;
  Effects effects(const Step&, const State&) const override { return {}; }
};

}  // namespace perdix::testing::fakes
