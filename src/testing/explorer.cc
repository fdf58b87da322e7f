#include "testing/explorer.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::testing {
namespace {

/// Reads all of the medium, so it runs only after one image in this many.
constexpr std::uint64_t kStrayCheck = 1024;

/// Rounds that may begin with all images of a moment that has too many for a round.
constexpr std::uint64_t kLargeInterval = 16;

/// Of the images of a round or a nested session, those that other such moments get, one each.
constexpr std::uint64_t kLargeMomentInterval = 4;

/// As many images as a moment has.
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

/// A deep round has this many times fewer images, and its sessions are crashed in turn.
constexpr std::uint64_t kDeepImages = 4;
constexpr std::uint64_t kDeepNestedInterval = 2;

/// How often threads change turns: at one in 2 events, in other rounds in up to 32, so that one can
/// come to the end of its call while another is between a store and its fence.
constexpr std::uint64_t kFastestSwitching = 2;
constexpr std::uint64_t kSwitchings = 5;

/// Sessions that write before they have looked, and how many steps at most.
constexpr std::uint64_t kWritesFirstInterval = 3;
constexpr unsigned kFirstSteps = 12;

void write_first(SessionPlan& plan, const Expectation& known) {
  plan.known = &known;
  plan.first_steps = kFirstSteps;
}

/// Sessions that open an image are crashed at few moments, so at none with very many images.
constexpr std::uint64_t kNestedExhaustive = 64;
constexpr std::uint64_t kNestedSamples = 8;

bool is_moment(const Event& event, bool new_version) {
  // A flush or a fence only takes images away; when a step returns, fewer of the images are
  // allowed.
  return new_version || event.kind == Event::Kind::end || event.kind == Event::Kind::observe ||
         event.kind == Event::Kind::committed;
}

/// Rather more rounds with a flush or fence suppressed than one moment with thousands of images.
constexpr std::uint64_t kSuppressedExhaustive = 256;

ImageLimits limits_of(const ExplorerOptions& options, bool nested) {
  ImageLimits limits = options.limits;
  if (!options.suppressed_site.empty())
    limits.exhaustive = std::min(limits.exhaustive, kSuppressedExhaustive);
  if (nested) {
    limits.exhaustive = std::min(limits.exhaustive, kNestedExhaustive);
    limits.samples = std::min(limits.samples, kNestedSamples);
  }
  return limits;
}

std::string describe(const Subject& subject, const Session& session, std::uint64_t index) {
  const Event& event = session.trace[index];
  std::string text = fmt::format("event {} of {}", index, session.trace.size());
  if (event.kind == Event::Kind::store)
    text += fmt::format(", a store of {} bytes at {:#x} by thread {}", event.size, event.offset,
                        event.thread);
  std::vector<std::uint32_t> under_way;
  for (std::uint64_t i = 0; i <= index; ++i) {
    if (session.trace[i].kind == Event::Kind::begin) under_way.push_back(session.trace[i].id);
    if (session.trace[i].kind == Event::Kind::end) std::erase(under_way, session.trace[i].id);
  }
  if (event.kind == Event::Kind::committed)
    text += fmt::format(", a commit of thread {}", event.thread);
  if (event.kind == Event::Kind::end)
    text += ", the return of " + subject.describe(session.calls[event.id].step);
  if (event.kind == Event::Kind::observe) text += ", when the contents had been read";
  for (const std::uint32_t step : under_way)
    text += ", in " + subject.describe(session.calls[step].step);
  return text;
}

}  // namespace

std::string to_string(const Path& path) {
  std::string text;
  for (const Place& place : path)
    text += fmt::format("{}{}:{}", text.empty() ? "" : "/", place.event, place.image);
  return text;
}

Path parse_path(const std::string& text) {
  Path path;
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&](std::uint64_t& to) {
    const auto [next, error] = std::from_chars(at, end, to);
    if (error != std::errc())
      throw Error(Errc::invalid_argument,
                  fmt::format("'{}' is not a path event:image/event:image", text));
    at = next;
  };
  while (at < end) {
    Place place{};
    number(place.event);
    if (at < end && *at == ':') ++at;
    number(place.image);
    if (at < end && *at == '/') ++at;
    path.push_back(place);
  }
  return path;
}

