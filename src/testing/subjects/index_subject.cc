#include "testing/subjects/index_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <perdix/index.h>

#include "pm/file.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

constexpr unsigned kKeys = 240;
/// Pairs that a write buffer holds.
constexpr unsigned kBuffered = 14;
/// A drop takes all pairs along, so that little is left to explore after it.
constexpr unsigned kDropOneIn = 40;
/// Steps after it meet what opening leaves for later.
constexpr unsigned kReopenOneIn = 12;

enum Action : unsigned { kPut, kInsert, kUpdate, kErase, kGet, kDrop, kReopen, kActions };
/// Added to an action: afterwards, wait until what it freed may be used again, so that a run of one
/// thread depends on nothing else.
constexpr unsigned kSettle = 16;

std::string bytes_of(std::uint64_t value) {
  const auto bytes = encode_u64(value);
  return {bytes.begin(), bytes.end()};
}

/// Key `i`: for numbers the ends of the range and what lies anywhere between, most of it in the
/// first quarter, since no leaf of NbTree crosses one; for bytes the empty one, prefixes of others,
/// and lengths from short to several lines.
std::string key_of(Kind kind, std::uint64_t i) {
  if (kind == Kind::u64) {
    if (i < 2) return bytes_of(i == 0 ? 0 : ~std::uint64_t{0});
    const std::uint64_t anywhere = i * 0x9e3779b97f4a7c15;
    return bytes_of(i % 8 == 0 ? anywhere : anywhere >> 2);
  }
  static constexpr std::array<std::size_t, 6> kPadding = {0, 0, 3, 20, 70, 300};
  if (i == 0) return "";
  return std::to_string(i) + std::string(kPadding[i % kPadding.size()], 'x');
}

std::string value_of(Kind kind, util::Random& random) {
  const std::uint64_t number = random();
  if (kind == Kind::u64) return bytes_of(random.one_in(16) ? (number & 1) - 1 : number);
  static constexpr std::array<std::size_t, 6> kLengths = {0, 1, 8, 40, 200, 1500};
  std::string value = std::to_string(number);
  value.resize(kLengths[random.below(kLengths.size())], 'v');
  return value;
}

class OpenedIndex final : public Opened {
 public:
  OpenedIndex(Medium& medium, const IndexInfo& info, const IndexOptions& options, pm::Domain domain)
      : info_(info),
        options_(options),
        pool_(Pool::open(medium.path(), pool_options(domain))),
        index_(Index::open_or_create(pool_, info, options)) {}

  State contents() override {
    // Key by key first, in no order: an index that was just opened may have much to do at each.
    State found = contents_by_get();
    if (!index_->ordered()) return found;
    return contents_from(info_.key_kind == Kind::u64 ? bytes_of(0) : "");
  }

  Problems check() override {
    Problems problems = index_->check().problems;
    const State scanned = contents();
    if (index_->ordered() && scanned != contents_by_get())
      problems.push_back("scan and get find different pairs");
    const auto middle = std::next(scanned.begin(), static_cast<long>(scanned.size() / 2));
    if (index_->ordered() && middle != scanned.end() &&
        contents_from(middle->first) != State(middle, scanned.end()))
      problems.push_back("a scan from the middle finds other pairs than one of everything");
    if (index_->size() != scanned.size())
      problems.push_back(
          fmt::format("size() is {}, but there are {} pairs", index_->size(), scanned.size()));
    return problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = call(step);
    if ((step.action & kSettle) != 0) pool_.core()->reclaimer().drain();
    return result;
  }

