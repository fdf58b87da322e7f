#include "pm/mapping.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <libpmem2.h>

#include <perdix/error.h>

#include "pm/descriptor.h"
#include "pm/no_fork.h"
#include "pm/probe.h"

namespace perdix::detail::pm {
namespace {

struct DeleteConfig {
  void operator()(pmem2_config* config) const noexcept { pmem2_config_delete(&config); }
};

/// What libpmem2 returns in a process that has called mlockall(), if what it maps does not fit into
/// the limit of locked memory.
constexpr int kTooMuchToLock = -EAGAIN;
constexpr const char* kRaiseLocked =
    "raise the limit of locked memory (ulimit -l): this process has called mlockall()";

[[noreturn]] void throw_map_error(const File& file, const std::string& what) {
  throw Error(Errc::io_error,
              fmt::format("can't map '{}': {}: {}", file.path().string(), what, pmem2_errormsg()));
}

[[noreturn]] void throw_address_taken(const File& file, std::uintptr_t address,
                                      std::uint64_t size) {
  throw Error(
      Errc::in_use,
      fmt::format("'{}' must be mapped at the {} bytes from address {:#x} on, of which this "
                  "process uses some; close what lies there (another pool, a copy of this "
                  "one), ask for a smaller max_size, or open the pool before other "
                  "libraries take addresses",
                  file.path().string(), size, address));
}

Granularity granularity_of(pmem2_map* map) {
  switch (pmem2_map_get_store_granularity(map)) {
    case PMEM2_GRANULARITY_BYTE: return Granularity::byte;
    case PMEM2_GRANULARITY_CACHE_LINE: return Granularity::cache_line;
    case PMEM2_GRANULARITY_PAGE: return Granularity::page;
  }
  return Granularity::page;  // the one that assumes least
}

/// One field of the description of a mapping in /proc/self/smaps, for example "THPeligible:    1".
struct SmapsField {
  std::string name;
  std::uint64_t value = 0;
};

/// A line that starts a mapping: "begin-end rwxp ...", addresses in hexadecimal.
bool parse_range(std::string_view line, std::uintptr_t& begin, std::uintptr_t& end) {
  const char* const last = line.data() + line.size();
  const auto [dash, error] = std::from_chars(line.data(), last, begin, 16);
  return error == std::errc() && dash != last && *dash == '-' &&
         std::from_chars(dash + 1, last, end, 16).ec == std::errc();
}

/// Calls use(line) for the lines of /proc/self/maps, each as far as kBytes go, until it returns
/// false. Takes no memory.
template <class Use>
void for_each_map_line(Use use) {
  constexpr std::size_t kBytes = 64;
  const int fd = open_above_standard("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  std::array<char, 4096> buffer;
  std::array<char, kBytes> line;
  std::size_t length = 0;
  bool more = true;
  for (ssize_t n = 0; more && (n = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    for (ssize_t i = 0; more && i < n; ++i) {
      const char c = buffer[static_cast<std::size_t>(i)];
      if (c == '\n') {
        more = use(std::string_view(line.data(), length));
        length = 0;
      } else if (length < kBytes) {
        line[length++] = c;
      }
    }
  }
  ::close(fd);
}

/// Copies those pages that the kernel has, and leaves the others. A page that can't be read is an
/// error of the kernel's copy, not a signal.
void copy_cached_pages(void* to, void* from, std::uint64_t bytes) noexcept {
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t at = 0; at < bytes; at += page_size) {
    std::byte* const page = static_cast<std::byte*>(from) + at;
    unsigned char cached = 0;
    if (::mincore(page, page_size, &cached) != 0 || (cached & 1) == 0) continue;
    const iovec source{page, page_size};
    const iovec target{static_cast<std::byte*>(to) + at, page_size};
    ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0);
  }
}

/// libpmem2 aligns a reservation to a GiB, a smaller one to 2 MiB, maps so much more for that, and
/// never gives the rest back; so a process could open some hundred pools in its life, and none
/// twice at the same address. Unmaps the rest, where the kernel shows exactly such a mapping around
/// the reservation: one that has become one with a neighbour stays as it is, and so does any where
/// /proc is not mounted. Takes no memory: what stays could not be mapped again.
void unmap_rest(const std::byte* base, std::uint64_t size) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 30, kSmall = kHugePage;
  const auto from = reinterpret_cast<std::uintptr_t>(base), to = from + size;
  for_each_map_line([&](std::string_view line) {
    std::uintptr_t begin = 0, end = 0;
    if (!parse_range(line, begin, end) || end <= from) return true;
    const std::uint64_t more = end - begin - size;
    if (begin > from || end < to || (more != kLarge && more != kSmall)) return false;
    if (begin < from) ::munmap(reinterpret_cast<void*>(begin), from - begin);
    if (to < end) ::munmap(reinterpret_cast<void*>(to), end - to);
    return false;
  });
}

}  // namespace

