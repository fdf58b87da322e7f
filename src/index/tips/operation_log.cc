#include "index/tips/operation_log.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <mutex>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/tips/damage.h"
#include "util/checksum.h"

namespace perdix::detail::index::tips {
namespace {

constexpr std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

/// The bytes of a record in its ring.
std::uint64_t size_of(const Record& record) {
  const std::uint64_t inside =
      record.outside != 0 ? 0 : std::uint64_t{record.key_size} + record.value_size;
  return round_up(sizeof(Record) + inside);
}

/// Of a record whose bytes follow it.
std::uint64_t check_with(std::uint64_t check, std::string_view key, std::string_view value) {
  check = util::checksum(key.data(), key.size(), check);
  return std::max<std::uint64_t>(util::checksum(value.data(), value.size(), check), 1);
}

}  // namespace

OperationLogs::OperationLogs(pool::PoolCore& pool, Header& header)
    : pool_(pool), header_(header), ring_bytes_(pm::load(header.ring_bytes)) {}

Record* OperationLogs::record_at(const Ring& ring, std::uint64_t position) const {
  return reinterpret_cast<Record*>(ring.bytes + position % ring_bytes_);
}

/// Where a record of that size goes that is appended at `position`.
std::uint64_t OperationLogs::fitting(std::uint64_t position, std::uint64_t size) const {
  const std::uint64_t rest = ring_bytes_ - position % ring_bytes_;
  return size <= rest ? position : position + rest;
}

std::uint64_t OperationLogs::check_of(const Record& record, std::uint64_t position) const {
  const std::uint64_t seed = pm::load(header_.nonce) ^ util::checksum(&position, sizeof position);
  const std::uint64_t fields =
      util::checksum(&record.number, offsetof(Record, payload) - offsetof(Record, number), seed);
  return std::max<std::uint64_t>(fields, 1);
}

bool OperationLogs::is_valid(const Record& record, std::uint64_t position) const {
  if (record.outside > 1 || size_of(record) > ring_bytes_ - position % ring_bytes_) return false;
  std::uint64_t check = check_of(record, position);
  if (record.outside == 0) {
    const char* const bytes = reinterpret_cast<const char*>(&record + 1);
    check =
        check_with(check, {bytes, record.key_size}, {bytes + record.key_size, record.value_size});
  }
  return record.check == check && record.operation >= static_cast<std::uint8_t>(Operation::put) &&
         record.operation <= static_cast<std::uint8_t>(Operation::cancel);
}

/// The record at a position, or behind the end of the ring that it had no room at, whose position
/// it then becomes; null if there is none.
Record* OperationLogs::next_record(const Ring& ring, std::uint64_t& position) const {
  if (is_valid(*record_at(ring, position), position)) return record_at(ring, position);
  const std::uint64_t next = position + (ring_bytes_ - position % ring_bytes_);
  if (position % ring_bytes_ == 0 || !is_valid(*record_at(ring, next), next)) return nullptr;
  position = next;
  return record_at(ring, next);
}

/// Calls show(record, end) for the records between head and tail, until it returns false. Verifies
/// no checksum: open_ring() or append_record() has met each record.
template <class Show>
void OperationLogs::for_each_record(const Ring& ring, Show show) const {
  for (std::uint64_t at = ring.head; at < ring.tail;) {
    if (at == ring.gap) at += ring_bytes_ - at % ring_bytes_;
    Record& record = *record_at(ring, at);
    at += size_of(record);
    if (!show(record, at)) return;
  }
}

/// An erase needs no space but that of its ring, which is large enough for each key.
bool OperationLogs::fits_inside(const Entry& entry) const {
  if (entry.operation() != Operation::put) return true;
  constexpr unsigned kMaxRingFraction = 8;  // of a ring
  const std::uint64_t most =
      pm::limit("tips: lines of a record", ring_bytes_ / kRecordAlignment / kMaxRingFraction);
  return sizeof(Record) + entry.key().size() + entry.value().size() <= most * kRecordAlignment;
}

/// The commit is the offset of the block.
void OperationLogs::make_ring(Ring& ring) {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(ring_bytes_);
  session.commit(pm::set_word(place_of(ring).block, offset));
  ring.bytes = pool_.at<std::byte>(offset);
}

void OperationLogs::make_first_ring() {
  if (rings_[0].bytes == nullptr) make_ring(rings_[0]);
}

/// Makes a ring now and then, since it takes long to find no space.
bool OperationLogs::try_ring(Ring& ring) {
  constexpr unsigned kPasses = 1000;
  if (ring.passes > 0) return --ring.passes, false;
  try {
    make_ring(ring);
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    ring.passes = kPasses;
    return false;
  }
}

std::unique_lock<util::SpinLock> OperationLogs::lock_ring(Ring*& ring) {
  ring = &rings_[util::current_stripe() % kLogs];
  std::unique_lock lock(ring->lock);
  if (ring->bytes != nullptr || try_ring(*ring)) return lock;
  ring = &rings_[0];
  lock.unlock();
  return std::unique_lock(ring->lock);
}

bool OperationLogs::append(Ring& ring, Entry& entry) {
  ring.queue.make_room();
  return append_record(ring, entry);
}

void OperationLogs::append_cancel(Ring& ring, Entry& cancel) noexcept {
  [[maybe_unused]] const bool appended = append_record(ring, cancel);
  assert(appended);
}

bool OperationLogs::append_record(Ring& ring, Entry& entry) {
  Record record{};
  record.key_size = static_cast<std::uint16_t>(entry.key().size());
  record.value_size = static_cast<std::uint32_t>(entry.value().size());
  record.operation = static_cast<std::uint8_t>(entry.operation());
  record.outside = fits_inside(entry) ? 0 : 1;
  const std::uint64_t size = size_of(record);
  const std::uint64_t position = fitting(ring.tail, size);
  const bool puts = entry.operation() == Operation::put;
  const std::uint64_t room = puts ? ring_bytes_ / 4 * 3 : ring_bytes_;
  if (position + size - ring.head > room) return false;
  // No more than a ring of bytes lies between head and tail, and so no more than one gap.
  const std::uint64_t gap = position != ring.tail ? ring.tail : ring.gap;
  // relaxed: the order of the numbers of a key is that of its bucket's lock; a cut has all locks.
  record.number = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (record.outside == 0) {
    write(*record_at(ring, position), record, entry, position);
  } else {
    write_outside(*record_at(ring, position), record, entry, position);
  }
  ring.tail = position + size;
  ring.gap = gap;
  entry.set_number(record.number);
  return true;
}

/// The durability point: one fence.
void OperationLogs::write(Record& to, Record& record, const Entry& entry, std::uint64_t position) {
  record.check = check_with(check_of(record, position), entry.key(), entry.value());
  auto* const bytes = reinterpret_cast<std::byte*>(&to + 1);
  const std::size_t key_size = entry.key().size(), value_size = entry.value().size();
  if (key_size > 0) pm().copy(bytes, entry.key().data(), key_size);
  if (value_size > 0) pm().copy(bytes + key_size, entry.value().data(), value_size);
  pm().copy(&to, &record, sizeof record);
  pm().persist(&to, sizeof record + key_size + value_size);  // before the write is visible
}

/// The checksum is the commit of the payload's allocation.
void OperationLogs::write_outside(Record& to, Record& record, const Entry& entry,
                                  std::uint64_t position) {
  const std::size_t key_size = entry.key().size(), value_size = entry.value().size();
  alloc::Session session = pool_.allocator().session();
  record.payload = session.reserve(key_size + value_size);
  auto* const bytes = pool_.at<std::byte>(record.payload);
  if (key_size > 0) pm().copy(bytes, entry.key().data(), key_size);
  if (value_size > 0) pm().copy(bytes + key_size, entry.value().data(), value_size);
  pm().flush(bytes, key_size + value_size);  // the commit fences
  pm().copy(&to.number, &record.number, sizeof record - offsetof(Record, number));
  // With lines of memory it would come with that of `check`, which is its own. A commit by the
  // journal writes that word alone.
  pm().flush(&to, sizeof to);
  session.commit(pm::set_word(to.check, check_of(record, position)));
}

bool OperationLogs::is_filling(const Ring& ring) const {
  const std::uint64_t lines = ring_bytes_ / kRecordAlignment;
  return (ring.tail - ring.head) / kRecordAlignment >
         pm::limit("tips: lines of a ring before a reclamation", lines / 2);
}

bool OperationLogs::has_room(const Ring& ring, const Entry& entry, const Entry& after) const {
  constexpr std::uint64_t kSkipped = 2;  // a record may begin at the next turn
  const auto most = [this](const Entry& one) {
    return round_up(sizeof(Record) +
                    (fits_inside(one) ? one.key().size() + one.value().size() : 0));
  };
  return ring.tail - ring.head + kSkipped * (most(entry) + most(after)) <= ring_bytes_;
}

bool OperationLogs::is_due() {
  return std::any_of(rings_.begin(), rings_.end(), [this](Ring& ring) {
    const std::lock_guard lock(ring.lock);
    return is_filling(ring);
  });
}

std::uint64_t OperationLogs::ends(Ends& ends) {
  for (Ring& ring : rings_) ring.lock.lock();
  const std::uint64_t number = last_number_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kLogs; ++i) ends[i] = rings_[i].queue.end();
  for (Ring& ring : rings_) ring.lock.unlock();
  return number;
}