  Problems close() override {
    index_.reset();
    Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

 private:
  State contents_from(const std::string& first) const {
    State state;
    const auto visit = [&](std::string_view key, std::string_view value) {
      return state.emplace(key, value).second;
    };
    index_->scan(first, visit);
    return state;
  }

  State contents_by_get() const {
    State state;
    for (unsigned i = 0; i < kKeys; ++i) {
      const std::string key = key_of(info_.key_kind, i);
      if (auto value = index_->get(key)) state.emplace(key, std::move(*value));
    }
    return state;
  }

  StepResult call(const Step& step) {
    switch (step.action & ~kSettle) {
      case kPut: index_->put(step.key, step.value); return StepResult::write(true);
      case kInsert: return StepResult::write(index_->insert(step.key, step.value));
      case kUpdate: return StepResult::write(index_->update(step.key, step.value));
      case kErase: return StepResult::write(index_->erase(step.key));
      case kDrop: return StepResult::write(drop());
      case kReopen: return reopen();
      default: return StepResult::read(index_->get(step.key));
    }
  }

  StepResult reopen() {
    index_.reset();
    index_ = Index::open_or_create(pool_, info_, options_);
    return StepResult::write(false);
  }

  /// The index goes, and an empty one takes its name. True if pairs went with it.
  bool drop() {
    const bool changes = index_->size() > 0;
    index_.reset();
    pool_.drop(info_.name);
    index_ = Index::open_or_create(pool_, info_, options_);
    return changes;
  }

  const IndexInfo& info_;
  const IndexOptions& options_;
  Pool pool_;
  std::unique_ptr<Index> index_;
};

class IndexSubject final : public Subject {
 public:
  IndexSubject(const IndexInfo& info, const IndexOptions& options, pm::Domain domain)
      : info_(info), options_(options), domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, util::Random& random) override {
    medium.empty();
    pool::PoolCore::create(pm::File::open(medium.path()), pool_options(domain_))->close();
    medium.restore_length();
    mood_ = static_cast<Mood>(random.below(3));
    // None: the workload makes the index. Else around what one, two or three leaves hold, so that
    // they split and merge; 46: NbTree's smaller ones.
    static constexpr std::array<unsigned, 9> kFills = {0, 3, 30, 46, 62, 64, 90, 128, 180};
    unsigned fill = mood_ == Mood::shrink ? 64 + static_cast<unsigned>(random.below(120))
                                          : kFills[random.below(kFills.size())];
    // With a write buffer a leaf takes some more before it splits.
    if (fill != 0 && options_.dram_budget != 0 && random.one_in(2)) fill += kBuffered;
    State state;
    if (fill == 0) return state;
    OpenedIndex opened(medium, info_, options_, domain_);
    const auto apply = [&](Action action, const std::string& key) {
      const unsigned settle = state.contains(key) ? kSettle : 0;  // else nothing is freed
      const Step step{action | settle, key, value_of(info_.value_kind, random)};
      apply_effects(effects(step, state), state);
      opened.apply(step);
    };
    while (state.size() < fill) apply(kPut, key_of(info_.key_kind, random.below(kKeys)));
    // Two sparse leaves, with few more pairs than makes one of them.
    const std::size_t left = mood_ == Mood::shrink ? 33 + random.below(4) : fill;
    while (state.size() > left) apply(kErase, any_key(random, state, 0, 1, true));
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedIndex>(medium, info_, options_, domain_);
  }

  Step next_step(util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    if (threads > 1 && random.one_in(4))
      return {kGet, key_of(info_.key_kind, random.below(kKeys)), ""};
    if (threads == 1 && random.one_in(kDropOneIn)) return {kDrop | kSettle, "", ""};
    if (threads == 1 && random.one_in(kReopenOneIn)) return {kReopen, "", ""};
    const bool usual = !random.one_in(4);
    unsigned action = static_cast<unsigned>(random.below(kDrop));
    if (usual && mood_ == Mood::grow) action = kInsert;
    if (usual && mood_ == Mood::shrink) action = kErase;
    const bool present =
        action == kUpdate || action == kErase ? !random.one_in(8) : random.one_in(4);
    const std::string key = any_key(random, state, thread, threads, present);
    return {threads == 1 ? action | kSettle : action, key, value_of(info_.value_kind, random)};
  }

  Effects effects(const Step& step, const State& state) const override {
    const bool there = state.contains(step.key);
    switch (step.action & ~kSettle) {
      case kPut: return {{step.key, step.value}};
      case kInsert: return there ? Effects{} : Effects{{step.key, step.value}};
      case kUpdate: return there ? Effects{{step.key, step.value}} : Effects{};
      case kErase: return there ? Effects{{step.key, std::nullopt}} : Effects{};
      case kDrop: return erasure_of(state);
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, kActions> kNames = {"put", "insert", "update", "erase",
                                                                 "get", "drop",   "reopen"};
    const unsigned action = step.action & ~kSettle;
    if (action == kDrop || action == kReopen) return fmt::format("{}()", kNames[action]);
    return fmt::format("{}({}, {} bytes)", kNames[action], show(step.key), step.value.size());
  }

 private:
  enum class Mood { grow, shrink, mixed };

  static Effects erasure_of(const State& state) {
    Effects effects;
    for (const auto& [key, value] : state) effects.push_back({key, std::nullopt});
    return effects;
  }

  std::string show(const std::string& key) const {
    if (info_.key_kind == Kind::u64) return std::to_string(decode_u64(key));
    return key.size() > 12 ? fmt::format("'{}'... {} bytes", key.substr(0, 12), key.size())
                           : fmt::format("'{}'", key);
  }

  /// A key of a thread's own that is present or not, if there is one near the one that is drawn.
  std::string any_key(util::Random& random, const State& state, unsigned thread, unsigned threads,
                      bool present) const {
    const std::uint64_t own = kKeys / threads, start = random.below(own);
    for (std::uint64_t i = 0; i < own; ++i) {
      std::string key = key_of(info_.key_kind, (start + i) % own * threads + thread);
      if (state.contains(key) == present) return key;
    }
    return key_of(info_.key_kind, start * threads + thread);
  }

  const IndexInfo info_;
  const IndexOptions options_;
  pm::Domain domain_;
  Mood mood_ = Mood::mixed;
};

}  // namespace

std::unique_ptr<Subject> make_index_subject(const IndexInfo& info, const IndexOptions& options,
                                            pm::Domain domain) {
  return std::make_unique<IndexSubject>(info, options, domain);
}

}  // namespace perdix::testing
