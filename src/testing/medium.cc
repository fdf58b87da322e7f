#include "testing/medium.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::testing {
namespace {

[[noreturn]] void fail(const char* what, std::uint64_t size) {
  throw Error(Errc::out_of_space,
              fmt::format("can't {} a medium of {} bytes: {}", what, size, std::strerror(errno)));
}

}  // namespace

Medium::Medium(std::uint64_t size)
    : fd_(::memfd_create("perdix-medium", MFD_CLOEXEC)), size_(size), bytes_(nullptr) {
  if (fd_ < 0) fail("create", size);
  void* bytes = MAP_FAILED;
  // All pages now: a pool that finds holes fills them each time that it is opened.
  if (::posix_fallocate(fd_, 0, static_cast<off_t>(size)) == 0)
    bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (bytes == MAP_FAILED) {
    ::close(fd_);
    fail("map", size);
  }
  bytes_ = static_cast<std::byte*>(bytes);
}

Medium::~Medium() {
  ::munmap(bytes_, size_);
  ::close(fd_);
}

std::filesystem::path Medium::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

void Medium::empty() {
  if (::ftruncate(fd_, 0) != 0) fail("empty", size_);
}

bool Medium::restore_length() {
  struct stat now {};
  if (::fstat(fd_, &now) != 0) fail("examine", size_);
  if (static_cast<std::uint64_t>(now.st_size) == size_) return false;
  if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0 ||
      ::posix_fallocate(fd_, 0, static_cast<off_t>(size_)) != 0)
    fail("restore", size_);
  return true;
}

}  // namespace perdix::testing
