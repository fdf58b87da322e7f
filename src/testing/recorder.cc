#include "testing/recorder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

namespace perdix::testing {
namespace {

constexpr std::uint64_t kWord = 8;

}  // namespace

Recorder::Recorder(std::uint64_t size) : size_(size), previous_(detail::pm::install_probe(this)) {
  detail::pm::watch_reads(false);
}

Recorder::~Recorder() { detail::pm::install_probe(previous_); }

void Recorder::start(std::uint64_t seed, bool alone) {
  const std::lock_guard lock(mutex_);
  alone_ = alone;
  trace_.clear();
  random_ = detail::util::Random(seed);
  draws_ = detail::util::Random(~seed);
  choose_limits(seed);
  threads_ = {std::this_thread::get_id()};
  base_ = nullptr;
  recording_ = true;
}

void Recorder::draw_from(std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  alone_ = true;
  draws_ = detail::util::Random(seed);
  choose_limits(seed);
}

Trace Recorder::stop() {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  return std::exchange(trace_, {});
}

void Recorder::enter(unsigned number) {
  const std::lock_guard lock(mutex_);
  const std::size_t thread = first_worker_ + number;
  if (threads_.size() <= thread) threads_.resize(thread + 1);
  threads_[thread] = std::this_thread::get_id();
}

void Recorder::take_turns(Turns* turns) {
  const std::lock_guard lock(mutex_);
  turns_ = turns;
  detail::pm::watch_reads(turns != nullptr);
  first_worker_ = static_cast<unsigned>(threads_.size());
  std::fill(threads_.begin() + 1, threads_.end(), std::thread::id());
}

unsigned Recorder::thread_number() {
  const auto it = std::find(threads_.begin(), threads_.end(), std::this_thread::get_id());
  return it == threads_.end() ? kStranger : static_cast<unsigned>(it - threads_.begin());
}

/// kStranger if the calling thread takes none.
unsigned Recorder::number_in_turns() {
  const std::lock_guard lock(mutex_);
  const unsigned thread = recording_ ? thread_number() : kStranger;
  return takes_turns(thread) ? thread - first_worker_ : kStranger;
}

void Recorder::take_turn(Turns::At at) {
  Turns* const turns = turns_.load(std::memory_order_acquire);
  if (turns == nullptr) return;
  const unsigned worker = number_in_turns();
  if (worker != kStranger) turns->event(worker, at);
}

void Recorder::on_yield() {
  Turns* const turns = turns_.load(std::memory_order_acquire);
  const unsigned worker = turns == nullptr ? kStranger : number_in_turns();
  if (worker == kStranger) {
    give_up_processor();
  } else {
    turns->yield(worker);
  }
}

bool Recorder::watched(const void* p, std::size_t n) const {
  if (!recording_ || base_ == nullptr) return false;
  const auto offset = static_cast<const std::byte*>(p) - base_;
  return offset >= 0 && static_cast<std::uint64_t>(offset) + n <= size_;
}

void Recorder::add(Event event) { trace_.push_back(event); }

void Recorder::mark(Event::Kind kind, std::uint32_t id) {
  take_turn(Turns::At::other);
  const std::lock_guard lock(mutex_);
  add({kind, static_cast<std::uint8_t>(thread_number()), 0, id, 0, 0});
}

void Recorder::on_read(const void*, std::size_t) { take_turn(Turns::At::other); }

void Recorder::before_write(const void*, std::size_t) { take_turn(Turns::At::store); }

void Recorder::on_write(const void* p, std::size_t n) {
  const std::lock_guard lock(mutex_);
  const unsigned thread = thread_number();
  if (watched(p, n)) {
    const std::uint64_t begin = offset_of(p), end = begin + n;
    words_.clear();
    for (std::uint64_t word = begin / kWord * kWord; word < end; word += kWord)
      words_.push_back(word);
    const std::uint64_t order = random_.below(4);
    if (order == 1) std::reverse(words_.begin(), words_.end());
    if (order == 2) std::shuffle(words_.begin(), words_.end(), random_);
    for (const std::uint64_t word : words_)
      add_store(thread, std::max(word, begin), std::min(word + kWord, end));
  }
  Turns* const turns = turns_.load(std::memory_order_acquire);
  if (turns != nullptr && takes_turns(thread)) turns->done(thread - first_worker_);
}

void Recorder::add_store(unsigned thread, std::uint64_t offset, std::uint64_t end) {
  Event event{Event::Kind::store,
              static_cast<std::uint8_t>(thread),
              static_cast<std::uint8_t>(end - offset),
              0,
              offset,
              0};
  std::memcpy(&event.value, base_ + offset, end - offset);
  add(event);
}

bool Recorder::on_flush(const void* p, std::size_t n, const detail::pm::Site& site) {
  take_turn(Turns::At::persist);
  const std::lock_guard lock(mutex_);
  return add_flush(thread_number(), p, n, site);
}

/// One piece of the recording, as a commit is.
bool Recorder::on_publish_for_next(std::uint64_t& word, std::uint64_t value,
                                   const detail::pm::Site& site) {
  take_turn(Turns::At::persist);
  const std::lock_guard lock(mutex_);
  if (!watched(&word, sizeof word)) return true;
  const auto thread = static_cast<std::uint8_t>(thread_number());
  add({Event::Kind::store, thread, kWord, 0, offset_of(&word), value});
  return add_flush(Event::kAllThreads, &word, sizeof word, site);
}

bool Recorder::add_flush(unsigned thread, const void* p, std::size_t n,
                         const detail::pm::Site& site) {
  if (!watched(p, n)) return true;
  const std::uint32_t number = sites_.number(site);
  sites_.count(number, Event::Kind::flush);
  add({Event::Kind::flush, static_cast<std::uint8_t>(thread), 0, number, offset_of(p), n});
  return false;
}

bool Recorder::on_fence(const detail::pm::Site& site) {
  take_turn(Turns::At::persist);
  const std::lock_guard lock(mutex_);
  if (!recording_) return true;
  const std::uint32_t number = sites_.number(site);
  sites_.count(number, Event::Kind::fence);
  add({Event::Kind::fence, static_cast<std::uint8_t>(thread_number()), 0, number, 0, 0});
  return false;
}

/// One piece of the recording: nothing of another thread comes between.
bool Recorder::on_commit(std::span<const detail::pm::Change> changes,
                         const detail::pm::Site& site) {
  take_turn(Turns::At::persist);
  const std::lock_guard lock(mutex_);
  if (!recording_) return true;
  const std::uint32_t number = sites_.number(site);
  const auto thread = static_cast<std::uint8_t>(thread_number());
  sites_.count(number, Event::Kind::flush);
  sites_.count(number, Event::Kind::fence);
  add({Event::Kind::fence, thread, 0, number, 0, 0});
  std::map<std::uint64_t*, std::uint64_t> words;
  for (const detail::pm::Change& change : changes) {
    const std::uint64_t before = words.try_emplace(change.word, *change.word).first->second;
    words[change.word] = change.of(before);
    add({Event::Kind::commit, thread, kWord, number, offset_of(change.word), words[change.word]});
  }
  add({Event::Kind::committed, thread, 0, number, 0, 0});
  return false;
}

void Recorder::on_step(const char* name) {
  take_turn(Turns::At::other);
  const std::lock_guard lock(mutex_);
  if (recording_) ++steps_[name];
}

/// In some sessions nodes in DRAM have few children, so few leaves have nodes above nodes, and the
/// backup log of ElimDa has many regions; and logs are replayed and reclaimed after a few writes,
/// and tables compacted after a few inserts.
void Recorder::choose_limits(std::uint64_t seed) {
  constexpr std::uint64_t kSmallInterval = 3, kLongInterval = 4, kMaxLogged = 16;
  detail::util::Random random(seed);
  children_ = random.one_in(kSmallInterval) ? 2 + random.below(3) : 0;
  logged_ = random.one_in(kLongInterval) ? 0 : 1 + random.below(kMaxLogged);
}

std::uint64_t Recorder::on_limit(const char* name, std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  const std::string_view what(name);
  // Twice the largest record of the subjects is the least.
  constexpr std::uint64_t kMinRing = 24;
  if (what == "tips: lines of a new ring")
    return logged_ != 0 ? std::min(limit, kMinRing + logged_) : limit;
  const bool is_logged = what.starts_with("tips: ") || what == "elf: rows beside the lists";
  if (is_logged && logged_ != 0) return std::min(limit, logged_);
  if (what.starts_with("elimda: ")) return children_ != 0 ? std::min(limit, children_ - 1) : limit;
  const bool of_a_node = what.ends_with("children of a node");
  return of_a_node && children_ != 0 ? std::min(limit, children_) : limit;
}

std::uint64_t Recorder::on_draw(std::uint64_t) {
  const std::lock_guard lock(mutex_);
  return draws_();
}

void Recorder::on_map(const void* base, std::size_t) {
  const std::lock_guard lock(mutex_);
  base_ = static_cast<const std::byte*>(base);
}

}  // namespace perdix::testing