Explorer::Explorer(Subject& subject, const ExplorerOptions& options)
    : subject_(subject), options_(options), recorder_(subject.size()), stage_(subject.size()) {}

std::optional<Failure> Explorer::round(std::uint64_t seed) {
  wanted_.clear();
  return start(seed);
}

std::optional<Failure> Explorer::replay(std::uint64_t seed, const Path& path) {
  wanted_ = path;
  return start(seed);
}

std::optional<Failure> Explorer::start(std::uint64_t seed) {
  seed_ = seed;
  deep_ = detail::util::Random(~seed).one_in(options_.deep_one_in);
  stop_ = false;
  failure_.reset();
  verdicts_.clear();
  ++counts_.rounds;
  detail::util::Random random(seed);
  recorder_.draw_from(random());
  State first;
  try {
    first = subject_.create(stage_.medium(), random);
  } catch (const std::exception& error) {
    return Failure{seed, {}, "the first state, without a crash", {error.what()}};
  }
  stage_.adopt();
  first_hash_ = content_hash(stage_.bytes(), subject_.size());
  SessionPlan plan{random(), options_.threads, options_.steps};
  plan.switching = kFastestSwitching << random.below(kSwitchings);
  const Expectation known(subject_, first);
  if (random.one_in(kWritesFirstInterval)) write_first(plan, known);
  const Session workload = run_session(subject_, stage_.medium(), recorder_, plan);
  counts_.events += workload.trace.size();
  stage_.restore(workload.trace);
  Problems problems = workload.problems;
  const Expectation at_look = known.at_first_look(workload.trace, workload.calls);
  if (workload.opened && !at_look.allows(digest(workload.observed)))
    problems.push_back("the first state is not what was created, and written to since");
  if (!problems.empty()) return Failure{seed, {}, "the workload, without a crash", problems};
  check_for_strays({});
  if (!failure_) explore({workload, known, {}, 0});
  return failure_;
}

void Explorer::explore(Level level) {
  const Trace& trace = level.session.trace;
  const bool replaying = !wanted_.empty();
  const std::uint64_t wanted = replaying ? wanted_[level.path.size()].event : 0;
  if (replaying && wanted >= trace.size()) {
    throw Error(Errc::invalid_argument,
                fmt::format("there is no event {} at level {}: the session has {}", wanted,
                            level.path.size(), trace.size()));
  }
  const std::vector<std::uint64_t> chosen =
      replaying ? std::vector<std::uint64_t>(trace.size()) : choose_moments(level);
  Models models = this->models();
  const std::size_t mark = stage_.mark();
  for (std::uint64_t i = 0; i < trace.size() && !stop_; ++i) {
    level.expected.apply(trace[i], level.session.calls, level.session.observed);
    models.apply(trace[i]);
    for (const CrashModel::Unit* unit : models.model.changes())
      stage_.patch(unit->offset, unit->persisted.data(), unit->persisted.size());
    if (chosen[i] != 0 || (replaying && i == wanted)) look_at(level, models, i, chosen[i]);
  }
  stage_.rollback(mark);
}

Explorer::Models Explorer::models() {
  const std::optional<Suppression> suppressed = suppression();
  Models models{CrashModel(options_.domain, stage_.bytes(), suppressed), std::nullopt};
  if (suppressed) models.sound.emplace(options_.domain, stage_.bytes(), std::nullopt);
  return models;
}

std::vector<Explorer::Moment> Explorer::moments(const Level& level) {
  const Trace& trace = level.session.trace;
  const ImageLimits limits = limits_of(options_, !level.path.empty());
  std::vector<Moment> moments;
  Models models = this->models();
  Expectation expected = level.expected;
  std::uint64_t stretch = 0;
  for (std::uint64_t i = 0; i < trace.size(); ++i) {
    const bool new_version = models.apply(trace[i]);
    expected.apply(trace[i], level.session.calls, level.session.observed);
    if (trace[i].kind == Event::Kind::fence || trace[i].kind == Event::Kind::flush) ++stretch;
    if (!is_moment(trace[i], new_version)) continue;
    const ImageSet images = models.images(new_version, limits, 0);
    // The returns of steps are stretches of their own: there all effects that were seen must be
    // durable.
    const bool returns = trace[i].kind == Event::Kind::end;
    moments.push_back({i, images.size(), images.due(), 2 * stretch + (returns ? 1 : 0), 0,
                       expected.saw_undecided()});
  }
  return moments;
}

