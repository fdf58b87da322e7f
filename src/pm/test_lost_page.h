// For tests: a page of a mapped file that the device does not give.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace perdix::testing_files {

/// From now on an access to the page of `address` raises SIGBUS, as if the device could not read
/// it. The file keeps what it has.
inline void lose_page(const void* address) {
  const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto* const page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(page_size - 1));
  // What is mapped behind the end of a file has no pages.
  const int empty = ::memfd_create("lost page", MFD_CLOEXEC);
  const bool done = empty >= 0 && ::mmap(page, page_size, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_FIXED, empty, 0) != MAP_FAILED;
  if (empty >= 0) ::close(empty);
  if (!done) throw std::runtime_error("no page can be taken away");
}

}  // namespace perdix::testing_files
