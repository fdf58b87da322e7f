#include "special/resume/plain_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

#include "wal/record.h"

namespace perdix::bench::resumption {
namespace {

using detail::wal::Record;

constexpr std::uint64_t kSeed = 0x5045'5244'4958'0001;

// As in a stripe of the structured log, so that no position is 0.
detail::wal::Position position_of(std::uint64_t number) {
  return detail::wal::kSegmentSize + number * sizeof(Record);
}

Record make_record(const Change& change, std::uint64_t number) {
  const std::uint64_t where = detail::wal::pack_where(change.owner, detail::wal::Type::put, 0);
  return {where, change.key, change.value,
          detail::wal::check_of(kSeed, position_of(number), where, change.key, change.value)};
}

[[noreturn]] void fail(const char* what, const std::filesystem::path& path) {
  throw Error(Errc::io_error,
              fmt::format("can't {} {}: {}", what, path.string(), std::strerror(errno)));
}

}  // namespace

void write_plain_log(const std::filesystem::path& path, std::span<const Change> changes) {
  // Whole segments, and room behind the tail, as a log has that is appended to.
  const std::uint64_t bytes =
      (changes.size_bytes() / sizeof(Change) * sizeof(Record) / detail::wal::kSegmentSize + 1) *
      detail::wal::kSegmentSize;
  std::vector<Record> records(bytes / sizeof(Record));
  for (std::uint64_t i = 0; i < changes.size(); ++i) records[i] = make_record(changes[i], i);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(records.data()), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file) fail("write", path);
}

PlainLog::PlainLog(const std::filesystem::path& path) {
  std::error_code error;
  bytes_ = std::filesystem::file_size(path, error);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("open", path);
  void* memory = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) fail("map", path);
  data_ = static_cast<const std::byte*>(memory);
}

PlainLog::~PlainLog() { ::munmap(const_cast<std::byte*>(data_), bytes_); }

std::uint64_t PlainLog::capacity() const { return bytes_ / sizeof(Record); }

std::uint64_t PlainLog::scan(FlatTable& table) const {
  // Records are applied some time after they were verified, when their slots have come from memory.
  constexpr std::uint64_t kAhead = 32;
  const auto* records = reinterpret_cast<const Record*>(data_);
  const std::uint64_t capacity = this->capacity();
  std::uint64_t applied = 0;
  const auto apply_one = [&] {
    table.put(records[applied].key, records[applied].value);
    ++applied;
  };
  std::uint64_t valid = 0;
  for (; valid < capacity && detail::wal::read_record(records[valid], kSeed, position_of(valid));
       ++valid) {
    table.prefetch(records[valid].key);
    if (valid - applied == kAhead) apply_one();
  }
  while (applied < valid) apply_one();
  return valid;
}

}  // namespace perdix::bench::resumption