LoggedWrite OperationLogs::read(const Record& record) const {
  const char* bytes = reinterpret_cast<const char*>(&record + 1);
  if (record.outside != 0) {
    const std::uint64_t size = std::uint64_t{record.key_size} + record.value_size;
    if (!pool_.allocator().validate_block(record.payload, size))
      throw_damaged_part(pool_, "an operational log");
    bytes = pool_.at<char>(record.payload);
  }
  return {record.number,
          static_cast<Operation>(record.operation),
          {bytes, record.key_size},
          {bytes + record.key_size, record.value_size}};
}

/// Finds the end: the first position behind `head` without a record.
void OperationLogs::open_ring(Ring& ring) {
  const RingPlace& place = place_of(ring);
  const pm::Offset block = pm::load(place.block);
  if (block == pm::kNull) return;
  ring.head = ring.tail = pm::load(place.head);
  const bool sound = ring.head % kRecordAlignment == 0 && ring.head < ~std::uint64_t{0} / 2 &&
                     pool_.allocator().validate_block(block, ring_bytes_);
  if (!sound) throw_damaged_part(pool_, "an operational log");
  ring.bytes = pool_.at<std::byte>(block);
  for (std::uint64_t at = ring.head; const Record* record = next_record(ring, at);) {
    if (at != ring.tail) ring.gap = ring.tail;
    if (at + size_of(*record) - ring.head > ring_bytes_)
      throw_damaged_part(pool_, "an operational log");
    ring.tail = at += size_of(*record);
  }
}

