#include "testing/subjects/index_subject.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/index.h>

#include "index/test_options.h"
#include "pool/pool_core.h"
#include "testing/engine_traits.h"
#include "testing/subjects/index_keys.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

using Keys = std::vector<std::string>;

/// Upper bound of the pairs of an index that no step uses.
constexpr unsigned kPairsOfAnother = 400;
/// In some engines two neighbours with fewer pairs in all than this become one.
unsigned of_sparse_neighbours(const detail::index::EngineTraits& engine) {
  constexpr unsigned kFewest = 32;  // a state of fewer pairs is explored sooner
  return std::max(engine.most / 2, kFewest);
}
/// Pairs that a write buffer holds.
constexpr unsigned kBuffered = 28;
/// A drop takes all pairs along, so that little is left to explore after it.
constexpr unsigned kDropInterval = 40;
/// Steps after it meet what opening leaves for later.
constexpr unsigned kReopenInterval = 12;
/// Rounds whose keys all want the same places, of which full leaves have none left.
constexpr unsigned kCrowdedInterval = 4;
/// Rounds whose pool is checked before an index of it is opened, which the check then recovers.
constexpr unsigned kCheckedFirstInterval = 3;
/// Keys of a thread, at most, where threads shall meet, and one thread its own traces.
constexpr unsigned kFewKeys = 2;

enum Action : unsigned {
  kPut,
  kInsert,
  kUpdate,
  kErase,
  kExchange,
  kGet,
  kDrop,
  kReopen,
  kAhead,
  kActions
};
/// Added to an action: it settles, so that a run of one thread depends on nothing else.
constexpr unsigned kSettle = 16;
/// Added to an action: its thread then does what waits for the pool's background thread.
constexpr unsigned kBackground = 32;
/// Added to an action: afterwards the pool takes back what its indexes do not need, as a full one.
constexpr unsigned kReclaim = 64;
constexpr unsigned kReclaimInterval = 8;
constexpr unsigned kReclaimToJoinInterval = 2;
constexpr unsigned kActionMask = kSettle - 1;
constexpr unsigned kBackgroundInterval = 4;

bool is_odd(std::string_view value) { return !value.empty() && (value.back() & 1) != 0; }

std::string value_of(Kind kind, detail::util::Random& random) {
  const std::uint64_t number = random();
  if (kind == Kind::u64) return bytes_of_number(random.one_in(16) ? (number & 1) - 1 : number);
  static constexpr std::array<std::size_t, 6> kLengths = {0, 1, 8, 40, 200, 1500};
  std::string value = std::to_string(number);
  value.resize(kLengths[random.below(kLengths.size())], 'v');
  return value;
}

class OpenedIndex final : public Opened {
 public:
  OpenedIndex(Medium& medium, const IndexInfo& info, const IndexOptions& options,
              const PoolOptions& pool, const Keys& keys, bool checked_first = false)
      : info_(info),
        options_(options),
        keys_(keys),
        pool_(checked_first ? open_checked(medium, pool) : open_pool(medium, pool)),
        index_(Index::open_or_create(pool_, info, options)) {
    settle();
  }

  State contents() override {
    // Key by key first, in no order: an index that was just opened may have much to do at each.
    contents_by_get();
    settle();
    return contents_by_for_each();
  }

  Problems check() override {
    Problems problems = index_->check().problems;
    const State all = contents_by_for_each();
    if (!get_finds(all)) problems.push_back("for_each and get find different pairs");
    if (index_->ordered()) check_scans(all, problems);
    if (index_->size() != all.size())
      problems.push_back(
          fmt::format("size() is {}, but there are {} pairs", index_->size(), all.size()));
    return problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = refusable_call(step);
    if ((step.action & kBackground) != 0) pool_.core()->background().drain();
    if ((step.action & kReclaim) != 0) pool_.core()->reclaim_space();
    if ((step.action & kSettle) != 0) settle();
    return result;
  }

