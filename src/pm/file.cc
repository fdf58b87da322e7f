#include "pm/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <perdix/error.h>

#include "pm/huge_pages.h"

namespace perdix::pm {
namespace {

constexpr mode_t kMode = S_IRUSR | S_IWUSR;
// Not blocking, so that a path that turns out to be a pipe can't hang the opener.
constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
constexpr std::uint64_t kStatBlock = 512;  // the unit of st_blocks

std::string reason(int error) { return std::strerror(error); }

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

[[noreturn]] void throw_open_error(const std::filesystem::path& path, int error) {
  const std::string name = path.string();
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      throw Error(
          Errc::not_found,
          fmt::format("there is no file '{}'; create the pool first, or check the path", name));
    case EISDIR:
    case ENXIO:
      throw Error(Errc::not_a_pool,
                  fmt::format("'{}' is not a regular file; a pool is one regular file", name));
    case EACCES:
    case EPERM:
    case EROFS:
      throw Error(Errc::io_error,
                  fmt::format("may not read and write '{}' ({}); check its owner and mode, those "
                              "of its directory, and that the file system is mounted writable",
                              name, reason(error)));
    case ELOOP:
      throw Error(Errc::io_error,
                  fmt::format("'{}' is a symbolic link that leads back to itself; point it at the "
                              "pool's file",
                              name));
    default: throw Error(Errc::io_error, fmt::format("can't open '{}': {}", name, reason(error)));
  }
}

[[noreturn]] void throw_exists(const std::filesystem::path& path) {
  throw Error(Errc::already_exists,
              fmt::format("'{}' exists already; open it, or remove it first", path.string()));
}

bool is_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
}

struct stat status(int fd, const std::filesystem::path& path) {
  struct stat result {};
  if (::fstat(fd, &result) != 0) {
    throw Error(Errc::io_error,
                fmt::format("can't examine '{}': {}", path.string(), reason(errno)));
  }
  return result;
}

/// The magic number of the file's file system; 0 if the kernel doesn't say.
auto file_system(int fd) noexcept {
  struct statfs device {};
  return ::fstatfs(fd, &device) == 0 ? device.f_type : 0;
}

void sync_directory(const std::filesystem::path& path) {
  const std::filesystem::path directory = directory_of(path);
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  // Some file systems have no directories to sync (EINVAL); some directories may be written but
  // not read (EACCES). The pool is whole in either case.
  if (!done && error != EINVAL && error != EACCES) {
    throw Error(Errc::io_error, fmt::format("can't make the name of '{}' durable: {}",
                                            path.string(), reason(error)));
  }
}

}  // namespace

File File::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), kOpenFlags);
  if (fd < 0) throw_open_error(path, errno);
  File file(fd, path, State::named);
  if (!S_ISREG(status(fd, path).st_mode)) throw_open_error(path, ENXIO);
  return file;
}

File File::create(const std::filesystem::path& path) {
  struct stat ignored {};
  if (::lstat(path.c_str(), &ignored) == 0) throw_exists(path);
  const int fd = ::open(directory_of(path).c_str(), kOpenFlags | O_TMPFILE, kMode);
  if (fd >= 0) return File(fd, path, State::nameless);
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) return create_in_place(path);
  throw_open_error(path, errno);
}

File File::create_in_place(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), kOpenFlags | O_CREAT | O_EXCL, kMode);
  if (fd >= 0) return File(fd, path, State::unpublished);
  if (errno == EEXIST) throw_exists(path);
  throw_open_error(path, errno);
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), state_(other.state_) {}

void File::close() noexcept {
  if (fd_ < 0) return;
  if (state_ == State::unpublished) ::unlink(path_.c_str());
  ::close(std::exchange(fd_, -1));
}

void File::publish() {
  if (state_ == State::nameless) {
    // The only way to name such a file without privileges goes through its entry in /proc.
    const std::string self = fmt::format("/proc/self/fd/{}", fd_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      if (errno == EEXIST) throw_exists(path_);
      throw_open_error(path_, errno);
    }
  }
  state_ = State::named;
  sync_directory(path_);
}

std::uint64_t File::size() const { return static_cast<std::uint64_t>(status(fd_, path_).st_size); }

void File::allocate(std::uint64_t size) {
  const std::uint64_t before = this->size();
  try {
    if (file_system(fd_) == TMPFS_MAGIC) allocate_huge_pages(fd_, before, size);
    give_space(before, size);
  } catch (const Error&) {
    // A failed allocation may have been done in part. If it can't be undone the file is merely
    // longer than its superblock says, and the next opening cuts it off.
    (void)!::ftruncate(fd_, static_cast<off_t>(before));
    throw;
  }
}

void File::fill_holes() {
  const struct stat now = status(fd_, path_);
  const auto size = static_cast<std::uint64_t>(now.st_size);
  const auto present = static_cast<std::uint64_t>(now.st_blocks) * kStatBlock;
  if (present >= size) return;
  struct statvfs device {};
  const bool known = ::fstatvfs(fd_, &device) == 0;
  const std::uint64_t available = std::uint64_t{device.f_bavail} * device.f_frsize;
  if (known && available < size - present) {  // better to say so than to fill the disk first
    throw Error(Errc::out_of_space,
                fmt::format("'{}' has holes that need {} bytes, but its file system has only {} "
                            "left; free some space",
                            path_.string(), size - present, available));
  }
  give_space(0, size);
}

void File::give_space(std::uint64_t begin, std::uint64_t end) {
  int error = EINTR;
  while (error == EINTR)
    error = ::posix_fallocate(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  if (error == 0) return;
  throw Error(is_full(error) ? Errc::out_of_space : Errc::io_error,
              fmt::format("can't allocate {} more bytes for '{}' ({}); free some space, or raise "
                          "the quota or the limit of file sizes",
                          end - begin, path_.string(), reason(error)));
}

void File::truncate(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) == 0) return;
  throw Error(Errc::io_error,
              fmt::format("can't cut '{}' to {} bytes: {}", path_.string(), size, reason(errno)));
}

void File::sync() {
  if (::fsync(fd_) == 0) return;
  throw Error(Errc::io_error, fmt::format("can't write '{}' to its device ({}); what the device "
                                          "holds is unknown: check it, then the pool",
                                          path_.string(), reason(errno)));
}

void File::forget_cached() {
  sync();
  // Pages that a process has mapped or that are being written would stay: there are none, of a file
  // that nobody else owns and that was just synced.
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

std::size_t File::read(std::uint64_t offset, void* to, std::size_t n) const {
  std::size_t done = 0;
  while (done < n) {
    const ssize_t got =
        ::pread(fd_, static_cast<char*>(to) + done, n - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(Errc::io_error,
                  fmt::format("can't read '{}': {}", path_.string(), reason(errno)));
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool File::in_memory() const noexcept {
  const auto type = file_system(fd_);
  return type == TMPFS_MAGIC || type == HUGETLBFS_MAGIC || type == RAMFS_MAGIC;
}

}  // namespace perdix::pm