/// Draws moments until their images are as many as wanted. All stretches, from one flush or fence
/// to the next, have a moment before any has a second one: a stretch with many stores (pairs that
/// are copied) would push aside those with few, where the commits are. Returns how many images are
/// judged, by event.
std::vector<std::uint64_t> Explorer::choose_moments(const Level& level) {
  std::vector<Moment> all = moments(level);
  detail::util::Random random(seed_of(level.path));
  std::shuffle(all.begin(), all.end(), random);
  std::unordered_map<std::uint64_t, std::uint64_t> turns;
  for (Moment& moment : all) moment.turn = turns[moment.stretch]++;
  std::stable_sort(all.begin(), all.end(),
                   [](const Moment& a, const Moment& b) { return a.turn < b.turn; });
  const std::uint64_t of_round = options_.images_of_round / (deep_ ? kDeepImages : 1);
  const std::uint64_t wanted = level.path.empty() ? of_round : options_.images_of_nested;
  std::vector<std::uint64_t> chosen(level.session.trace.size());
  std::uint64_t images = 0;
  const auto choose = [&](const Moment& moment, std::uint64_t cost, std::uint64_t limit) {
    if (chosen[moment.event] != 0 || images + cost > limit) return;
    chosen[moment.event] = kAll;
    images += cost;
  };
  if (suppression()) {
    for (const Moment& moment : all) {
      if (moment.due > 0) choose(moment, moment.due, images == 0 ? moment.due : wanted / 2);
    }
    // Where nothing is due, few images are opened.
    for (Moment& moment : all) moment.images = 1 + moment.images / options_.nested_one_in;
  } else if (!all.empty() && random.one_in(kLargeInterval)) {
    // Sometimes a moment with more images than that is judged, and then little else.
    choose(all.front(), all.front().images, all.front().images);
  }
  if (!suppression()) {
    // Few moments show a dirty read, so none is left to chance. Of one with more images than there
    // is room for, the first: all is old, also what was seen.
    for (const Moment& moment : all) {
      if (!moment.seen) continue;
      choose(moment, moment.images, wanted / 2);
      if (chosen[moment.event] == 0) chosen[moment.event] = 1;
    }
  }
  for (const Moment& moment : all) choose(moment, moment.images, wanted);
  if (!suppression()) {
    // And of some with more images than that, such as the commit behind a block that was copied,
    // the first one: all is old, at a store all but this one.
    std::uint64_t left = 1 + wanted / kLargeMomentInterval;
    for (const Moment& moment : all) {
      if (left == 0) break;
      if (moment.images <= wanted || chosen[moment.event] != 0) continue;
      chosen[moment.event] = 1;
      --left;
    }
  }
  return chosen;
}

void Explorer::look_at(const Level& level, const Models& models, std::uint64_t event,
                       std::uint64_t most) {
  const bool only_new = level.session.trace[event].kind == Event::Kind::store;
  const ImageSet images = models.images(only_new, limits_of(options_, !level.path.empty()),
                                        seed_of(level.path) ^ event);
  ++counts_.moments;
  if (images.exhaustive() && images.size() <= most) ++counts_.exhaustive;
  if (!wanted_.empty()) {
    const std::uint64_t wanted = wanted_[level.path.size()].image;
    if (wanted >= images.size())
      throw Error(Errc::invalid_argument,
                  fmt::format("event {} has only {} images", event, images.size()));
    return judge(level, images.image(wanted), {event, wanted});
  }
  for (std::uint64_t i = 0; i < std::min(images.size(), most) && !stop_; ++i)
    judge(level, images.image(i), {event, i});
}

