#include "testing/stage.h"

#include <algorithm>
#include <cstring>

namespace perdix::testing {

void Stage::adopt() {
  std::memcpy(copy_.data(), medium_.bytes(), copy_.size());
  undo_.clear();
  old_.clear();
}

void Stage::patch(std::uint64_t offset, const std::byte* bytes, std::size_t n) {
  undo_.push_back({offset, n, old_.size()});
  old_.insert(old_.end(), copy_.data() + offset, copy_.data() + offset + n);
  std::memcpy(copy_.data() + offset, bytes, n);
  std::memcpy(medium_.bytes() + offset, bytes, n);
}

void Stage::rollback(std::size_t mark) {
  while (undo_.size() > mark) {
    const Undo& last = undo_.back();
    std::memcpy(copy_.data() + last.offset, old_.data() + last.at, last.size);
    std::memcpy(medium_.bytes() + last.offset, old_.data() + last.at, last.size);
    old_.resize(last.at);
    undo_.pop_back();
  }
}

void Stage::restore(const Trace& trace) {
  if (medium_.restore_length()) {
    std::memcpy(medium_.bytes(), copy_.data(), copy_.size());
    return;
  }
  for (const Event& event : trace) {
    if (event.kind == Event::Kind::store || event.kind == Event::Kind::commit)
      std::memcpy(medium_.bytes() + event.offset, copy_.data() + event.offset, event.size);
  }
}

std::optional<std::uint64_t> Stage::difference() const {
  if (std::memcmp(copy_.data(), medium_.bytes(), copy_.size()) == 0) return std::nullopt;
  const auto here = std::mismatch(copy_.begin(), copy_.end(), medium_.bytes()).first;
  return static_cast<std::uint64_t>(here - copy_.begin());
}

}  // namespace perdix::testing