void Mapping::DeleteSource::operator()(pmem2_source* source) const noexcept {
  pmem2_source_delete(&source);
}

void Mapping::DeleteReservation::operator()(pmem2_vm_reservation* reservation) const noexcept {
  pmem2_vm_reservation_delete(&reservation);
}

/// libpmem2 maps the reservation's emptiness over it, which the kernel refuses at the limit of
/// mappings. Then what was mapped would stay, and its addresses with it: it goes first.
void Mapping::DeleteMap::operator()(pmem2_map* map) const noexcept {
  if (pmem2_map_delete(&map) == 0) return;
  ::munmap(pmem2_map_get_address(map), pmem2_map_get_size(map));
  pmem2_map_delete(&map);
}

Mapping::Mapping(const File& file, std::uint64_t size, std::uint64_t max_size,
                 std::uintptr_t address)
    : file_(file), max_size_(max_size) {
  assert(size > 0 && size <= max_size);
  assert(size % kAlignment == 0 && max_size % kAlignment == 0 && address % kAlignment == 0);
  reserve(address);
  grow(size);
  granularity_ = granularity_of(maps_.front().get());
  on_map(base_, max_size_);
}

void Mapping::reserve(std::uintptr_t address) {
  const NoFork no_fork;
  const StandardDescriptors taken;  // by no file that libpmem2 opens
  pmem2_source* source = nullptr;
  if (pmem2_source_from_fd(&source, file_.fd()) != 0) throw_map_error(file_, "no source");
  source_.reset(source);
  pmem2_vm_reservation* reservation = nullptr;
  const int error =
      pmem2_vm_reservation_new(&reservation, reinterpret_cast<void*>(address), max_size_);
  if (error == PMEM2_E_MAPPING_EXISTS) throw_address_taken(file_, address, max_size_);
  if (error != 0) {
    throw Error(
        Errc::out_of_space,
        fmt::format("can't reserve {} bytes of addresses for '{}' ({}); ask for a smaller "
                    "max_size, or {}",
                    max_size_, file_.path().string(), pmem2_errormsg(),
                    error == kTooMuchToLock ? kRaiseLocked
                                            : "raise the limit of address space (ulimit -v)"));
  }
  reservation_.reset(reservation);
  base_ = static_cast<std::byte*>(pmem2_vm_reservation_get_address(reservation));
  unmap_rest(base_, max_size_);
  assert(reinterpret_cast<std::uintptr_t>(base_) % kAlignment == 0);
}

Mapping::~Mapping() {
  const NoFork no_fork;
  maps_.clear();
  reservation_.reset();
}

Mapping::Map Mapping::map(std::uint64_t begin, std::uint64_t end) const {
  pmem2_config* created = nullptr;
  if (pmem2_config_new(&created) != 0) throw_map_error(file_, "no configuration");
  const std::unique_ptr<pmem2_config, DeleteConfig> config(created);
  // Page is the coarsest: any file will do, and the result says what it really is.
  pmem2_config_set_required_store_granularity(created, PMEM2_GRANULARITY_PAGE);
  pmem2_config_set_offset(created, begin);
  pmem2_config_set_length(created, end - begin);
  pmem2_config_set_vm_reservation(created, reservation_.get(), begin);
  pmem2_map* result = nullptr;
  const StandardDescriptors taken;  // by no file that libpmem2 opens
  file_.require_ours();             // whose descriptor is in the source
  const int error = pmem2_map_new(&result, created, source_.get());
  if (error == kTooMuchToLock)
    throw_map_error(file_, fmt::format("bytes {} to {}; {}", begin, end, kRaiseLocked));
  if (error != 0) throw_map_error(file_, fmt::format("bytes {} to {}", begin, end));
  return Map(result);
}

void Mapping::grow(std::uint64_t new_size) {
  const std::uint64_t old_size = size();
  assert(new_size % kAlignment == 0 && new_size <= max_size_);
  if (new_size <= old_size) return;
  const NoFork no_fork;
  if (reach_ != Reach::file) {
    throw Error(Errc::io_error,
                fmt::format("'{}' can't grow: its device has failed", file_.path().string()));
  }
  maps_.reserve(maps_.size() + 1);
  Map added = map(old_size, new_size);
  keep_from_children(old_size, new_size);
  // Before the first touch, so that faults may use huge pages. Advice: refused without harm where
  // the kernel has none. Not where pages are written to a disk: a file system that took it would
  // write 2 MiB for each line that is synced.
  if (granularity_of(added.get()) != Granularity::page || file_.in_memory())
    ::madvise(base_ + old_size, new_size - old_size, MADV_HUGEPAGE);
  maps_.push_back(std::move(added));
  size_.store(new_size, std::memory_order_release);
}

/// A child that had the mapping would keep the file open, and with it the owner's lock.
void Mapping::keep_from_children(std::uint64_t begin, std::uint64_t end) const {
  if (::madvise(base_ + begin, end - begin, MADV_DONTFORK) == 0) return;
  throw Error(Errc::io_error, fmt::format("can't keep the mapping of '{}' from child processes: {}",
                                          file_.path().string(), std::strerror(errno)));
}

