#include "pm/test_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "util/random.h"

namespace perdix::testing_files {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSector = 512;

/// The two open file descriptions by which a pool syncs: that of its descriptor and its mapping,
/// and that of its second mapping (pm/second_mapping.h), whose pages have no access.
enum Description { kFirst, kSecond };

struct State {
  std::mutex mutex;
  std::filesystem::path path;
  int cache = -1;  // a descriptor of the file
  struct stat status {};
  std::vector<char> device;
  std::vector<bool> lost;   // by page: clean in the cache, and not on the device
  bool unreported[2] = {};  // an error, to each description
  std::size_t fail_at = 0;
  bool for_ever = false;
  std::size_t syncs = 0;
  std::size_t failed = 0;
  std::size_t crash_at = 0;
  std::filesystem::path image;  // of the crash
  std::uint64_t seed = 0;
  bool crashed = false;
};

State& state() {
  static State& instance = *new State();
  return instance;
}

/// Where in the file an address lies, and by which description it is mapped; nothing if it is not.
struct MappedAt {
  std::size_t offset;
  Description by;
};

std::optional<MappedAt> find_mapping(const std::string& path, std::uintptr_t at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t offset = 0;
    char access = 0;
    const char* format = "%" SCNxPTR "-%" SCNxPTR " %c%*s %" SCNx64;
    if (line.find(path) == std::string::npos) continue;
    if (std::sscanf(line.c_str(), format, &begin, &end, &access, &offset) != 4) continue;
    if (begin <= at && at < end)
      return MappedAt{at - begin + offset, access == '-' ? kSecond : kFirst};
  }
  return std::nullopt;
}

void write_file(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("can't write " + path.string());
}

/// Of what is in the cache only, some sectors are written: none, all, or each or not.
void crash(State& s) {
  detail::util::Random random(s.seed);
  const std::uint64_t which = random.below(4);
  std::vector<char> image = s.device;
  char page[kPage];
  for (std::size_t at = 0; at < image.size() && which != 0; at += kPage) {
    if (::pread(s.cache, page, kPage, static_cast<off_t>(at)) != static_cast<ssize_t>(kPage)) break;
    for (std::size_t i = 0; i < kPage; i += kSector) {
      char* const to = image.data() + at + i;
      if (std::memcmp(to, page + i, kSector) == 0) continue;
      if (which == 1 || random.one_in(2)) std::copy(page + i, page + i + kSector, to);
    }
  }
  write_file(s.image, image);
  s.crashed = true;
}

/// Whether the sync loses its pages.
bool due(State& s) {
  ++s.syncs;
  const bool fails =
      s.fail_at != 0 && (s.syncs == s.fail_at || (s.for_ever && s.syncs > s.fail_at));
  s.failed += fails ? 1 : 0;
  if (fails) s.unreported[kFirst] = s.unreported[kSecond] = true;
  return fails;
}

/// Syncs [begin, end) of the file, or loses it. Each description is told once of an error.
int sync(State& s, Description by, std::size_t begin, std::size_t end) {
  struct stat now {};
  ::fstat(s.cache, &now);
  s.device.resize(static_cast<std::size_t>(now.st_size));
  s.lost.resize(s.device.size() / kPage);
  end = std::min(end, s.device.size());
  if (s.crash_at != 0 && s.syncs + 1 == s.crash_at) crash(s);
  const bool fails = due(s);
  for (std::size_t at = begin; at < end; at += kPage) {
    char page[kPage];
    if (::pread(s.cache, page, kPage, static_cast<off_t>(at)) != static_cast<ssize_t>(kPage)) break;
    if (fails)
      s.lost[at / kPage] = true;
    else if (!s.lost[at / kPage])
      std::copy(page, page + kPage, s.device.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (!std::exchange(s.unreported[by], false)) return 0;
  errno = EIO;
  return -1;
}

bool is_attached(State& s, int fd) {
  struct stat status {};
  return s.cache >= 0 && ::fstat(fd, &status) == 0 && status.st_ino == s.status.st_ino &&
         status.st_dev == s.status.st_dev;
}

void forget_clean(State& s) {
  for (std::size_t page = 0; page < s.lost.size(); ++page) {
    if (!s.lost[page]) continue;
    if (::pwrite(s.cache, s.device.data() + page * kPage, kPage,
                 static_cast<off_t>(page * kPage)) != static_cast<ssize_t>(kPage))
      throw std::runtime_error("can't write " + s.path.string());
    s.lost[page] = false;
  }
}

}  // namespace

void Device::attach(const std::filesystem::path& path) {
  detach();
  State& s = state();
  std::ifstream in(path, std::ios::binary);
  s.device.assign(std::filesystem::file_size(path), 0);
  in.read(s.device.data(), static_cast<std::streamsize>(s.device.size()));
  s.lost.assign(s.device.size() / kPage, false);
  s.path = path;
  s.cache = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (s.cache < 0 || ::fstat(s.cache, &s.status) != 0)
    throw std::runtime_error("can't attach " + path.string());
  fail(0, false);
}

void Device::detach() {
  State& s = state();
  if (s.cache >= 0) ::close(s.cache);
  s.cache = -1;
}

void Device::fail(std::size_t n, bool for_ever) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.fail_at = n;
  s.for_ever = for_ever;
  s.syncs = s.failed = s.crash_at = 0;
  s.crashed = false;
  for (bool& error : s.unreported) error = false;
}

void Device::crash_at(std::size_t n, const std::filesystem::path& image, std::uint64_t seed) {
  fail(0, false);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.crash_at = n;
  s.image = image;
  s.seed = seed;
}

bool Device::crashed() {
  const std::lock_guard lock(state().mutex);
  return state().crashed;
}

std::size_t Device::syncs() {
  const std::lock_guard lock(state().mutex);
  return state().syncs;
}

std::size_t Device::failed_syncs() {
  const std::lock_guard lock(state().mutex);
  return state().failed;
}

void Device::copy_to(const std::filesystem::path& path) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  write_file(path, s.device);
}

}  // namespace perdix::testing_files

extern "C" int msync(void* address, std::size_t n, int flags) {
  using namespace perdix::testing_files;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (s.cache >= 0) {
    if (const std::optional<MappedAt> place = find_mapping(s.path.string(), at))
      return sync(s, place->by, place->offset, place->offset + n);
  }
  return static_cast<int>(::syscall(SYS_msync, address, n, flags));
}

extern "C" int fsync(int fd) {
  using namespace perdix::testing_files;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (is_attached(s, fd)) return sync(s, kFirst, 0, SIZE_MAX);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int posix_fadvise(int fd, off_t offset, off_t n, int advice) {
  using namespace perdix::testing_files;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (advice == POSIX_FADV_DONTNEED && is_attached(s, fd)) {
    forget_clean(s);
    return 0;
  }
  return static_cast<int>(::syscall(SYS_fadvise64, fd, offset, n, advice));
}
