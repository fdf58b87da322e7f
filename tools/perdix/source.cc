#include "perdix/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::tool {
namespace {

[[noreturn]] void fail(const std::string& name, int error) {
  throw Error(error == ENOENT ? Errc::not_found : Errc::io_error,
              fmt::format("can't read {}: {}; check the path, or use '-' for standard input", name,
                          std::strerror(error)));
}

}  // namespace

FileSource::FileSource(const std::string& path, const std::atomic<bool>& stop)
    : name_(path == "-" ? "standard input" : path), stop_(stop) {
  descriptor_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(name_, errno);
  struct stat facts {};
  if (::fstat(descriptor_, &facts) == 0 && S_ISREG(facts.st_mode))
    size_ = static_cast<std::uint64_t>(facts.st_size);
}

FileSource::~FileSource() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

std::size_t FileSource::read(char* buffer, std::size_t size) {
  while (!stop_.load(std::memory_order_relaxed)) {
    const ssize_t got = ::read(descriptor_, buffer, size);
    if (got >= 0) {
      bytes_read_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR) fail(name_, errno);
  }
  return 0;
}

}  // namespace perdix::tool
