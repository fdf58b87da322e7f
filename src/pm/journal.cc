#include "pm/journal.h"

#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "util/checksum.h"

namespace perdix::detail::pm {
namespace {

constexpr std::uint64_t kSector = 512;

struct BatchHeader {
  std::uint64_t epoch;
  std::uint64_t sequence;  // from 0 in each epoch
  std::uint32_t lines;
  std::uint32_t revoked;
  std::uint64_t checksum;  // of all other bytes of the batch
  std::uint64_t reserved[4];
};
static_assert(sizeof(BatchHeader) == kLineSize);

constexpr std::size_t bytes_of(std::size_t lines, std::size_t revoked) noexcept {
  return sizeof(BatchHeader) + lines * (sizeof(Offset) + kLineSize) + revoked * 2 * sizeof(Offset);
}

constexpr std::uint64_t whole(std::uint64_t n, std::uint64_t unit) noexcept {
  return (n + unit - 1) / unit * unit;
}

constexpr bool is_long(MemoryRange range) noexcept { return range.end - range.begin > kLongRange; }

std::uint64_t& epoch_of(const JournalPlace& place) noexcept {
  return *reinterpret_cast<std::uint64_t*>(place.base + place.area);
}

/// A number other than `last`, which cannot be guessed without reading the pool. 0 means none.
std::uint64_t new_epoch(std::uint64_t last) noexcept {
  std::uint64_t epoch = 0;
  const bool random = ::getrandom(&epoch, sizeof epoch, GRND_NONBLOCK) == sizeof epoch;
  if (!random) epoch = last + 1;  // a kernel that has just started, or is older than 3.17
  return epoch != last && epoch != 0 ? epoch : last + 2;
}

/// The checksum of a batch, computed while its field `checksum` is 0.
std::uint64_t checksum_of(const std::byte* batch, std::size_t bytes) noexcept {
  return util::checksum(batch, bytes);
}

/// Copies a line as it was at one moment. Other threads may be storing to it: two readings that
/// agree show that nothing has changed in between (loads stay in order on x86). ThreadSanitizer
/// must not see these loads, since the other threads use plain stores. That is no error: no thread
/// relies on stores that have not been fenced yet.
[[gnu::no_sanitize("thread")]] void read_line(const std::byte* line, std::byte* to) noexcept {
  constexpr std::size_t kWords = kLineSize / sizeof(std::uint64_t);
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(line);
  std::uint64_t image[kWords];
  for (bool same = false; !same;) {
    for (std::size_t i = 0; i < kWords; ++i) image[i] = words[i];
    same = true;
    for (std::size_t i = 0; i < kWords; ++i) same &= words[i] == image[i];
  }
  std::memcpy(to, image, kLineSize);
}

/// A batch as it lies in the journal.
struct BatchView {
  std::byte* bytes;

  BatchHeader header() const noexcept {
    BatchHeader header;
    std::memcpy(&header, bytes, sizeof header);
    return header;
  }
  Offset line(std::size_t i) const noexcept { return word(sizeof(BatchHeader) / 8 + i); }
  MemoryRange revoked(std::size_t i) const noexcept {
    const std::size_t at = sizeof(BatchHeader) / 8 + header().lines + 2 * i;
    return {word(at), word(at + 1)};
  }
  const std::byte* image(std::size_t i) const noexcept {
    const BatchHeader head = header();
    return bytes + bytes_of(0, head.revoked) + head.lines * sizeof(Offset) + i * kLineSize;
  }