void Mapping::make_private() {
  const NoFork no_fork;
  if (leave_file()) return;
  throw Error(Errc::io_error,
              fmt::format("a sync of '{}' has failed, and stores to it can't be kept from the "
                          "file either ({}); check the device, and open the pool again",
                          file_.path().string(), std::strerror(errno)));
}

/// The first thread does it, others wait for that. A piece that grow() adds at the same time still
/// reaches the file, where no superblock covers it. False if the kernel refuses.
bool Mapping::leave_file() noexcept {
  Reach expected = Reach::file;
  if (!reach_.compare_exchange_strong(expected, Reach::changing)) {
    while (reach_ == Reach::changing) ::sched_yield();
    return reach_ == Reach::memory;
  }
  const bool done = can_be_mapped() ? map_privately() : replace_by_copy();
  // Refused, it would only leave children the owner's lock.
  if (done) ::madvise(base_, size(), MADV_DONTFORK);
  reach_ = done ? Reach::memory : Reach::file;
  return done;
}

/// Whether the kernel maps the file at all: its device may be gone, or its descriptor.
bool Mapping::can_be_mapped() const noexcept {
  const auto page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (!file_.is_ours()) return false;
  void* const page = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE,
                            file_.descriptor().number(), 0);
  if (page == MAP_FAILED) return false;
  ::munmap(page, page_size);
  return true;
}

/// One call for all pieces: no thread sees an address without a page. MAP_NORESERVE, since a pool
/// may be larger than memory, and only what is stored to from now on takes some. Only if the file
/// can be mapped: a refusal by its file system would leave a hole.
bool Mapping::map_privately() noexcept {
  return ::mmap(base_, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                file_.descriptor().number(), 0) != MAP_FAILED;
}

/// Puts memory in the place of the file, with what the kernel has of it. In steps, so that what is
/// stored meanwhile is missing only from one of them. Async-signal-safe.
bool Mapping::replace_by_copy() noexcept {
  constexpr std::uint64_t kStep = kAlignment;
  for (std::uint64_t at = 0; at < size(); at += kStep) {
    void* const memory = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    copy_cached_pages(memory, base_ + at, kStep);
    if (::mremap(memory, kStep, kStep, MREMAP_MAYMOVE | MREMAP_FIXED, base_ + at) == MAP_FAILED)
      return false;
  }
  return true;
}

bool Mapping::replace_lost_page(const void* address) noexcept {
  return leave_file() && replace_by_zeros(base_) && replace_by_zeros(address);
}

/// Async-signal-safe. False if the kernel refuses.
bool Mapping::replace_by_zeros(const void* address) noexcept {
  const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto* const page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(page_size - 1));
  if (::mmap(page, page_size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
    return false;
  ::madvise(page, page_size, MADV_DONTFORK);
  return true;
}

void Mapping::populate(std::uint64_t offset, std::uint64_t n) const noexcept {
  assert(offset + n <= size());
  // First touch, then collapse, never the other way round: collapsing a huge page of tmpfs that was
  // allocated but never touched maps it as it is, neither zeroed nor known to hold data, and stores
  // to it are lost (seen with Linux 6.18, huge=always).
  if (!touch_pages(base_ + offset, n)) return;
  // For a range without huge pages, as in a file that came from elsewhere: huge pages halve the
  // cost of a later random read. File systems without them answer EINVAL immediately.
  collapse_pages(base_ + offset, n);
}

void Mapping::sync(std::uint64_t offset, std::uint64_t n) const {
  if (::msync(base_ + offset, n, MS_SYNC) == 0) return;
  throw Error(Errc::io_error, fmt::format("can't write '{}' to its device: {}",
                                          file_.path().string(), std::strerror(errno)));
}

bool Mapping::huge_pages() const {
  const auto first = reinterpret_cast<std::uintptr_t>(base_);
  const std::uintptr_t last = first + size();
  const auto base_page_kib = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 1024;
  const StandardDescriptors taken;
  std::ifstream smaps("/proc/self/smaps");
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (parse_range(line, begin, end)) {
      if (begin >= last) break;  // the kernel walks the pages of what is read
      ours = first < end;
      continue;
    }
    if (!ours) continue;
    SmapsField field;
    std::istringstream(line) >> field.name >> field.value;
    if (field.name == "KernelPageSize:" && field.value > base_page_kib) return true;  // hugetlbfs
    if (field.name == "ShmemPmdMapped:" && field.value > 0) return true;
    if (field.name == "FilePmdMapped:" && field.value > 0) return true;
    // The kernel doesn't count the huge mappings of DAX files; it only permits huge pages.
    if (dax() && field.name == "THPeligible:" && field.value > 0) return true;
  }
  return false;
}

}  // namespace perdix::detail::pm
