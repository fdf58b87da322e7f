#include "pm/huge_pages.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "pm/no_fork.h"

namespace perdix::detail::pm {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;       // Linux 6.1; glibc names it later. Older kernels answer EINVAL.
#endif
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;  // Linux 5.14. Older kernels answer EINVAL.
#endif

/// A part of a file, mapped for a while at an address that suits huge pages.
class Window {
 public:
  Window(int fd, std::uint64_t begin, std::uint64_t size) noexcept : reserved_(size + kHugePage) {
    void* const reservation =
        ::mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reservation == MAP_FAILED) return;
    reservation_ = static_cast<std::byte*>(reservation);
    std::byte* const aligned =
        reservation_ +
        (kHugePage - reinterpret_cast<std::uintptr_t>(reservation_) % kHugePage) % kHugePage;
    const NoFork no_fork;  // a child with the mapping would keep the file open, and its lock held
    void* const mapped = ::mmap(aligned, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                                static_cast<off_t>(begin));
    if (mapped != MAP_FAILED && ::madvise(aligned, size, MADV_DONTFORK) == 0) pages_ = aligned;
  }
  ~Window() {
    if (reservation_ != nullptr) ::munmap(reservation_, reserved_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::byte* pages() const noexcept { return pages_; }  ///< nullptr: it could not be mapped

 private:
  std::size_t reserved_;
  std::byte* reservation_ = nullptr;
  std::byte* pages_ = nullptr;
};

/// Never cuts a file off.
bool make_as_long(int fd, std::uint64_t size) noexcept {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return false;
  return static_cast<std::uint64_t>(now.st_size) >= size ||
         ::ftruncate(fd, static_cast<off_t>(size)) == 0;
}

}  // namespace

bool touch_pages(void* address, std::size_t n) noexcept {
  return ::madvise(address, n, kPopulateWrite) == 0;
}

bool collapse_pages(void* address, std::size_t n) noexcept {
  // The kernel does not wait for a page that is locked, or on a list of its own, for a moment.
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries) {
    if (::madvise(address, n, kCollapse) == 0) return true;
    if (errno != EAGAIN) return false;
  }
  return false;
}

void allocate_huge_pages(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint64_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uint64_t last = end / kHugePage * kHugePage;
  if (first >= last || !make_as_long(fd, end)) return;
  const Window window(fd, first, last - first);
  if (window.pages() == nullptr) return;
  ::madvise(window.pages(), last - first, MADV_HUGEPAGE);
  const auto small_page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::uint64_t at = 0; at < last - first; at += kHugePage) {
    // One small page is touched, which the kernel wants to see, and the rest is holes: so there is
    // next to nothing to be copied. What is there has been touched (Mapping::populate() says why it
    // must have been).
    if (!touch_pages(window.pages() + at, small_page)) return;
    if (!collapse_pages(window.pages() + at, kHugePage)) return;
  }
}

}  // namespace perdix::detail::pm