 private:
  std::uint64_t word(std::size_t i) const noexcept {
    std::uint64_t value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
  }
};

/// Returns the batches of the present epoch in their order, up to the first that is incomplete.
std::vector<BatchView> find_batches(const JournalPlace& place) {
  std::vector<BatchView> found;
  std::vector<std::byte> copy;
  std::byte* const area = place.base + place.area;
  if (epoch_of(place) == 0) return found;  // there has never been one
  for (std::uint64_t at = kSyncPage; at + sizeof(BatchHeader) <= place.bytes;) {
    const BatchView batch{area + at};
    BatchHeader header = batch.header();
    if (header.epoch != epoch_of(place) || header.sequence != found.size()) break;
    if (header.lines > kMaxBatchLines || header.revoked > kMaxBatchRevoked) break;
    const std::size_t bytes = bytes_of(header.lines, header.revoked);
    if (bytes > place.bytes - at) break;
    copy.assign(batch.bytes, batch.bytes + bytes);
    const std::uint64_t checksum = std::exchange(header.checksum, 0);
    std::memcpy(copy.data(), &header, sizeof header);
    if (checksum != checksum_of(copy.data(), bytes)) break;
    found.push_back(batch);
    at += whole(bytes, kSector);
  }
  return found;
}

/// Whether [begin, end) are lines that a pool journals.
bool is_allowed(const JournalPlace& place, std::uint64_t pool_size, MemoryRange range) noexcept {
  const bool lines = range.begin % kLineSize == 0 && range.end % kLineSize == 0;
  const bool inside =
      range.begin >= place.first_line && range.begin < range.end && range.end <= pool_size;
  return lines && inside && (range.end <= place.area || range.begin >= place.area + place.bytes);
}

bool is_allowed(const JournalPlace& place, std::uint64_t pool_size, BatchView batch) noexcept {
  const BatchHeader header = batch.header();
  for (std::size_t i = 0; i < header.lines; ++i) {
    const Offset line = batch.line(i);
    if (line > pool_size || !is_allowed(place, pool_size, {line, line + kLineSize})) return false;
  }
  for (std::size_t i = 0; i < header.revoked; ++i) {
    if (!is_allowed(place, pool_size, batch.revoked(i))) return false;
  }
  return true;
}

[[noreturn]] void throw_corrupt(const std::string& path) {
  throw Error(Errc::corrupt, fmt::format("the journal of pool '{}' speaks of places that no pool "
                                         "has there; restore the pool from a backup",
                                         path));
}

void sync_or_throw(SyncDevice& device, std::byte* begin, std::size_t bytes,
                   const std::string& path) {
  if (const int error = device.sync(begin, bytes); error != 0) {
    throw Error(Errc::io_error, fmt::format("pool '{}' could not be repaired: {}; check the device "
                                            "and open it again",
                                            path, std::strerror(error)));
  }
}

}  // namespace

void BatchSize::add(const SyncRequest& request) noexcept {
  for (const MemoryRange range : request.ranges) {
    if (is_long(range)) {
      ++revoked;
    } else {
      lines += (range.end - range.begin) / kLineSize;
    }
  }
  lines += request.changes.size();
}

Journal::Journal(const JournalPlace& place, SyncDevice& device)
    : place_(place), device_(device), epoch_(epoch_of(place)), position_(kSyncPage) {
  lines_.reserve(kMaxBatchLines);
  revoked_.reserve(2 * kMaxBatchRevoked);
  batch_.resize(whole(bytes_of(kMaxBatchLines, kMaxBatchRevoked), kSector));
  assert(kSyncPage + batch_.size() <= place.bytes);
}

int Journal::start() noexcept {
  epoch_ = new_epoch(epoch_);
  position_ = kSyncPage;
  sequence_ = 0;
  begin_ = ~Offset{0};
  end_ = 0;
  __atomic_store_n(&epoch_of(place_), epoch_, __ATOMIC_RELEASE);
  return device_.sync(place_.base + place_.area, kSyncPage);
}

int Journal::append(const SyncRequest* group) noexcept {
  collect(group);
  if (lines_.empty() && revoked_.empty()) return 0;
  const std::size_t bytes = whole(bytes_of(lines_.size(), revoked_.size() / 2), kSector);
  if (bytes > place_.bytes - position_) {
    // Before this batch is made: what it holds must not be older than what is in its place.
    if (const int error = checkpoint(); error != 0) return error;
  }
  if (const int error = sync_long_ranges(group); error != 0) return error;
  build(group);
  std::byte* const area = place_.base + place_.area;
  std::memcpy(area + position_, batch_.data(), bytes);
  const std::uint64_t begin = position_ / kSyncPage * kSyncPage;
  position_ += bytes;
  ++sequence_;
  return device_.sync(area + begin, whole(position_, kSyncPage) - begin);
}

/// Sets lines_ to the lines of the batch, each once and ascending, and revoked_ to what it revokes.
void Journal::collect(const SyncRequest* group) noexcept {
  lines_.clear();
  revoked_.clear();
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const MemoryRange range : request->ranges) {
      if (is_long(range)) {
        revoked_.push_back(offset_of(range.begin));
        revoked_.push_back(offset_of(range.end));
        continue;
      }
      for (std::uintptr_t line = range.begin; line < range.end; line += kLineSize)
        lines_.push_back(offset_of(line));
    }
    for (const Change& change : request->changes) {
      const Offset word = offset_of(reinterpret_cast<std::uintptr_t>(change.word));
      lines_.push_back(word / kLineSize * kLineSize);
    }
  }
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
}

int Journal::sync_long_ranges(const SyncRequest* group) noexcept {
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const MemoryRange range : request->ranges) {
      if (!is_long(range)) continue;
      const std::uintptr_t begin = range.begin / kSyncPage * kSyncPage;
      const std::size_t bytes = whole(range.end, kSyncPage) - begin;
      if (const int error = device_.sync(reinterpret_cast<void*>(begin), bytes); error != 0)
        return error;
    }
  }
  return 0;
}

