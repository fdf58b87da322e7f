#include "testing/subjects/calloc_subject.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/calloc.h"
#include "pm/access.h"
#include "pm/probe.h"
#include "testing/subjects/pool_blocks.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kChunks = 3;  // the first and two to grow into
constexpr unsigned kWords = 24;
constexpr detail::pm::Offset kFirstWord = 4096;
constexpr std::array<std::uint64_t, 12> kSizes = {1,    16,   24,   64,    100,   256,
                                                  1056, 2048, 5000, 33000, 70000, 300000};
/// Of runs and whole chunks, so that the medium is full soon.
constexpr std::array<std::uint64_t, 9> kLargeSizes = {16,
                                                      2048,
                                                      5000,
                                                      std::uint64_t{1} << 20,
                                                      std::uint64_t{5} << 20,
                                                      9 << 20,
                                                      12 << 20,
                                                      detail::alloc::kChunkSize - 1000,
                                                      detail::alloc::kChunkSize + 1000};

/// Where there is no space but what others must give back: of their classes, runs and chunks.
constexpr std::array<std::uint64_t, 10> kFullSizes = {16,
                                                      detail::alloc::kLargestClass,
                                                      detail::alloc::kLargestClass,
                                                      5000,
                                                      33000,
                                                      70000,
                                                      std::uint64_t{9} << 20,
                                                      12 << 20,
                                                      detail::alloc::kChunkSize - 1000,
                                                      detail::alloc::kChunkSize + 1000};
/// Blocks of the largest class that are freed again: more than a span of them.
constexpr unsigned kEmptied = 6;

enum Action : unsigned {
  kSet,
  kClear,
  kSetByRecord,
  kSetChainByRecord,
  kSetWithRedo,
  kMoveWithUndo,
  kCancel,
  kActions
};
/// Added to an action: afterwards, wait until what it freed may be used again, so that a run of one
/// thread depends on nothing else.
constexpr unsigned kSettle = 16;

class MediumSpace final : public detail::alloc::Space {
 public:
  MediumSpace(Medium& medium, detail::pm::Domain domain) : medium_(medium), pm_(domain) {}

  std::byte* base() const override { return medium_.bytes(); }
  std::uint64_t size() const override { return medium_.size(); }
  std::uint64_t max_size() const override { return medium_.size(); }
  void extend(std::uint64_t) override {
    throw Error(Errc::out_of_space, "the medium does not grow");
  }
  const detail::pm::Persister& pm() const override { return pm_; }
  detail::epoch::Reclaimer& reclaimer() const override { return reclaimer_; }

 private:
  Medium& medium_;
  detail::pm::Persister pm_;
  mutable detail::epoch::Reclaimer reclaimer_{detail::pm::background_reclamation()};
};

/// A block holds its request's size and a number in its first word and the number again in its
/// last. If the first word says so, the second one is the offset of another block of the same
/// content.
struct Content {
  std::uint64_t bytes;
  std::uint64_t number;
};
constexpr std::uint64_t kChained = std::uint64_t{1} << 63;

/// So that the number lies behind the offset.
constexpr std::uint64_t bytes_of(const Content& content, bool chained) {
  return std::max<std::uint64_t>(content.bytes, chained ? 24 : 16);
}

std::string to_text(const Content& content) {
  return fmt::format("{}:{}", content.bytes, content.number);
}

Content from_text(const std::string& text) {
  const std::size_t colon = text.find(':');
  return {std::stoull(text.substr(0, colon)), std::stoull(text.substr(colon + 1))};
}

class OpenedCalloc final : public Opened {
 public:
  OpenedCalloc(Medium& medium, detail::pm::Domain domain) : space_(medium, domain) {
    detail::pm::on_map(medium.bytes(), medium.size());
    calloc_.emplace(space_);
  }

  State contents() override {
    State state;
    for (unsigned i = 0; i < kWords; ++i) {
      const detail::pm::Offset block = detail::pm::load(word(i));
      if (block != detail::pm::kNull) state[std::to_string(i)] = read(block);
    }
    return state;
  }