  Problems close() override {
    index_.reset();
    Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

 private:
  static Pool open_pool(const Medium& medium, const PoolOptions& options) {
    Pool pool = Pool::open(medium.path(), options);
    testing::settle(*pool.core());
    return pool;
  }

  /// Throws what a check of the pool finds that is the first to open its indexes.
  static Pool open_checked(const Medium& medium, const PoolOptions& options) {
    Pool pool = open_pool(medium, options);
    const Problems problems = pool.check().problems;
    if (!problems.empty()) throw Error(Errc::corrupt, "Pool::check() finds: " + problems.front());
    testing::settle(*pool.core());
    return pool;
  }

  void settle() { testing::settle(*pool_.core()); }

  std::string least_key() const { return info_.key_kind == Kind::u64 ? bytes_of_number(0) : ""; }

  /// A key that is shown twice makes it end there, and so is noticed.
  State contents_by_for_each() const {
    State state;
    index_->for_each([&](std::string_view key, std::string_view value) {
      return state.try_emplace(std::string(key), value).second;
    });
    return state;
  }

  void check_scans(const State& all, Problems& problems) const {
    if (contents_from(least_key()) != all)
      problems.push_back("a scan and for_each find different pairs");
    const auto middle = std::next(all.begin(), static_cast<long>(all.size() / 2));
    if (middle == all.end()) return;
    const State rest = contents_from(middle->first);
    if (!std::equal(middle, all.end(), rest.begin(), rest.end()))
      problems.push_back("a scan from the middle finds other pairs than one of everything");
  }

  State contents_from(const std::string& first) const {
    State state;
    const auto visit = [&](std::string_view key, std::string_view value) {
      const std::size_t before = state.size();
      state.emplace_hint(state.end(), key, value);  // where it belongs, if the scan ascends
      return state.size() > before;
    };
    index_->scan(first, visit);
    return state;
  }

  State contents_by_get() const {
    State state;
    for (const std::string& key : keys_) {
      if (auto value = index_->get(key)) state.emplace(key, std::move(*value));
    }
    return state;
  }

  /// Whether get() finds these pairs and no others.
  bool get_finds(const State& pairs) const {
    std::size_t found = 0;
    for (const std::string& key : keys_) {
      const std::optional<std::string> value = index_->get(key);
      if (!value) continue;
      const auto pair = pairs.find(key);
      if (pair == pairs.end() || pair->second != *value) return false;
      ++found;
    }
    return found == pairs.size();
  }

  /// A pool may be full.
  StepResult refusable_call(const Step& step) {
    try {
      return call(step);
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      return StepResult::refusal();
    }
  }

  StepResult call(const Step& step) {
    switch (step.action & kActionMask) {
      case kPut: index_->put(step.key, step.value); return StepResult::write(true);
      case kInsert: return StepResult::write(index_->insert(step.key, step.value));
      case kUpdate: return StepResult::write(index_->update(step.key, step.value));
      case kErase: return StepResult::write(index_->erase(step.key));
      case kExchange: return StepResult::write(exchange(step));
      case kDrop: return StepResult::write(drop());
      case kReopen: return reopen();
      case kAhead: return StepResult::write(insert_ahead(step));
      default: return StepResult::read(index_->get(step.key));
    }
  }

  /// Removes a key, or adds it, by what its value is.
  bool exchange(const Step& step) {
    return index_->update_with(step.key, [&](std::optional<std::string_view> before) {
      if (!before) return Change<std::string>::store(step.value);
      return is_odd(step.value) ? Change<std::string>::erase()
                                : Change<std::string>::store(step.value);
    });
  }

  /// Only this thread writes the key, so it knows what the call does not say.
  bool insert_ahead(const Step& step) {
    const bool there = index_->contains(step.key);
    index_->insert_ahead(step.key, step.value);
    return !there;
  }

  StepResult reopen() {
    index_.reset();
    settle();
    index_ = Index::open_or_create(pool_, info_, options_);
    return StepResult::write(false);
  }

  /// The index goes, and an empty one takes its name. True if pairs went with it.
  bool drop() {
    const bool changes = index_->size() > 0;
    index_.reset();
    pool_.drop(info_.name);
    settle();
    index_ = Index::open_or_create(pool_, info_, options_);
    return changes;
  }

  const IndexInfo& info_;
  const IndexOptions& options_;
  const Keys& keys_;
  Pool pool_;
  std::unique_ptr<Index> index_;
};

class IndexSubject final : public Subject {
 public:
  /// Its first state comes about in `first_domain`.
  IndexSubject(const IndexInfo& info, const IndexOptions& options, detail::pm::Domain domain,
               detail::pm::Domain first_domain, PoolRoom room)
      : IndexSubject({info, &engine_traits(info.engine), testing::plugins()}, options, domain,
                     first_domain, room, inserts_ahead(info.engine)) {}

