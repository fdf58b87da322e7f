// Huge pages for files in memory: tmpfs gives small ones, unless it was mounted with huge=always or
// is asked as here.
//
// All of it is advice: a failure costs only time later. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdix::detail::pm {

/// The size of a huge page on x86.
inline constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

/// Makes the pages of a mapping present and writable; those that the file has no space for are
/// taken from its file system. Never raises a signal. Linux 5.14.
bool touch_pages(void* address, std::size_t n) noexcept;

/// Makes huge pages of a mapping's pages, which have been touched: at least one of those of each
/// huge page. Cost: copies what is there in small pages. Linux 6.1.
bool collapse_pages(void* address, std::size_t n) noexcept;

/// Gives the whole huge pages in [begin, end) of a file on tmpfs their space, as huge pages, if the
/// range has none yet; a file that is shorter becomes `end` bytes long, also where it fails. Stops
/// at the first one that fails. Cost: writes all of it, about an eighth of a millisecond per MiB,
/// and more where a hypervisor must provide the memory first.
void allocate_huge_pages(int fd, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace perdix::detail::pm
