#include "testing/meter/prefetcher.h"

#include <algorithm>

namespace perdix::testing {
namespace {

constexpr std::uint64_t kLinesPerPage = 64;

}  // namespace

Prefetcher::Range Prefetcher::observe(std::uint64_t line) {
  if (!options_.enabled || options_.streams == 0) return {};
  const std::uint64_t page = line / kLinesPerPage;
  const auto found = std::ranges::find(streams_, page, &Stream::page);
  if (found == streams_.end()) {
    if (streams_.size() == options_.streams) streams_.pop_back();
    streams_.insert(streams_.begin(), {page, line, line + 1});
    return {};
  }
  std::rotate(streams_.begin(), found, found + 1);
  return advance(streams_.front(), line);
}

Prefetcher::Range Prefetcher::advance(Stream& stream, std::uint64_t line) const {
  const bool continues = line == stream.last + 1;
  stream.last = line;
  if (!continues) {
    stream.front = line + 1;
    return {};
  }
  const std::uint64_t page_end = (stream.page + 1) * kLinesPerPage;
  const std::uint64_t begin = std::max(stream.front, line + 1);
  const std::uint64_t limit = std::min(line + 1 + options_.distance, page_end);
  const std::uint64_t end = std::max(begin, std::min(begin + options_.per_access, limit));
  stream.front = end;
  return {begin, end};
}

}  // namespace perdix::testing
