#include "testing/linearizability/surviving_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace perdix::testing {

SurvivingMemory::SurvivingMemory(std::span<std::byte> region, bool needs_flushes)
    : region_(region), needs_flushes_(needs_flushes) {
  if (needs_flushes_) durable_ = SparseBytes(region_);
}

/// Calls act(line) for each line of [p, p+n) in the region.
template <class Act>
void SurvivingMemory::each_line(const void* p, std::size_t n, const Act& act) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  const auto base = reinterpret_cast<std::uintptr_t>(region_.data());
  if (n == 0 || begin < base || begin + n > base + region_.size()) return;
  for (std::size_t line = (begin - base) / kLine; line <= (begin + n - 1 - base) / kLine; ++line)
    act(line);
}

void SurvivingMemory::wrote(const void* p, std::size_t n) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  each_line(p, n, [&](std::size_t line) { stored_.insert(line); });
}

void SurvivingMemory::flushed(const void* p, std::size_t n) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  note(flushes_[std::this_thread::get_id()], p, n);
}

void SurvivingMemory::flushed_for_all(const void* p, std::size_t n) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  note(flushes_for_all_, p, n);
}

void SurvivingMemory::note(std::vector<Flush>& flushes, const void* p, std::size_t n) {
  each_line(p, n, [&](std::size_t line) {
    flushes.push_back({line, ++flush_count_, content(line)});
  });
}

void SurvivingMemory::fenced() {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  auto& flushes = flushes_[std::this_thread::get_id()];
  if (flushes.empty()) return;
  for (auto* const all : {&flushes, &flushes_for_all_}) {
    for (const Flush& flush : *all) persist(flush);
    all->clear();
  }
}

void SurvivingMemory::persist(const Flush& flush) {
  std::uint64_t& order = durable_order_[flush.line];
  if (flush.order < order) return;
  order = flush.order;
  missed_.erase(flush.line);
  durable_.write(flush.line * kLine, flush.content);
}

void SurvivingMemory::committed(std::span<const detail::pm::Change> changes) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  to_be_made_.insert(to_be_made_.end(), changes.begin(), changes.end());
  std::vector<Flush>& flushes = flushes_for_all_;
  for (const detail::pm::Change& change : changes) {
    each_line(change.word, sizeof *change.word, [&](std::size_t line) { stored_.insert(line); });
    note(flushes, change.word, sizeof *change.word);
  }
  for (const Flush& flush : flushes) persist(flush);
  flushes.clear();
}

void SurvivingMemory::made(const detail::pm::Change& change) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  to_be_made_.erase(std::ranges::find_if(to_be_made_, [&](const detail::pm::Change& other) {
    return other.word == change.word && other.mask == change.mask;
  }));
}

/// What a line holds, or will when the commits that are durable have made their changes.
std::vector<std::byte> SurvivingMemory::content(std::size_t line) const {
  const auto now = region_.subspan(line * kLine, kLine);
  std::vector<std::byte> bytes(now.begin(), now.end());
  for (const detail::pm::Change& change : to_be_made_) {
    const auto at = reinterpret_cast<const std::byte*>(change.word) - now.data();
    if (at < 0 || static_cast<std::size_t>(at) >= kLine) continue;
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word = change.of(word);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

void SurvivingMemory::begin_operation() {
  const std::lock_guard lock(mutex_);
  reads_[std::this_thread::get_id()].clear();
}

void SurvivingMemory::read(const void* p, std::size_t n) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  std::set<std::size_t>& lines = reads_[std::this_thread::get_id()];
  each_line(p, n, [&](std::size_t line) { lines.insert(line); });
}

std::vector<std::size_t> SurvivingMemory::read_in_doubt() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> lines;
  const auto read = reads_.find(std::this_thread::get_id());
  if (read == reads_.end()) return lines;
  std::ranges::copy_if(dirty(), std::back_inserter(lines),
                       [&](std::size_t line) { return read->second.contains(line); });
  return lines;
}

void SurvivingMemory::missed_flush(const void* p, std::size_t n) {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  each_line(p, n, [&](std::size_t line) { missed_.insert(line); });
}

void SurvivingMemory::missed_fence() {
  const std::lock_guard lock(mutex_);
  for (const Flush& flush : flushes_[std::this_thread::get_id()]) missed_.insert(flush.line);
}

bool SurvivingMemory::misses() const {
  const std::lock_guard lock(mutex_);
  const std::vector<std::size_t> lines = dirty();
  return std::ranges::any_of(lines, [&](std::size_t line) { return missed_.contains(line); });
}

/// The lines whose content is not durable.
std::vector<std::size_t> SurvivingMemory::dirty() const {
  std::vector<std::size_t> lines;
  for (const std::size_t line : stored_) {
    if (!std::ranges::equal(content(line), durable_.read(line * kLine, kLine)))
      lines.push_back(line);
  }
  return lines;
}

SparseBytes SurvivingMemory::image(detail::util::Random& random,
                                   const std::vector<std::size_t>& lost) const {
  if (!needs_flushes_) return SparseBytes(region_);
  const std::lock_guard lock(mutex_);
  const std::vector<std::size_t> lines = dirty();
  SparseBytes image = durable_;
  enum { one_survives, one_is_lost, some_survive, none_survives, missed_are_lost };
  const std::uint64_t kind =
      missed_.empty() ? random.below(missed_are_lost) : none_survives + random.below(2);
  const std::uint64_t one = lines.empty() ? 0 : random.below(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto survives = [&] {
      if (kind == none_survives || std::ranges::find(lost, lines[i]) != lost.end()) return false;
      if (kind == missed_are_lost) return !missed_.contains(lines[i]);
      return kind == some_survive ? random.one_in(2) : (kind == one_survives) == (i == one);
    };
    if (!survives()) continue;
    image.write(lines[i] * kLine, content(lines[i]));
  }
  return image;
}

}  // namespace perdix::testing