  Problems check() override {
    CheckReport report;
    calloc_->check(report);
    std::vector<detail::pm::Offset> linked;
    for (unsigned i = 0; i < kWords; ++i) {
      for (detail::pm::Offset block = detail::pm::load(word(i)); block != detail::pm::kNull;
           block = next_of(block))
        linked.push_back(block);
    }
    expect_allocated(*calloc_, std::move(linked), report.problems);
    return report.problems;
  }

  StepResult apply(const Step& step) override {
    try {
      const StepResult result = call(step);
      if ((step.action & kSettle) != 0) settle(*calloc_, space_.reclaimer());
      return result;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      return StepResult::refusal();
    }
  }

  Problems close() override {
    calloc_.reset();
    return {};
  }

 private:
  StepResult call(const Step& step) {
    const auto i = static_cast<unsigned>(std::stoul(step.key));
    switch (step.action & ~kSettle) {
      case kSet: set(i, step.value); break;
      case kClear: return StepResult::write(clear(i));
      case kSetByRecord: set_by_record(i, step.value, false); break;
      case kSetChainByRecord: set_by_record(i, step.value, true); break;
      case kSetWithRedo: set_with_redo(i, step.value); break;
      case kMoveWithUndo: return StepResult::write(move(i));
      default: cancel(i, step.value); return StepResult::write(false);
    }
    return StepResult::write(true);
  }

  std::uint64_t& word(unsigned i) {
    return *reinterpret_cast<std::uint64_t*>(space_.base() + kFirstWord +
                                             i * detail::pm::kLineSize);
  }
  std::uint64_t* words_of(detail::pm::Offset block) {
    return reinterpret_cast<std::uint64_t*>(space_.base() + block);
  }

  static std::size_t last_word(std::uint64_t bytes) { return bytes / 8 - 1; }

  bool chained(detail::pm::Offset block) { return (words_of(block)[0] & kChained) != 0; }
  /// The second block of a chain; kNull of the second one, of others, and of what is no block.
  detail::pm::Offset next_of(detail::pm::Offset block) {
    return calloc_->validate_block(block, 16) && chained(block) ? words_of(block)[1]
                                                                : detail::pm::kNull;
  }

  std::string read(detail::pm::Offset block) {
    const std::string text = read_one(block);
    const detail::pm::Offset next = next_of(block);
    const bool whole = next == detail::pm::kNull || (read_one(next) == text && !chained(next));
    return whole ? text : "a torn chain";
  }

  std::string read_one(detail::pm::Offset block) {
    if (!calloc_->validate_block(block, 16))
      return fmt::format("{:#x}, which is not allocated", block);
    const std::uint64_t* words = words_of(block);
    const Content content{(words[0] & ~kChained) >> 32, words[0] & 0xffffffff};
    const std::uint64_t bytes = bytes_of(content, chained(block));
    if (!calloc_->validate_block(block, bytes)) return "a block that is too small";
    const std::uint64_t again =
        content.bytes < 16 && !chained(block) ? content.number : words[last_word(bytes)];
    return again == content.number ? to_text(content) : "a torn block";
  }

  /// A new block, in front of another one unless that is kNull.
  detail::pm::Offset make(detail::alloc::Session& session, const std::string& text,
                          detail::pm::Offset next = detail::pm::kNull) {
    const Content content = from_text(text);
    const bool chained = next != detail::pm::kNull;
    const std::uint64_t bytes = bytes_of(content, chained);
    const detail::pm::Offset block = session.reserve(bytes);
    std::uint64_t* words = words_of(block);
    space_.pm().store(words[0], content.bytes << 32 | content.number | (chained ? kChained : 0));
    if (chained) space_.pm().store(words[1], next);
    space_.pm().flush(words, 16);  // not fenced, like the one below: log() does it
    if (content.bytes >= 16 || chained) {
      // On a separate line if the block is large.
      space_.pm().store(words[last_word(bytes)], content.number);
      space_.pm().flush(words + last_word(bytes), 8);
    }
    return block;
  }

