#include "pm/file_sync.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace perdix::detail::pm {
namespace {

/// By its number, since it may have no name yet, or another one than it was opened by. None if the
/// file system has no direct writes or /proc is not there.
Descriptor open_direct(const File& file) noexcept {
  std::array<char, 40> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", file.descriptor().number());
  const int fd = open_above_standard(path.data(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC);
  if (fd < 0) return {};
  Descriptor opened(fd);
  if (opened.leads_where(file.descriptor())) return opened;
  opened.close();  // the program has closed the file's own in between
  return {};
}

/// Whether another way may succeed: this one is not there.
bool is_unsupported(int error) noexcept {
  return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == EBADF;
}

}  // namespace

FileSync::FileSync(const File& file, std::byte* base, std::function<bool()> reaches_file) noexcept
    : file_(file),
      base_(base),
      reaches_file_(std::move(reaches_file)),
      direct_(open_direct(file)),
      way_(Way::direct) {}

int FileSync::write(void* to, const std::byte* from, std::size_t bytes) noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(to) - base_);
  if (!reaches_file_()) return KernelSync::write(to, from, bytes);
  for (;;) {
    if (way_ == Way::mapped) return KernelSync::write(to, from, bytes);
    const int error = write_by(way_, offset, from, bytes);
    if (!is_unsupported(error)) return error;
    way_ = way_ == Way::direct ? Way::buffered : Way::mapped;
  }
}

int FileSync::write_by(Way way, std::size_t offset, const std::byte* from,
                       std::size_t bytes) const noexcept {
  const Descriptor& descriptor = way == Way::direct ? direct_ : file_.descriptor();
  if (!descriptor.is_ours()) return EBADF;
  const auto at = static_cast<off_t>(offset);
  const iovec range{const_cast<std::byte*>(from), bytes};
  ssize_t written = 0;
  do {
    written = way == Way::direct ? ::pwrite(descriptor.number(), from, bytes, at)
                                 : ::pwritev2(descriptor.number(), &range, 1, at, RWF_DSYNC);
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return static_cast<std::size_t>(written) == bytes ? 0 : EIO;
}

}  // namespace perdix::detail::pm