  IndexSubject(const PluggedIndex& index, const IndexOptions& options, detail::pm::Domain domain,
               detail::pm::Domain first_domain, PoolRoom room, bool inserts_ahead = false)
      : info_(index.info),
        options_(options),
        domain_(domain),
        first_domain_(first_domain),
        room_(room),
        traits_(*index.traits),
        plugins_(index.plugins),
        inserts_ahead_(inserts_ahead),
        crowded_keys_(crowded_keys(info_.key_kind, traits_)) {}

  /// The options until the first crash.
  void begin_with(const IndexOptions& first) { first_options_ = first; }

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_, room_);
    take_space(medium, random);
    const bool crowded = random.one_in(kCrowdedInterval);
    keys_ = crowded ? &crowded_keys_ : &any_keys(info_.key_kind);
    first_key_ = random.below(kIndexKeys);
    few_keys_ = 1 + random.below(kFewKeys);
    checked_first_ = random.one_in(kCheckedFirstInterval);
    static constexpr std::array<Phase, 5> kPhases = {Phase::grow, Phase::grow, Phase::shrink,
                                                     Phase::mixed, Phase::few};
    // To join empty leaves takes more rounds: what they lack must be missing in one of few moments.
    static constexpr std::array<Phase, 5> kPhasesToJoin = {
        Phase::grow, Phase::shrink, Phase::shrink, Phase::shrink, Phase::mixed};
    const auto& phases = traits_.joins_empty ? kPhasesToJoin : kPhases;
    phase_ = crowded ? Phase::grow : phases[random.below(phases.size())];
    const Shrinking shrinking = bounds_of_shrinking();
    unsigned fill = phase_ == Phase::shrink
                        ? shrinking.least +
                              static_cast<unsigned>(random.below(shrinking.most - shrinking.least))
                        : any_fill(random);
    // With a write buffer a leaf takes some more before it splits.
    if (fill != 0 && detail::index::dram_budget_of(options_) != 0 && random.one_in(2))
      fill += kBuffered;
    State state;
    if (fill == 0) return state;
    OpenedIndex opened(medium, info_, first_options_, options_of_pool(first_domain_), *keys_);
    const auto apply = [&](Action action, const std::string& key) {
      const unsigned settle = action == kErase ? kSettle : 0;  // else nothing is freed
      const Step step{action | settle, key, value_of(info_.value_kind, random)};
      apply_effects(effects(step, state), state);
      opened.apply(step);
    };
    for (const std::string& key : first_keys(random, fill)) apply(kPut, key);
    const std::size_t left = phase_ == Phase::shrink ? shrinking.left + random.below(4) : fill;
    while (state.size() > left) apply(kErase, any_key(random, state, {kIndexKeys, 0, 1}, true));
    opened.close();
    if (room_ == PoolRoom::none) take_all_space(medium, random);
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedIndex>(medium, info_, options_, options_of_pool(domain_), *keys_,
                                         checked_first_);
  }

  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    const bool few = phase_ == Phase::few || (threads > 1 && phase_ == Phase::mixed);
    const Own own{few ? few_keys_ : kIndexKeys / threads, thread, threads};
    if (threads > 1 && random.one_in(few ? 2 : 4))
      return {kGet, nth_key(random.below(own.count * threads)), ""};
    // In a full pool another index can't take the place of the one that goes.
    if (threads == 1 && room_ == PoolRoom::enough && random.one_in(kDropInterval))
      return {kDrop | kSettle, "", ""};
    if (threads == 1 && random.one_in(kReopenInterval)) return {kReopen | kSettle, "", ""};
    const bool usual = !random.one_in(4);
    unsigned action = static_cast<unsigned>(random.below(kDrop));
    if (usual && phase_ == Phase::grow) action = kInsert;
    if (usual && phase_ == Phase::shrink) action = kErase;
    if (inserts_ahead_ && action == kInsert && random.one_in(2)) action = kAhead;
    const bool present =
        action == kUpdate || action == kErase ? !random.one_in(8) : random.one_in(4);
    const std::string& key = any_key(random, state, own, present);
    const bool to_join = phase_ == Phase::shrink && traits_.joins_empty;
    const unsigned one_in = to_join ? kReclaimToJoinInterval : kReclaimInterval;
    if (threads == 1) action |= random.one_in(one_in) ? kReclaim | kSettle : kSettle;
    if (traits_.uses_background && random.one_in(kBackgroundInterval)) action |= kBackground;
    return {action, key, value_of(info_.value_kind, random)};
  }

  Effects effects(const Step& step, const State& state) const override {
    const bool there = state.contains(step.key);
    switch (step.action & kActionMask) {
      case kPut: return {{step.key, step.value}};
      case kInsert:
      case kAhead: return there ? Effects{} : Effects{{step.key, step.value}};
      case kUpdate: return there ? Effects{{step.key, step.value}} : Effects{};
      case kErase: return there ? Effects{{step.key, std::nullopt}} : Effects{};
      case kExchange:
        if (there && is_odd(step.value)) return {{step.key, std::nullopt}};
        return {{step.key, step.value}};
      case kDrop: return erasure_of(state);
      default: return {};
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, kActions> kNames = {
        "put", "insert", "update", "erase", "update_with", "get", "drop", "reopen", "insert_ahead"};
    const unsigned action = step.action & kActionMask;
    if (action == kDrop || action == kReopen) return fmt::format("{}()", kNames[action]);
    const bool background = (step.action & kBackground) != 0;
    return fmt::format("{}({}, {} bytes){}", kNames[action], show(step.key), step.value.size(),
                       background ? ", then what waits for the background" : "");
  }

 private:
  enum class Phase { grow, shrink, mixed, few };

  PoolOptions options_of_pool(detail::pm::Domain domain) const {
    PoolOptions options = pool_options(domain, room_);
    options.plugins = plugins_;
    return options;
  }

  /// Another index takes all the space, in blocks of all sizes, and gives a few back.
  void take_all_space(Medium& medium, detail::util::Random& random) const {
    Pool pool = Pool::open(medium.path(), options_of_pool(domain_));
    const auto ballast =
        Index::open_or_create(pool, {"ballast", "fastfair", Kind::u64, Kind::bytes});
    std::uint64_t key = 0;
    for (std::size_t size = std::size_t{1} << 20; size > 16; size -= size / 3) {
      const std::string value(size, 'b');
      try {
        for (;; ++key) ballast->put(bytes_of_number(key), value);
      } catch (const Error& error) {
        if (error.code() != Errc::out_of_space) throw;
      }
    }
    for (std::uint64_t i = random.below(8); i > 0; --i)
      ballast->erase(bytes_of_number(random.below(key)));
  }

  /// A thread's own keys: `count` of them, every `threads`-th one.
  struct Own {
    std::uint64_t count;
    unsigned thread;
    unsigned threads;

    std::uint64_t number(std::uint64_t i) const { return i % count * threads + thread; }
  };

  /// Gives the pool another index, so that blocks do not lie at the same offsets in each round.
  void take_space(Medium& medium, detail::util::Random& random) const {
    Pool pool = Pool::open(medium.path(), options_of_pool(domain_));
    IndexInfo info = info_;
    info.name = "another";
    IndexOptions options = options_;
    options.named.erase("dram_budget");
    options.resume_in_background = false;
    const std::unique_ptr<Index> another = Index::open_or_create(pool, info, options);
    for (std::uint64_t i = random.below(kPairsOfAnother); i > 0; --i)
      another->put(bytes_of_number(i), bytes_of_number(i));
  }

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

  /// How many pairs to begin with. None: the workload makes the index.
  unsigned any_fill(detail::util::Random& random) const {
    return traits_.fills[random.below(traits_.fills.size())];
  }

  /// How many pairs to begin with where leaves are to be joined, below `most`; and how many of them
  /// are left, or few more.
  struct Shrinking {
    unsigned least;
    unsigned most;
    unsigned left;
  };

  /// Two sparse leaves, with few more pairs than makes one of them; or several that are empty.
  Shrinking bounds_of_shrinking() const {
    if (traits_.joins_empty) return {2 * traits_.most, 4 * traits_.most, 1};
    const unsigned sparse = of_sparse_neighbours(traits_);
    return {2 * sparse, 6 * sparse - 8, sparse + 1};
  }

  /// Keys to begin with: in any order, or, since that leaves full leaves behind, ascending but for
  /// those of one leaf.
  Keys first_keys(detail::util::Random& random, unsigned count) const {
    Keys keys = *keys_;
    std::shuffle(keys.begin(), keys.end(), random);
    keys.resize(count);
    if (random.one_in(3)) return keys;
    std::sort(keys.begin(), keys.end());
    const std::size_t leaf = traits_.most;
    for (std::size_t begin = 0; begin < keys.size(); begin += leaf) {
      const std::size_t end = std::min(begin + leaf, keys.size());
      std::shuffle(keys.begin() + static_cast<long>(begin), keys.begin() + static_cast<long>(end),
                   random);
    }
    return keys;
  }

  const std::string& nth_key(std::uint64_t number) const {
    return (*keys_)[(first_key_ + number) % kIndexKeys];
  }

  /// A key of a thread's own that is present or not, if there is one near the one that is drawn.
  const std::string& any_key(detail::util::Random& random, const State& state, const Own& own,
                             bool present) const {
    const std::uint64_t start = random.below(own.count);
    for (std::uint64_t i = 0; i < own.count; ++i) {
      const std::string& key = nth_key(own.number(start + i));
      if (state.contains(key) == present) return key;
    }
    return nth_key(own.number(start));
  }

  const IndexInfo info_;
  const IndexOptions options_;
  IndexOptions first_options_ = options_;
  detail::pm::Domain domain_;
  detail::pm::Domain first_domain_;
  PoolRoom room_;
  const detail::index::EngineTraits& traits_;
  const std::vector<const tips::Plugin*> plugins_;
  const bool inserts_ahead_;
  const Keys crowded_keys_;
  Phase phase_ = Phase::mixed;
  const Keys* keys_ = nullptr;  // of the round
  std::uint64_t first_key_ = 0;
  std::uint64_t few_keys_ = 1;
  bool checked_first_ = false;
};

}  // namespace