/// The numbers of records that mean nothing: those that were cancelled, and what cancels them.
/// Ascending; so are the records.
std::vector<std::uint64_t> OperationLogs::cancelled_among(
    const std::vector<const Record*>& records) const {
  std::vector<std::uint64_t> numbers;
  for (const Record* record : records) {
    if (record->operation != static_cast<std::uint8_t>(Operation::cancel)) continue;
    std::uint64_t number = 0;
    if (record->key_size != sizeof number || record->outside != 0)
      throw_damaged_part(pool_, "an operational log");
    std::memcpy(&number, record + 1, sizeof number);
    numbers.push_back(record->number);
    numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void OperationLogs::recover(const std::function<void(const LoggedWrite&)>& show) {
  std::vector<const Record*> records;
  const std::uint64_t reclaimed = pm::load(header_.reclaimed);
  for (Ring& ring : rings_) {
    open_ring(ring);
    if (ring.bytes == nullptr) continue;
    for_each_record(ring, [&](const Record& record, std::uint64_t) {
      if (record.number > reclaimed) records.push_back(&record);
      return true;
    });
  }
  std::sort(records.begin(), records.end(),
            [](const Record* a, const Record* b) { return a->number < b->number; });
  last_number_ = std::max(reclaimed, records.empty() ? 0 : records.back()->number);
  const std::vector<std::uint64_t> cancelled = cancelled_among(records);
  for (const Record* record : records)
    if (!std::binary_search(cancelled.begin(), cancelled.end(), record->number))
      show(read(*record));
}

/// Durably, with the word that leads to it.
void OperationLogs::free_payload(Record& record) {
  const pm::Offset payload = pm::load(record.payload);
  if (record.outside == 0 || payload == pm::kNull) return;
  alloc::Session session = pool_.allocator().session();
  session.free(payload);
  session.commit(pm::set_word(record.payload, 0));
}

/// Frees the payloads of records up to a number. Returns the end of these records.
std::uint64_t OperationLogs::free_records(const Ring& ring, std::uint64_t to) {
  std::uint64_t head = ring.head;
  for_each_record(ring, [&](Record& record, std::uint64_t end) {
    if (record.number > to) return false;
    free_payload(record);
    head = end;
    return true;
  });
  return head;
}

/// No other thread moves the heads, and records before the tail that is seen here stay as they are.
OperationLogs::Heads OperationLogs::reclaim() {
  const std::uint64_t to = pm::load(header_.reclaim_to);
  pm().store(header_.reclaimed, to);
  // Durable before a payload is freed, by the fence of that commit: recovery reads the payloads of
  // the records behind it. No head has to wait: until the next epoch recovery does all this again.
  pm().flush(&header_.reclaimed, sizeof to);
  Heads heads{};
  for (std::size_t i = 0; i < kLogs; ++i) {
    Ring seen;
    {
      const std::lock_guard lock(rings_[i].lock);
      if (rings_[i].bytes == nullptr) continue;
      seen.bytes = rings_[i].bytes, seen.head = rings_[i].head, seen.tail = rings_[i].tail;
      seen.gap = rings_[i].gap;
    }
    heads[i] = free_records(seen, to);
    if (heads[i] == seen.head) continue;
    pm().store(header_.rings[i].head, heads[i]);
    // Durable when the next epoch is, before what lies ahead of it is written over.
    pm().flush(&header_.rings[i].head, sizeof heads[i]);
  }
  return heads;
}

void OperationLogs::advance(const Heads& heads) {
  for (std::size_t i = 0; i < kLogs; ++i) {
    const std::lock_guard lock(rings_[i].lock);
    if (rings_[i].bytes != nullptr) rings_[i].head = heads[i];
  }
}

void OperationLogs::walk(Owned& owned) const {
  for (const Ring& ring : rings_) {
    if (ring.bytes == nullptr) continue;
    for_each_record(ring, [&](Record& record, std::uint64_t) {
      const pm::Offset payload = pm::load(record.payload);
      if (record.outside != 0 && payload != pm::kNull)
        owned.release(pm::set_word(record.payload, pm::kNull),
                      OwnedBlocks(payload, std::uint64_t{record.key_size} + record.value_size,
                                  "the payload of a record"));
      return true;
    });
    owned.release(pm::set_word(place_of(ring).block, pm::kNull),
                  OwnedBlocks(pool_.offset(ring.bytes), ring_bytes_, "an operational log"));
  }
}

}  // namespace perdix::detail::index::tips