void Explorer::judge(const Level& level, const Image& image, Place place) {
  Path path = level.path;
  path.push_back(place);
  const bool judged = !suppression() || image.due || !wanted_.empty();
  if (!judged && !crashes_again(path)) return;
  ++counts_.states;
  const std::uint64_t hash = level.hash + image.hash;
  // Where steps come first, what they are depends on more than the image.
  const bool writes_first = this->writes_first(path);
  const auto known = writes_first ? verdicts_.end() : verdicts_.find(hash);
  if (known != verdicts_.end() && known->second.sound &&
      level.expected.allows(known->second.digest))
    return;
  if (options_.before_image && !options_.before_image(seed_, path)) {
    stop_ = true;
    return;
  }
  const std::size_t mark = stage_.mark();
  std::vector<std::byte> bytes;
  for (const Image::Part& part : image.parts) {
    bytes.resize(part.unit->persisted.size());
    part.unit->render(part.version, bytes.data());
    stage_.patch(part.unit->offset, bytes.data(), bytes.size());
  }
  const Session session = open_image(path, writes_first ? &level.expected : nullptr);
  const Verdict verdict{digest(session.observed), session.opened && session.problems.empty()};
  std::optional<Expectation> changed;
  if (writes_first) {
    changed = level.expected.after_crash().at_first_look(session.trace, session.calls);
  } else {
    verdicts_.insert_or_assign(hash, verdict);
  }
  const Expectation& expected = changed ? *changed : level.expected;
  if (seen_.insert(first_hash_ + hash).second) {
    ++counts_.images;
    ++counts_.by_level[level.path.size()];
  }
  if (++counts_.opened % kStrayCheck == 0) check_for_strays(path);
  if (!verdict.sound || !expected.allows(verdict.digest)) {
    fail(level, expected, path, session);
  } else if (!stop_ && crashes_again(path)) {
    explore({session, level.expected.after_crash(), path, hash});
  }
  stage_.rollback(mark);
}

Session Explorer::open_image(const Path& path, const Expectation* known) {
  SessionPlan plan{seed_of(path), 1, options_.steps_after};
  if (known != nullptr) write_first(plan, *known);
  Session session = run_session(subject_, stage_.medium(), recorder_, plan);
  stage_.restore(session.trace);
  return session;
}

/// Whether the session that opens the image writes before it has read anything.
bool Explorer::writes_first(const Path& path) const {
  return detail::util::Random(seed_of(path) + 1).one_in(kWritesFirstInterval);
}

/// Whether the session that opens the image is crashed in turn.
bool Explorer::crashes_again(const Path& path) const {
  if (path.size() > kNestedLevels) return false;
  if (!wanted_.empty()) return path.size() < wanted_.size();
  const bool deep = deep_ && path.size() == 1;
  return detail::util::Random(~seed_of(path))
      .one_in(deep ? kDeepNestedInterval : options_.nested_one_in);
}

void Explorer::fail(const Level& level, const Expectation& expected, const Path& path,
                    const Session& session) {
  Problems problems = session.problems;
  if (session.opened && !expected.allows(digest(session.observed))) {
    const Problems reasons = expected.explain(session.observed);
    problems.insert(problems.end(), reasons.begin(), reasons.end());
  }
  failure_ = Failure{seed_, path, describe(subject_, level.session, path.back().event), problems};
  stop_ = true;
  if (options_.on_failure) options_.on_failure(stage_.bytes(), subject_.size());
}

void Explorer::check_for_strays(const Path& path) {
  const std::optional<std::uint64_t> offset = stage_.difference();
  if (!offset) return;
  failure_ = Failure{
      seed_,
      path,
      "a session that was not crashed",
      {fmt::format("a store at offset {:#x} went past the seam, so no crash of it was explored",
                   *offset)}};
  stop_ = true;
}

std::uint64_t Explorer::seed_of(const Path& path) const {
  std::uint64_t state = seed_;
  for (const Place& place : path) {
    state = detail::util::splitmix64(state) ^ place.event;
    state = detail::util::splitmix64(state) ^ place.image;
  }
  return detail::util::splitmix64(state);
}

std::optional<Suppression> Explorer::suppression() {
  if (options_.suppressed_site.empty()) return std::nullopt;
  return Suppression{recorder_.sites().number(options_.suppressed_site), options_.suppressed_kind};
}

}  // namespace perdix::testing
