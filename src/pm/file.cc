#include "pm/file.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pm/huge_pages.h"
#include "util/signals.h"

namespace perdix::detail::pm {
namespace {

constexpr mode_t kMode = S_IRUSR | S_IWUSR;
// Not blocking, so that a path that turns out to be a pipe can't hang the opener.
constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
constexpr std::uint64_t kStatBlock = 512;  // the unit of st_blocks

std::string reason(int error) { return std::strerror(error); }

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

bool is_link(const std::filesystem::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

[[noreturn]] void throw_dangling(Errc code, const std::filesystem::path& path) {
  std::error_code unknown;
  throw Error(code,
              fmt::format("'{}' is a symbolic link to '{}', where there is no file; create "
                          "the pool there, or remove the link",
                          path.string(), std::filesystem::read_symlink(path, unknown).string()));
}

[[noreturn]] void throw_open_error(const std::filesystem::path& path, int error) {
  const std::string name = path.string();
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      if (is_link(path)) throw_dangling(Errc::not_found, path);
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

[[noreturn]] void throw_no_directory(const std::filesystem::path& path) {
  throw Error(Errc::not_found, fmt::format("there is no directory '{}' to create '{}' in; make it "
                                           "first, or check the path",
                                           directory_of(path).string(), path.string()));
}

[[noreturn]] void throw_exists(const std::filesystem::path& path) {
  struct stat target {};
  if (is_link(path) && ::stat(path.c_str(), &target) != 0)
    throw_dangling(Errc::already_exists, path);
  throw Error(Errc::already_exists,
              fmt::format("'{}' exists already; open it, or remove it first", path.string()));
}

/// The kernel would take the part before it for the path.
void refuse_nul(const std::filesystem::path& path) {
  if (path.native().find('\0') == std::string::npos) return;
  throw Error(Errc::invalid_argument,
              fmt::format("the path that begins with '{}' has a NUL byte, which no path may have; "
                          "check it",
                          path.c_str()));
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

/// A directory that a name in it was or will be changed in.
class Directory {
 public:
  explicit Directory(const std::filesystem::path& path)
      : fd_(open_above_standard(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), error_(errno) {}
  ~Directory() {
    if (fd_ >= 0) ::close(fd_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// 0, or the error. Some directories may be written but not read (EACCES), and some file systems
  /// have none to sync (EINVAL): there, names are as durable as they can be.
  int opened() const noexcept { return fd_ >= 0 || error_ == EACCES ? 0 : error_; }
  int sync() const noexcept {
    if (fd_ < 0 || ::fsync(fd_) == 0 || errno == EINVAL) return 0;
    return errno;
  }

 private:
  int fd_;
  int error_;
};

std::string name_in_proc(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

/// Whether a file without a name can get one: unprivileged processes do that by its entry in /proc.
bool can_be_named(int fd) { return ::access(name_in_proc(fd).c_str(), F_OK) == 0; }

/// Stores to the file, which is empty, will go to the space that it has. Advice: files of other
/// systems than btrfs know nothing of it, or need nothing.
void exempt_from_copy_on_write(int fd) noexcept {
  if (file_system(fd) != BTRFS_SUPER_MAGIC) return;
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  ::ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

bool is_exempt_from_copy_on_write(int fd) noexcept {
  int flags = 0;
  return ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NOCOW_FL) != 0;
}

/// Whether the file shares extents with others; false where the file system doesn't tell.
bool shares_extents(int fd) noexcept {
  constexpr unsigned kExtents = 64;
  alignas(fiemap) std::array<std::byte, sizeof(fiemap) + kExtents * sizeof(fiemap_extent)> buffer;
  for (std::uint64_t from = 0;;) {
    buffer = {};
    auto& request = *new (buffer.data()) fiemap;
    request.fm_start = from;
    request.fm_length = FIEMAP_MAX_OFFSET - from;
    request.fm_extent_count = kExtents;
    if (::ioctl(fd, FS_IOC_FIEMAP, &request) != 0 || request.fm_mapped_extents == 0) return false;
    for (unsigned i = 0; i < std::min(request.fm_mapped_extents, kExtents); ++i) {
      const fiemap_extent& extent = request.fm_extents[i];
      if ((extent.fe_flags & FIEMAP_EXTENT_SHARED) != 0) return true;
      if ((extent.fe_flags & FIEMAP_EXTENT_LAST) != 0) return false;
      from = extent.fe_logical + extent.fe_length;
    }
  }
}

/// Gives [begin, end) of a file its space; 0 or an error. Signals are blocked during the call. A
/// repeated signal, such as a profiler's timer, would interrupt the call each time (EINTR) before
/// it could end, and the limit of file sizes must be an error, not a signal that ends the process.
int allocate_range(int fd, std::uint64_t begin, std::uint64_t end) {
  constexpr int kMaxTries = 100;  // what else may interrupt the call does it now and then
  const util::SignalsBlocked blocked(SIGXFSZ);
  int error = EINTR;
  for (int i = 0; i < kMaxTries && error == EINTR; ++i)
    error = ::posix_fallocate(fd, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  return error;
}

}  // namespace

File File::open(const std::filesystem::path& path) {
  refuse_nul(path);
  const int fd = open_above_standard(path.c_str(), kOpenFlags);
  if (fd < 0) throw_open_error(path, errno);
  File file(fd, path, State::named);
  if (!S_ISREG(status(fd, path).st_mode)) throw_open_error(path, ENXIO);
  return file;
}

File File::create(const std::filesystem::path& path) {
  refuse_nul(path);
  struct stat ignored {};
  if (::lstat(path.c_str(), &ignored) == 0) throw_exists(path);
  const int fd = open_above_standard(directory_of(path).c_str(), kOpenFlags | O_TMPFILE, kMode);
  if (fd >= 0) {
    File file(fd, path, State::nameless);
    if (!can_be_named(fd)) return create_in_place(path);
    exempt_from_copy_on_write(fd);
    return file;
  }
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) return create_in_place(path);
  if (errno == ENOENT || errno == ENOTDIR) throw_no_directory(path);
  throw_open_error(path, errno);
}

File File::create_in_place(const std::filesystem::path& path) {
  refuse_nul(path);
  const int fd = open_above_standard(path.c_str(), kOpenFlags | O_CREAT | O_EXCL, kMode);
  if (fd >= 0) {
    exempt_from_copy_on_write(fd);
    return File(fd, path, State::unpublished);
  }
  if (errno == EEXIST) throw_exists(path);
  if (errno == ENOENT || errno == ENOTDIR) throw_no_directory(path);
  throw_open_error(path, errno);
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, {})),
      path_(std::move(other.path_)),
      state_(other.state_) {}

void File::require_ours() const {
  if (is_ours()) return;
  throw Error(
      Errc::io_error,
      fmt::format("the file of '{}' is open no more: this program has closed its descriptor, "
                  "or given it to another file; close the pool and open it again, and let "
                  "what closes all descriptors run before",
                  path_.string()));
}

void File::close() noexcept {
  if (descriptor_ == Descriptor()) return;
  if (state_ == State::unpublished) ::unlink(path_.c_str());
  descriptor_.close();
}

void File::publish() {
  // Opened before there is a name, so that the lack of a descriptor leaves none.
  const Directory directory(directory_of(path_));
  int error = directory.opened();
  if (error == 0) {
    if (state_ == State::nameless) give_name();
    state_ = State::unpublished;  // close() removes it again
    error = directory.sync();
  }
  if (error != 0) {
    throw Error(Errc::io_error, fmt::format("can't make the name of '{}' durable: {}",
                                            path_.string(), reason(error)));
  }
  state_ = State::named;
}

void File::give_name() {
  if (::linkat(AT_FDCWD, name_in_proc(fd()).c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) ==
      0)
    return;
  if (errno == EEXIST) throw_exists(path_);
  throw Error(Errc::io_error, fmt::format("can't give the new pool its name '{}': {}",
                                          path_.string(), reason(errno)));
}

std::uint64_t File::size() const { return static_cast<std::uint64_t>(status(fd(), path_).st_size); }

FileId File::id() const {
  const struct stat now = status(fd(), path_);
  FileId id{now.st_dev, now.st_ino, 0};
  struct statx more {};
  if (::statx(fd(), "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 &&
      (more.stx_mask & STATX_BTIME) != 0) {
    id.birth =
        static_cast<std::uint64_t>(more.stx_btime.tv_sec) * 1'000'000'000 + more.stx_btime.tv_nsec;
  }
  return id;
}

void File::allocate(std::uint64_t size, bool huge_pages) {
  const std::uint64_t before = this->size();
  try {
    if (huge_pages && file_system(fd()) == TMPFS_MAGIC) {
      const util::SignalsBlocked blocked(SIGXFSZ);  // as in allocate_range()
      allocate_huge_pages(fd(), before, size);
    }
    give_space(before, size);
  } catch (const Error&) {
    // A failed allocation may have been done in part. If it can't be undone the file is merely
    // longer than its superblock says, and the next opening cuts it off.
    if (is_ours()) (void)!::ftruncate(descriptor_.number(), static_cast<off_t>(before));
    throw;
  }
}

bool File::has_holes() const { return allocated() < size(); }

std::uint64_t File::allocated() const {
  return static_cast<std::uint64_t>(status(fd(), path_).st_blocks) * kStatBlock;
}

std::uint64_t File::available() const {
  struct statvfs device {};
  const bool known = ::fstatvfs(fd(), &device) == 0 && device.f_blocks > 0;  // not without a limit
  if (!known) return ~std::uint64_t{0};
  return std::uint64_t{device.f_bavail} * device.f_frsize;
}

void File::fill_holes(std::span<const FileRange> ranges) {
  std::uint64_t size = 0;
  for (const FileRange& range : ranges) size += range.end - range.begin;
  const std::uint64_t present = allocated();
  if (present < size && available() < size - present) {  // better than to fill the disk first
    throw Error(Errc::out_of_space,
                fmt::format("'{}' has holes that need {} bytes, but its file system has only {} "
                            "left; free some space",
                            path_.string(), size - present, available()));
  }
  for (const FileRange& range : ranges) give_space(range.begin, range.end);
}

bool File::may_copy_on_write() const {
  if (file_system(fd()) == BTRFS_SUPER_MAGIC && !is_exempt_from_copy_on_write(fd())) return true;
  return shares_extents(fd());
}

void File::give_space(std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kStep = std::uint64_t{64} << 20;  // signals wait that long
  const std::uint64_t first = begin;
  int error = 0;
  for (; begin < end && error == 0; begin = std::min(begin + kStep, end))
    error = allocate_range(fd(), begin, std::min(begin + kStep, end));
  if (error == 0) return;
  throw Error(is_full(error) ? Errc::out_of_space : Errc::io_error,
              fmt::format("can't allocate {} more bytes for '{}' ({}); free some space, or raise "
                          "the quota or the limit of file sizes",
                          end - first, path_.string(), reason(error)));
}

void File::truncate(std::uint64_t size) {
  if (::ftruncate(fd(), static_cast<off_t>(size)) == 0) return;
  throw Error(Errc::io_error,
              fmt::format("can't cut '{}' to {} bytes: {}", path_.string(), size, reason(errno)));
}

void File::sync() {
  if (::fsync(fd()) == 0) return;
  throw Error(Errc::io_error, fmt::format("can't write '{}' to its device ({}); what the device "
                                          "holds is unknown: check it, then the pool",
                                          path_.string(), reason(errno)));
}

// Both times: a file of another user may get them only together.
void File::set_times() const noexcept {
  if (is_ours()) (void)::futimens(descriptor_.number(), nullptr);
}

void File::forget_cached() {
  sync();
  // Pages that a process has mapped or that are being written would stay: there are none, since no
  // other process owns the file and it was just synced.
  ::posix_fadvise(fd(), 0, 0, POSIX_FADV_DONTNEED);
}

std::size_t File::read(std::uint64_t offset, void* to, std::size_t n) const {
  std::size_t done = 0;
  while (done < n) {
    const ssize_t got =
        ::pread(fd(), static_cast<char*>(to) + done, n - done, static_cast<off_t>(offset + done));
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

bool File::in_memory() const {
  const auto type = file_system(fd());
  return type == TMPFS_MAGIC || type == HUGETLBFS_MAGIC || type == RAMFS_MAGIC;
}

}  // namespace perdix::detail::pm
