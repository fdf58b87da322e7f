#include "storm/device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "storm/board.h"

namespace perdix::test::storm::device {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSector = 512;

std::string device_of(const std::string& path) { return path + ".device"; }

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    require(fd_ >= 0, "the storm can't open " + path);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor)

 private:
  int fd_;
};

std::size_t size_of(int fd) {
  struct stat status {};
  require(::fstat(fd, &status) == 0, "the storm can't look at a file");
  return static_cast<std::size_t>(status.st_size);
}

struct Attached {
  std::string path;
  Descriptor file, device;
  struct stat status {};
  std::vector<bool> lost;  // by page: its sync has failed
};

// Global, since what is interposed has no object.
std::mutex mutex;
std::list<Attached>& attached() {
  static auto& all = *new std::list<Attached>();
  return all;
}

/// What is mapped at an address. By the inode, since a file that got its name late is mapped
/// without one; a pool is mapped twice.
struct Mapped {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
};

Mapped find_mapping(std::uintptr_t at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapped found;
    constexpr const char* kFormat = "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64 " %*s %" SCNu64;
    if (std::sscanf(line.c_str(), kFormat, &found.begin, &found.end, &found.offset, &found.inode) ==
            4 &&
        found.begin <= at && at < found.end)
      return found;
  }
  return {};
}

void write_all(int fd, const char* bytes, std::size_t n, std::size_t at) {
  require(::pwrite(fd, bytes, n, static_cast<off_t>(at)) == static_cast<ssize_t>(n),
          "the storm can't write to a device");
}

void sync(Attached& pool, std::size_t begin, std::size_t end, bool succeeded) {
  const std::size_t size = size_of(pool.file);
  require(::ftruncate(pool.device, static_cast<off_t>(size)) == 0, "the storm's device is full");
  pool.lost.resize(size / kPage);
  std::array<char, kPage> page;
  for (std::size_t at = begin; at < std::min(end, size); at += kPage) {
    if (!succeeded) pool.lost[at / kPage] = true;
    if (pool.lost[at / kPage]) continue;
    if (::pread(pool.file, page.data(), kPage, static_cast<off_t>(at)) == ssize_t{kPage})
      write_all(pool.device, page.data(), kPage, at);
  }
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

void attach(const std::string& path) {
  std::filesystem::copy_file(path, device_of(path),
                             std::filesystem::copy_options::overwrite_existing);
  const std::lock_guard lock(mutex);
  std::erase_if(attached(), [&](const Attached& pool) { return pool.path == path; });
  Attached pool{path, {path, O_RDONLY}, {device_of(path), O_RDWR}, {}, {}};
  ::fstat(pool.file, &pool.status);
  attached().push_back(std::move(pool));
}

void on_sync(const void* address, std::size_t n, bool succeeded) {
  const std::lock_guard lock(mutex);
  if (attached().empty()) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Mapped mapped = find_mapping(at);
  for (Attached& pool : attached()) {
    if (pool.status.st_ino != mapped.inode) continue;
    const std::size_t begin = at - mapped.begin + mapped.offset;
    return sync(pool, begin, begin + n, succeeded);
  }
}

void on_sync(int fd, bool succeeded) {
  const std::lock_guard lock(mutex);
  struct stat status {};
  if (attached().empty() || ::fstat(fd, &status) != 0) return;
  for (Attached& pool : attached()) {
    if (pool.status.st_ino == status.st_ino && pool.status.st_dev == status.st_dev)
      return sync(pool, 0, SIZE_MAX, succeeded);
  }
}

void lose_power(const std::string& path, Rng& rng) {
  const std::string device = contents(device_of(path));
  std::string file = contents(path);
  file.resize(device.size());
  // Of what was not synced: nothing, or each sector by itself.
  const bool nothing = rng.once_in(2);
  for (std::size_t at = 0; at < file.size(); at += kSector) {
    const std::size_t n = std::min(kSector, file.size() - at);
    if (device.compare(at, n, file, at, n) == 0 || (!nothing && rng.once_in(2))) continue;
    file.replace(at, n, device, at, n);
  }
  // In place: the pool knows its file by its inode.
  const Descriptor out(path, O_RDWR);
  require(::ftruncate(out, static_cast<off_t>(file.size())) == 0, "the storm can't cut a pool");
  write_all(out, file.data(), file.size(), 0);
}

}  // namespace perdix::test::storm::device
