#include "testing/crash_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "util/random.h"

namespace perdix::testing {
namespace {

/// Of a word, by its number, that holds a value.
std::uint64_t word_hash(std::uint64_t number, std::uint64_t value) {
  if (value == 0) return 0;
  std::uint64_t state = number;
  state = detail::util::splitmix64(state) ^ value;
  return detail::util::splitmix64(state);
}

std::uint64_t word_at(const std::vector<std::byte>& unit, std::uint64_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, unit.data() + at / sizeof(word) * sizeof(word), sizeof(word));
  return word;
}

}  // namespace

std::uint64_t content_hash(const std::byte* bytes, std::uint64_t size) {
  using Line = std::array<std::uint64_t, detail::pm::kLineSize / sizeof(std::uint64_t)>;
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < size; at += sizeof(Line)) {
    Line line;
    std::memcpy(&line, bytes + at, sizeof line);
    // Most of a medium is zeros, which add nothing.
    if (std::accumulate(line.begin(), line.end(), std::uint64_t{0}, std::bit_or()) == 0) continue;
    for (std::uint64_t i = 0; i < line.size(); ++i)
      sum += word_hash(at / sizeof line[0] + i, line[i]);
  }
  return sum;
}

void CrashModel::Unit::render(std::size_t version, std::byte* to) const {
  std::memcpy(to, persisted.data(), persisted.size());
  for (std::size_t i = 0; i < version; ++i)
    std::memcpy(to + stores[i].at, &stores[i].value, stores[i].size);
}

CrashModel::CrashModel(detail::pm::Domain domain, const std::byte* memory,
                       std::optional<Suppression> suppressed)
    : domain_(domain),
      memory_(memory),
      suppressed_(suppressed),
      unit_size_(detail::pm::kLineSize) {}

bool CrashModel::apply(const Event& event) {
  newest_ = nullptr;
  const bool suppressed =
      suppressed_ && suppressed_->kind == event.kind && suppressed_->site == event.id;
  switch (event.kind) {
    case Event::Kind::store: return store(event);
    case Event::Kind::flush:
      if (!suppressed) flush(event);
      return false;
    case Event::Kind::fence:
      if (!suppressed) fence(event.thread);
      return false;
    case Event::Kind::commit: commit(event); return false;
    default: return false;
  }
}

std::vector<const CrashModel::Unit*> CrashModel::changes() {
  std::vector<const Unit*> result(changed_.begin(), changed_.end());
  changed_.clear();
  return result;
}

CrashModel::Unit& CrashModel::unit_at(std::uint64_t offset) {
  const std::uint64_t begin = offset / unit_size_ * unit_size_;
  std::unique_ptr<Unit>& unit = units_[begin];
  if (!unit) {
    const std::vector<std::byte> bytes(memory_ + begin, memory_ + begin + unit_size_);
    unit = std::make_unique<Unit>(Unit{begin, bytes, bytes, {}, 0});
  }
  return *unit;
}

bool CrashModel::store(const Event& event) {
  Unit& unit = unit_at(event.offset);
  const std::uint64_t at = event.offset - unit.offset;
  if (std::memcmp(unit.current.data() + at, &event.value, event.size) == 0)
    return false;  // no new version
  const std::uint64_t word = event.offset / sizeof(std::uint64_t);
  const std::uint64_t before = word_hash(word, word_at(unit.current, at));
  std::memcpy(unit.current.data() + at, &event.value, event.size);
  const std::uint64_t change = word_hash(word, word_at(unit.current, at)) - before;
  unit.stores.push_back({static_cast<std::uint16_t>(at), event.size, event.value,
                         unit.hash(unit.stores.size()) + change});
  dirty_[unit.offset] = &unit;
  newest_ = &unit;
  if (domain_ == detail::pm::Domain::cpu_cache)  // a store is durable when it is made
    persist(unit, unit.persisted_version + unit.stores.size());
  return true;
}

/// Durable with all that was stored before it in its line, which is how the line was written. If
/// the flush is suppressed it is a store like any other.
void CrashModel::commit(const Event& event) {
  store(event);
  newest_ = nullptr;
  const bool suppressed =
      suppressed_ && suppressed_->kind == Event::Kind::flush && suppressed_->site == event.id;
  if (suppressed) return;
  Unit& unit = unit_at(event.offset);
  persist(unit, unit.persisted_version + unit.stores.size());  // as its line was written
}

void CrashModel::flush(const Event& event) {
  const std::uint64_t begin = event.offset / unit_size_ * unit_size_;
  const std::uint64_t end = (event.offset + event.value + unit_size_ - 1) / unit_size_ * unit_size_;
  for (auto it = dirty_.lower_bound(begin); it != dirty_.end() && it->first < end; ++it) {
    Unit& unit = *it->second;
    flushed_[event.thread].push_back({&unit, unit.persisted_version + unit.stores.size()});
  }
}

void CrashModel::fence(unsigned thread) {
  if (thread != Event::kAllThreads) fence(Event::kAllThreads);
  const auto flushed = flushed_.find(thread);
  if (flushed == flushed_.end()) return;
  for (const Flushed& one : flushed->second) persist(*one.unit, one.version);
  flushed_.erase(flushed);
}

void CrashModel::persist(Unit& unit, std::uint64_t version) {
  if (version <= unit.persisted_version) return;
  const std::size_t count = version - unit.persisted_version;
  std::vector<std::byte> bytes(unit.persisted.size());
  unit.render(count, bytes.data());
  unit.persisted = std::move(bytes);
  const std::uint64_t hash = unit.hash(count);
  unit.stores.erase(unit.stores.begin(), unit.stores.begin() + static_cast<std::ptrdiff_t>(count));
  for (Unit::Store& later : unit.stores) later.hash -= hash;
  hash_ += hash;
  unit.persisted_version = version;
  if (unit.stores.empty()) dirty_.erase(unit.offset);
  changed_.push_back(&unit);
}

}  // namespace perdix::testing
