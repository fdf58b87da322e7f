#include "pm/journal.h"

#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
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

/// The pages that one sync of a drain is for at most. While it runs, the device has so much more to
/// do when a batch comes.
constexpr std::size_t kDrainPages = 64;

/// A half has room for so many batches with long ranges, at least.
constexpr std::uint64_t kBatchesInHalf = 8;

/// A part of the area that holds an epoch and batches: a half, or all of it.
struct Part {
  std::byte* begin;
  std::uint64_t bytes;

  std::uint64_t& epoch() const noexcept { return *reinterpret_cast<std::uint64_t*>(begin); }
};

constexpr std::uint64_t bytes_of_half(const JournalPlace& place) noexcept {
  return place.bytes / place.halves / kSyncPage * kSyncPage;
}

std::vector<Part> parts_of(const JournalPlace& place) {
  std::vector<Part> parts;
  for (unsigned i = 0; i < place.halves; ++i)
    parts.push_back({place.base + place.area + i * bytes_of_half(place), bytes_of_half(place)});
  return parts;
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

/// Returns the batches of the present epoch of a part in their order, up to the first that is
/// incomplete.
std::vector<BatchView> find_batches(Part part) {
  std::vector<BatchView> found;
  std::vector<std::byte> copy;
  if (part.epoch() == 0) return found;  // there has never been one
  std::uint64_t first = 0;
  for (std::uint64_t at = kSyncPage; at + sizeof(BatchHeader) <= part.bytes;) {
    const BatchView batch{part.begin + at};
    BatchHeader header = batch.header();
    if (found.empty()) first = header.sequence;
    if (header.epoch != part.epoch() || header.sequence != first + found.size()) break;
    if (header.lines > kMaxBatchLines || header.revoked > kMaxBatchRevoked) break;
    const std::size_t bytes = bytes_of(header.lines, header.revoked);
    if (bytes > part.bytes - at) break;
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

Journal::Journal(const JournalPlace& place, SyncDevice& device, SyncDevice* background)
    : place_(place), device_(device), drainer_(background, [this](SyncDevice& beside) {
        const int error = drain(halves_[1 - active_], beside);
        return error == ENOMEM ? 0 : error;  // then the thread that needs the half drains it
      }) {
  assert(place.halves == halves_.size());
  lines_.reserve(kMaxBatchLines);
  revoked_.reserve(2 * kMaxBatchRevoked);
  batch_.resize(whole(bytes_of(kMaxBatchLines, kMaxBatchRevoked), kSector));
  use_area();
}

void Journal::use_area() noexcept {
  Offset area = place_.area;
  for (Half& half : halves_) {
    half = {};
    half.area = area;
    half.bytes = bytes_of_half(place_);
    half.epoch = epoch_of(half);
    area += half.bytes;
    assert(kSyncPage + batch_.size() <= half.bytes);
  }
}

int Journal::start() noexcept {
  active_ = 0;
  sequence_ = 0;
  for (Half& half : halves_) {
    if (const int error = renew(half, device_); error != 0) return error;
  }
  return name_area();  // only now: what is named is empty (J7)
}

int Journal::name_area() noexcept {
  if (place_.root == 0) return 0;
  auto& root = *reinterpret_cast<std::uint64_t*>(place_.base + place_.root);
  if (root == place_.name) return 0;
  __atomic_store_n(&root, place_.name, __ATOMIC_RELEASE);
  return device_.sync(place_.base + place_.root / kSyncPage * kSyncPage, kSyncPage);
}

int Journal::move(const JournalPlace& place) noexcept {
  if (const int error = checkpoint(); error != 0) return error;
  place_ = place;
  use_area();
  return start();
}

/// Makes a half empty, durably. What it holds is not needed any more.
int Journal::renew(Half& half, SyncDevice& device) noexcept {
  half.epoch = new_epoch(half.epoch);
  __atomic_store_n(&epoch_of(half), half.epoch, __ATOMIC_RELEASE);
  const int error = device.sync(&epoch_of(half), kSyncPage);
  if (error == 0) half.position = kSyncPage;
  return error;
}

int Journal::append(const SyncRequest* group) noexcept {
  if (const int error = drainer_.error(); error != 0) return error;
  collect(group);
  if (lines_.empty() && revoked_.empty()) return 0;
  const std::size_t bytes = whole(bytes_of(lines_.size(), revoked_.size() / 2), kSector);
  if (bytes > halves_[active_].bytes - halves_[active_].position) {
    // Before this batch is made: what it holds must not be older than what is in its place.
    if (const int error = turn_over(); error != 0) return error;
  }
  if (const int error = sync_long_ranges(); error != 0) return error;
  build(group);
  Half& half = halves_[active_];
  std::byte* const area = place_.base + half.area;
  std::memcpy(area + half.position, batch_.data(), bytes);
  const std::uint64_t begin = half.position / kSyncPage * kSyncPage;
  half.position += bytes;
  ++sequence_;
  return device_.sync(area + begin, whole(half.position, kSyncPage) - begin);
}

/// Goes on in the other half, and has the full one drained.
int Journal::turn_over() noexcept {
  if (const int error = make_free(halves_[1 - active_]); error != 0) return error;
  active_ = 1 - active_;
  drainer_.begin();  // or, if that fails, whoever needs the half
  return 0;
}

/// Waits until a half, which is not the active one, is free, or makes it free.
int Journal::make_free(Half& half) noexcept {
  if (const int error = drainer_.wait(); error != 0) return error;
  return half.empty() ? 0 : drain(half, device_);
}

/// Makes the lines of a half durable in their place, then makes the half empty (J5). Called by the
/// background thread for the half that is full.
int Journal::drain(Half& half, SyncDevice& device) noexcept {
  if (const int error = sync_homes(half, device); error != 0) return error;
  return renew(half, device);  // only now: what the batches hold is durable in its own place
}

/// Sets lines_ to the lines of the batch, each once and ascending, and revoked_ to what it revokes.
void Journal::collect(const SyncRequest* group) noexcept {
  lines_.clear();
  revoked_.clear();
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const MemoryRange range : request->ranges) {
      if (!is_long(range)) add_lines(range);
    }
    for (const Change& change : request->changes) {
      const Offset word = offset_of(reinterpret_cast<std::uintptr_t>(change.word));
      lines_.push_back(word / kLineSize * kLineSize);
    }
  }
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const MemoryRange range : request->ranges) {
      if (is_long(range)) collect_long(range);
    }
  }
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
}