/// Fills batch_: the lines as they are now, with the changes of the commits already made in them.
void Journal::build(const SyncRequest* group) noexcept {
  BatchHeader header{};
  header.epoch = epoch_;
  header.sequence = sequence_;
  header.lines = static_cast<std::uint32_t>(lines_.size());
  header.revoked = static_cast<std::uint32_t>(revoked_.size() / 2);
  if (!lines_.empty()) {
    begin_ = std::min(begin_, lines_.front());
    end_ = std::max(end_, lines_.back() + kLineSize);
  }
  const std::size_t bytes = bytes_of(header.lines, header.revoked);
  std::byte* const offsets = batch_.data() + sizeof header;
  std::byte* const ranges = offsets + lines_.size() * sizeof(Offset);
  std::byte* const images = ranges + revoked_.size() * sizeof(Offset);
  std::memcpy(batch_.data(), &header, sizeof header);
  std::memcpy(offsets, lines_.data(), lines_.size() * sizeof(Offset));
  std::memcpy(ranges, revoked_.data(), revoked_.size() * sizeof(Offset));
  for (std::size_t i = 0; i < lines_.size(); ++i)
    read_line(place_.base + lines_[i], images + i * kLineSize);
  overlay(group, images);
  std::memset(batch_.data() + bytes, 0, whole(bytes, kSector) - bytes);
  header.checksum = checksum_of(batch_.data(), bytes);
  std::memcpy(batch_.data(), &header, sizeof header);
}

void Journal::overlay(const SyncRequest* group, std::byte* images) const noexcept {
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const Change& change : request->changes) {
      const Offset word = offset_of(reinterpret_cast<std::uintptr_t>(change.word));
      const auto line =
          std::lower_bound(lines_.begin(), lines_.end(), word / kLineSize * kLineSize);
      std::byte* const at = images + (line - lines_.begin()) * kLineSize + word % kLineSize;
      std::uint64_t value;
      std::memcpy(&value, at, sizeof value);
      value = change.of(value);
      std::memcpy(at, &value, sizeof value);
    }
  }
}

int Journal::checkpoint() noexcept {
  if (sequence_ == 0) return 0;
  if (begin_ < end_) {
    const Offset begin = begin_ / kSyncPage * kSyncPage;
    const Offset end = whole(end_, kSyncPage);
    if (const int error = device_.sync(place_.base + begin, end - begin); error != 0) return error;
  }
  return start();  // only now: what the batches hold is durable in its own place
}

/// The batches that a replay has found.
class Replay::Batches {
 public:
  explicit Batches(const JournalPlace& place) {
    for (const BatchView& batch : find_batches(place)) batches_.push_back(batch.bytes);
  }

  bool empty() const noexcept { return batches_.empty(); }

  bool allowed(const JournalPlace& place, std::uint64_t pool_size) const noexcept {
    return std::all_of(batches_.begin(), batches_.end(), [&](std::byte* batch) {
      return is_allowed(place, pool_size, BatchView{batch});
    });
  }

  /// visit(offset, image) for each line that no later batch revokes, in the order of the batches.
  template <class Visit>
  void for_each_line(const Visit& visit) const {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const BatchView batch{batches_[i]};
      for (std::size_t l = 0; l < batch.header().lines; ++l) {
        if (!is_revoked(batch.line(l), i)) visit(batch.line(l), batch.image(l));
      }
    }
  }

 private:
  bool is_revoked(Offset line, std::size_t batch) const noexcept {
    for (std::size_t later = batch + 1; later < batches_.size(); ++later) {
      const BatchView by{batches_[later]};
      for (std::size_t r = 0; r < by.header().revoked; ++r) {
        if (by.revoked(r).contains({line, line + kLineSize})) return true;
      }
    }
    return false;
  }

  std::vector<std::byte*> batches_;  // where each begins
};

Replay::Replay(const JournalPlace& place, std::uint64_t pool_size, std::string path)
    : place_(place),
      pool_size_(pool_size),
      path_(std::move(path)),
      batches_(std::make_unique<const Batches>(place)) {
  if (!batches_->allowed(place, pool_size)) throw_corrupt(path_);
}

Replay::~Replay() {
  // The last first: a line of several batches is then as it was before the first of them.
  for (auto line = before_.rbegin(); line != before_.rend(); ++line)
    std::memcpy(place_.base + line->offset, line->bytes.data(), kLineSize);
}

std::vector<FileRange> Replay::pages() const {
  std::vector<Offset> pages;
  batches_->for_each_line(
      [&](Offset line, const std::byte*) { pages.push_back(line / kSyncPage * kSyncPage); });
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  std::vector<FileRange> ranges;
  for (const Offset page : pages) ranges.push_back({page, page + kSyncPage});
  return ranges;
}

void Replay::apply() {
  std::size_t lines = 0;
  batches_->for_each_line([&](Offset, const std::byte*) { ++lines; });
  before_.reserve(lines);
  batches_->for_each_line([&](Offset line, const std::byte* image) {
    Line& before = before_.emplace_back();
    before.offset = line;
    std::memcpy(before.bytes.data(), place_.base + line, kLineSize);
    std::memcpy(place_.base + line, image, kLineSize);
  });
}

void Replay::finish(SyncDevice& device) {
  if (batches_->empty()) return;
  before_.clear();
  sync_or_throw(device, place_.base, pool_size_, path_);
  // Only now: until here the batches are needed, and may be replayed once more.
  std::uint64_t& epoch = epoch_of(place_);
  __atomic_store_n(&epoch, new_epoch(epoch), __ATOMIC_RELEASE);
  sync_or_throw(device, place_.base + place_.area, kSyncPage, path_);
}

}  // namespace perdix::detail::pm