  void free_old(detail::alloc::Session& session, unsigned i) {
    for (detail::pm::Offset old = detail::pm::load(word(i)); old != detail::pm::kNull;
         old = next_of(old))
      session.free(old);
  }

  void set(unsigned i, const std::string& text) {
    detail::alloc::Session session = calloc_->session();
    const detail::pm::Offset block = make(session, text);
    free_old(session, i);
    session.commit_when(word(i), ~std::uint64_t{0}, block);
    session.log();
    space_.pm().publish(word(i), block);  // the commit
    session.finish();
  }

  bool clear(unsigned i) {
    if (detail::pm::load(word(i)) == 0) return false;
    detail::alloc::Session session = calloc_->session();
    free_old(session, i);
    session.commit_when(word(i), ~std::uint64_t{0}, 0);
    session.log();
    space_.pm().publish(word(i), 0);  // the commit
    session.finish();
    return true;
  }

  /// A record with a chain is longer than a line, so that half of it may be in PM.
  void set_by_record(unsigned i, const std::string& text, bool chain) {
    detail::alloc::Session session = calloc_->session();
    const detail::pm::Offset next = chain ? make(session, text) : detail::pm::kNull;
    const detail::pm::Offset block = make(session, text, next);
    free_old(session, i);
    session.redo(word(i), block);
    session.log();  // the commit
    space_.pm().store(word(i), block);
    space_.pm().flush(&word(i), 8);  // not fenced: finish() does it
    session.finish();
  }

  /// Sets this word and the next one.
  void set_with_redo(unsigned i, const std::string& text) {
    detail::alloc::Session session = calloc_->session();
    const detail::pm::Offset block = make(session, text), second = make(session, text);
    free_old(session, i);
    free_old(session, i + 1);
    session.commit_when(word(i), ~std::uint64_t{0}, block);
    session.redo(word(i + 1), second);
    session.log();
    space_.pm().publish(word(i), block);  // the commit
    space_.pm().store(word(i + 1), second);
    space_.pm().flush(&word(i + 1), 8);  // not fenced: finish() does it
    session.finish();
  }

  /// The next word takes this word's block, and loses its own.
  bool move(unsigned i) {
    const detail::pm::Offset block = detail::pm::load(word(i));
    if (block == 0) return false;
    detail::alloc::Session session = calloc_->session();
    free_old(session, i + 1);
    session.commit_when(word(i), ~std::uint64_t{0}, 0);
    session.undo(word(i + 1), detail::pm::load(word(i + 1)));
    session.log();
    space_.pm().publish(word(i + 1), block);  // taken back unless the next store happens
    space_.pm().publish(word(i), 0);          // the commit
    session.finish();
    return true;
  }

  /// Would set this word, and gets as far as the next one, which it takes back.
  void cancel(unsigned i, const std::string& text) {
    detail::alloc::Session session = calloc_->session();
    const detail::pm::Offset block = make(session, text);
    free_old(session, i);
    session.commit_when(word(i), ~std::uint64_t{0}, block);
    session.undo(word(i + 1), detail::pm::load(word(i + 1)));
    session.log();
    space_.pm().publish(word(i + 1), block);  // must be taken back durably with the record's end
    session.cancel();
  }

  MediumSpace space_;
  std::optional<detail::alloc::Calloc> calloc_;
};

class CallocSubject final : public Subject {
 public:
  CallocSubject(CallocStart start, detail::pm::Domain domain) : start_(start), domain_(domain) {}

  std::uint64_t size() const override { return kChunks * detail::alloc::kChunkSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    std::memset(medium.bytes(), 0, medium.size());
    {
      MediumSpace space(medium, domain_);
      detail::alloc::Calloc::format(space);
    }
    sizes_ = static_cast<Sizes>(random.below(3));
    State state;
    const std::unique_ptr<Opened> opened = open(medium);
    const auto apply = [&](const Step& step) { return take(*opened, step, state); };
    if (start_ == CallocStart::full) {
      random.one_in(2) ? use_all_once(apply) : leave_little(apply);
    } else {
      for (std::uint64_t i = random.below(40); i > 0; --i) apply(next_step(random, state, 0, 1));
    }
    opened->close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedCalloc>(medium, domain_);
  }