void Journal::add_lines(MemoryRange range) noexcept {
  for (std::uintptr_t line = range.begin; line < range.end; line += kLineSize)
    lines_.push_back(offset_of(line));
}

/// In the batch a range costs no sync of its own. But a batch that took much of a half would have
/// the other one drained all the time. The lines that must be in the batch have been collected.
void Journal::collect_long(MemoryRange range) noexcept {
  const std::size_t lines = lines_.size() + (range.end - range.begin) / kLineSize;
  const bool small = bytes_of(lines, kMaxBatchRevoked) <= halves_[active_].bytes / kBatchesInHalf;
  if (small && lines <= kMaxBatchLines) return add_lines(range);
  revoked_.push_back(offset_of(range.begin));
  revoked_.push_back(offset_of(range.end));
}

int Journal::sync_long_ranges() noexcept {
  for (std::size_t i = 0; i < revoked_.size(); i += 2) {
    const Offset begin = revoked_[i] / kSyncPage * kSyncPage;
    const std::size_t bytes = whole(revoked_[i + 1], kSyncPage) - begin;
    if (const int error = device_.sync(place_.base + begin, bytes); error != 0) return error;
  }
  return 0;
}

/// Fills batch_: the lines as they are now, with the changes of the commits already made in them.
void Journal::build(const SyncRequest* group) noexcept {
  BatchHeader header{};
  header.epoch = halves_[active_].epoch;
  header.sequence = sequence_;
  header.lines = static_cast<std::uint32_t>(lines_.size());
  header.revoked = static_cast<std::uint32_t>(revoked_.size() / 2);
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

/// Syncs the pages of all lines of a half, few at a time.
int Journal::sync_homes(const Half& half, SyncDevice& device) const noexcept {
  std::vector<Offset> pages;
  try {
    pages = pages_of(half);
  } catch (const std::bad_alloc&) {
    return sync_homes_of_each_batch(half, device);
  }
  for (std::size_t i = 0; i < pages.size(); i += kDrainPages) {
    const Offset last = pages[std::min(i + kDrainPages, pages.size()) - 1];
    const std::size_t bytes = last + kSyncPage - pages[i];
    if (const int error = device.sync(place_.base + pages[i], bytes); error != 0) return error;
  }
  return 0;
}

/// sync_homes() without memory: pages that several batches name are synced for each.
int Journal::sync_homes_of_each_batch(const Half& half, SyncDevice& device) const noexcept {
  int error = 0;
  for_each_batch(half, [&](BatchView batch) {
    const std::size_t lines = batch.header().lines;
    if (lines == 0 || error != 0) return;
    const Offset begin = batch.line(0) / kSyncPage * kSyncPage;  // lines ascend
    const Offset end = batch.line(lines - 1) + kLineSize;
    error = device.sync(place_.base + begin, whole(end - begin, kSyncPage));
  });
  return error;
}

/// The pages of all lines of a half, each once, ascending. Throws bad_alloc.
std::vector<Offset> Journal::pages_of(const Half& half) const {
  std::vector<Offset> pages;
  for_each_batch(half, [&](BatchView batch) {
    for (std::size_t i = 0; i < batch.header().lines; ++i) {
      const Offset page = batch.line(i) / kSyncPage * kSyncPage;
      if (pages.empty() || pages.back() != page) pages.push_back(page);
    }
  });
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  return pages;
}

/// Calls visit(batch) for what this has written to a half.
template <class Visit>
void Journal::for_each_batch(const Half& half, const Visit& visit) const {
  for (std::uint64_t at = kSyncPage; at < half.position;) {
    const BatchView batch{place_.base + half.area + at};
    const BatchHeader header = batch.header();
    visit(batch);
    at += whole(bytes_of(header.lines, header.revoked), kSector);
  }
}

int Journal::checkpoint() noexcept {
  if (const int error = make_free(halves_[1 - active_]); error != 0) return error;
  Half& half = halves_[active_];
  return half.empty() ? 0 : drain(half, device_);
}

/// The batches that a replay has found.
class Replay::Batches {
 public:
  /// Throws corrupt if they are none that a pool writes.
  Batches(const JournalPlace& place, std::uint64_t pool_size, const std::string& path) {
    for (const Part part : parts_of(place)) {
      Found& found = parts_.emplace_back();
      found.part = part.begin;
      for (const BatchView batch : find_batches(part)) found.batches.push_back(batch.bytes);
    }
    std::sort(parts_.begin(), parts_.end(), older);
    std::uint64_t next = 0;
    for (const Found& found : parts_) {
      for (std::byte* const bytes : found.batches) {
        const BatchView batch{bytes};
        // After a gap nothing counts (J6).
        if (!empty() && batch.header().sequence != next) return;
        next = batch.header().sequence + 1;
        if (!is_allowed(place, pool_size, batch)) throw_corrupt(path);
        add(batch);
      }
    }
  }

  bool empty() const noexcept { return empty_; }

  /// visit(offset, image) for each line that has one, ascending: what the last batch says of it.
  template <class Visit>
  void for_each_line(const Visit& visit) const {
    for (const auto& [line, image] : lines_) visit(line, image);
  }

  /// visit(begin of a part) for all parts of the journal, the one with older batches first.
  template <class Visit>
  void for_each_part(const Visit& visit) const {
    for (const Found& found : parts_) visit(found.part);
  }

 private:
  struct Found {
    std::byte* part = nullptr;
    std::vector<std::byte*> batches;  // where each begins

    std::uint64_t first() const noexcept {
      return batches.empty() ? 0 : BatchView{batches.front()}.header().sequence;
    }
  };

  static bool older(const Found& a, const Found& b) noexcept { return a.first() < b.first(); }

  void add(BatchView batch) {
    const BatchHeader header = batch.header();
    for (std::size_t i = 0; i < header.revoked; ++i) {
      const MemoryRange range = batch.revoked(i);
      lines_.erase(lines_.lower_bound(range.begin), lines_.lower_bound(range.end));
    }
    for (std::size_t i = 0; i < header.lines; ++i) lines_[batch.line(i)] = batch.image(i);
    empty_ = false;
  }

  std::vector<Found> parts_;
  std::map<Offset, const std::byte*> lines_;
  bool empty_ = true;
};

Replay::Replay(const JournalPlace& place, std::uint64_t pool_size, std::string path)
    : place_(place),
      pool_size_(pool_size),
      path_(std::move(path)),
      batches_(std::make_unique<const Batches>(place, pool_size, path_)) {}

Replay::~Replay() {
  for (const Line& line : before_)
    std::memcpy(place_.base + line.offset, line.bytes.data(), kLineSize);
}

std::vector<FileRange> Replay::pages() const {
  std::vector<FileRange> pages;
  batches_->for_each_line([&](Offset line, const std::byte*) {  // which ascend
    const Offset page = line / kSyncPage * kSyncPage;
    if (pages.empty() || pages.back().begin != page) pages.push_back({page, page + kSyncPage});
  });
  return pages;
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
  // Only now: until here the batches are needed, and may be replayed once more. The older half goes
  // first: without the other one it would make lines older.
  batches_->for_each_part([&](std::byte* part) {
    auto& epoch = *reinterpret_cast<std::uint64_t*>(part);
    __atomic_store_n(&epoch, new_epoch(epoch), __ATOMIC_RELEASE);
    sync_or_throw(device, part, kSyncPage, path_);
  });
}

}  // namespace perdix::detail::pm
