#include "testing/linearizability/surviving_memory.h"

#include <algorithm>

namespace perdix::testing {

SurvivingMemory::SurvivingMemory(std::span<std::byte> region, bool needs_flushes)
    : region_(region), needs_flushes_(needs_flushes) {
  if (needs_flushes_) durable_.assign(region_.begin(), region_.end());
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
  auto& flushes = flushes_[std::this_thread::get_id()];
  each_line(p, n, [&](std::size_t line) {
    const auto content = region_.subspan(line * kLine, kLine);
    flushes.push_back({line, ++flush_count_, {content.begin(), content.end()}});
  });
}

void SurvivingMemory::fenced() {
  if (!needs_flushes_) return;
  const std::lock_guard lock(mutex_);
  auto& flushes = flushes_[std::this_thread::get_id()];
  for (const Flush& flush : flushes) {
    std::uint64_t& order = durable_order_[flush.line];
    if (flush.order < order) continue;
    order = flush.order;
    missed_.erase(flush.line);
    std::ranges::copy(flush.content, durable_.begin() + static_cast<long>(flush.line * kLine));
  }
  flushes.clear();
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
    const auto content = region_.subspan(line * kLine, kLine);
    const auto durable = std::span(durable_).subspan(line * kLine, kLine);
    if (!std::ranges::equal(content, durable)) lines.push_back(line);
  }
  return lines;
}

std::vector<std::byte> SurvivingMemory::image(util::Random& random) const {
  if (!needs_flushes_) return {region_.begin(), region_.end()};
  const std::lock_guard lock(mutex_);
  const std::vector<std::size_t> lines = dirty();
  std::vector<std::byte> image = durable_;
  enum { one_survives, one_is_lost, some_survive, kinds, none_survives, missed_are_lost };
  const std::uint64_t kind =
      missed_.empty() ? random.below(kinds) : none_survives + random.below(2);
  const std::uint64_t one = lines.empty() ? 0 : random.below(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto survives = [&] {
      if (kind == none_survives) return false;
      if (kind == missed_are_lost) return !missed_.contains(lines[i]);
      return kind == some_survive ? random.one_in(2) : (kind == one_survives) == (i == one);
    };
    if (!survives()) continue;
    const auto content = region_.subspan(lines[i] * kLine, kLine);
    std::ranges::copy(content, image.begin() + static_cast<long>(lines[i] * kLine));
  }
  return image;
}

}  // namespace perdix::testing
