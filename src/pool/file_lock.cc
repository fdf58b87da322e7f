#include "pool/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/forks.h"
#include "pool/layout.h"

namespace perdix::detail::pool {
namespace {

int set_lock(const pm::File& file, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;  // from 0, and length 0 means to the end, wherever that will be
  return ::fcntl(file.fd(), F_OFD_SETLK, &lock);
}

std::string owner_of(const pm::File& file) {
  OwnerBlock owner{};
  file.read(kOwnerOffset, &owner, sizeof(owner));
  if (owner.pid == static_cast<std::uint64_t>(::getpid())) return "this process";
  if (owner.pid == 0) return "another process";
  return fmt::format("process {}", owner.pid);
}

}  // namespace

FileLock::FileLock(const pm::File& file, const pm::NoFork& no_fork) : file_(file) {
  if (set_lock(file, F_WRLCK) == 0) {
    close_in_children(file.fd(), no_fork);
    return;
  }
  const std::string path = file.path().string();
  if (errno == EAGAIN || errno == EACCES) {
    throw Error(Errc::in_use, fmt::format("pool '{}' is in use by {}; one process owns a pool at a "
                                          "time: close it there first",
                                          path, owner_of(file)));
  }
  throw Error(Errc::io_error, fmt::format("can't lock '{}': {}", path, std::strerror(errno)));
}

FileLock::~FileLock() {
  set_lock(file_, F_UNLCK);
  leave_to_children(file_.fd());  // which get no lock with it from now on
}

}  // namespace perdix::detail::pool