Step erase_step(std::string key) { return {kErase | kSettle, std::move(key), ""}; }

Step put_step(std::string key, Kind value_kind, detail::util::Random& random) {
  return {kPut | kSettle, std::move(key), value_of(value_kind, random)};
}

std::unique_ptr<Subject> make_index_subject(const IndexInfo& info, const IndexOptions& options,
                                            detail::pm::Domain domain) {
  return std::make_unique<IndexSubject>(info, options, domain, domain, PoolRoom::enough);
}

std::unique_ptr<Subject> make_moved_index_subject(const IndexInfo& info, const IndexOptions& first,
                                                  const IndexOptions& options,
                                                  detail::pm::Domain domain) {
  auto moved = std::make_unique<IndexSubject>(info, options, domain, detail::pm::Domain::cpu_cache,
                                              PoolRoom::enough);
  moved->begin_with(first);
  return moved;
}

std::unique_ptr<Subject> make_full_index_subject(const IndexInfo& info, const IndexOptions& options,
                                                 detail::pm::Domain domain) {
  return std::make_unique<IndexSubject>(info, options, domain, domain, PoolRoom::none);
}

std::unique_ptr<Subject> make_plugged_index_subject(const PluggedIndex& index, bool full,
                                                    detail::pm::Domain domain) {
  IndexOptions options;
  options.resume_in_background = false;
  return std::make_unique<IndexSubject>(index, options, domain, domain,
                                        full ? PoolRoom::none : PoolRoom::enough);
}

}  // namespace perdix::testing