  Step next_step(detail::util::Random& random, const State&, unsigned thread,
                 unsigned threads) override {
    // Pairs of words, so that a step on two stays within the thread's own.
    const std::uint64_t pair = random.below(kWords / 2 / threads) * threads + thread;
    const std::uint64_t bytes = draw_size(random, threads);
    const auto action =
        static_cast<unsigned>(random.one_in(2) ? random.below(2) : random.below(kActions));
    const bool two = action >= kSetWithRedo;
    return {threads == 1 ? action | kSettle : action,
            std::to_string(2 * pair + (two ? 0 : random.below(2))),
            to_text({bytes, random.below(1 << 30)})};
  }

  Effects effects(const Step& step, const State& state) const override {
    const std::string next = std::to_string(std::stoul(step.key) + 1);
    const auto it = state.find(step.key);
    const bool linked = it != state.end();
    switch (step.action & ~kSettle) {
      case kSet:
      case kSetByRecord:
      case kSetChainByRecord: return {{step.key, step.value}};
      case kClear: return linked ? Effects{{step.key, std::nullopt}} : Effects{};
      case kSetWithRedo: return {{step.key, step.value}, {next, step.value}};
      case kMoveWithUndo:
        return linked ? Effects{{step.key, std::nullopt}, {next, it->second}} : Effects{};
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, kActions> kNames = {
        "set",           "clear",          "set_by_record", "set_chain_by_record",
        "set_with_redo", "move_with_undo", "cancel"};
    return fmt::format("{}({}, {})", kNames[step.action & ~kSettle], step.key, step.value);
  }

 private:
  enum class Sizes { small, usual, large };

  /// False if the step was refused.
  bool take(Opened& opened, const Step& step, State& state) const {
    if (opened.apply(step).refused) return false;
    apply_effects(effects(step, state), state);
    return true;
  }

  static Step set(unsigned word, std::uint64_t bytes) {
    return {kSet | kSettle, std::to_string(word), to_text({bytes, word})};
  }
  static Step clear(unsigned word) { return {kClear | kSettle, std::to_string(word), ""}; }

  /// Divides all chunks into spans and leaves them free, so that a large object takes chunks back.
  template <class Apply>
  static void use_all_once(const Apply& apply) {
    unsigned used = 0;
    while (used < kWords && apply(set(used, 5 << 20))) ++used;
    for (unsigned i = 0; i < used; ++i) apply(clear(i));
  }

  /// Fills the medium, but for some empty spans of one class, so that others take them back.
  template <class Apply>
  static void leave_little(const Apply& apply) {
    unsigned used = 0;
    while (used < kEmptied) apply(set(used++, detail::alloc::kLargestClass));
    for (const std::uint64_t bytes :
         {detail::alloc::kChunkSize + 1000, detail::alloc::kChunkSize / 4,
          detail::alloc::kChunkSize / 16, detail::alloc::kChunkSize / 64,
          detail::alloc::kChunkSize / 256, detail::alloc::kSpanSize + 1000}) {
      while (used < kWords && apply(set(used, bytes))) ++used;
    }
    for (unsigned i = 0; i < kEmptied; ++i) apply(clear(i));
  }

  std::uint64_t draw_size(detail::util::Random& random, unsigned threads) const {
    if (start_ == CallocStart::full) return kFullSizes[random.below(kFullSizes.size())];
    if (sizes_ == Sizes::large && threads == 1)
      return kLargeSizes[random.below(kLargeSizes.size())];
    return kSizes[random.below(sizes_ == Sizes::small ? 5 : kSizes.size())];
  }

  CallocStart start_;
  detail::pm::Domain domain_;
  Sizes sizes_ = Sizes::usual;
};

}  // namespace

std::unique_ptr<Subject> make_calloc_subject(CallocStart start, detail::pm::Domain domain) {
  return std::make_unique<CallocSubject>(start, domain);
}

}  // namespace perdix::testing
