#include "pool/file_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

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

OwnerBlock owner_of(const pm::File& file) {
  OwnerBlock owner{};
  file.read(kOwnerOffset, &owner, sizeof(owner));
  return owner;
}

/// Whether the pid of the owner on record means another process here, or none.
bool is_elsewhere(const OwnerBlock& owner) {
  const std::uint64_t here = pid_namespace();
  return owner.pid_namespace != 0 && here != 0 && owner.pid_namespace != here;
}

/// Whether the owner on record may have ended without closing the pool, as far as this process can
/// see. A process that has ended but that its parent has not waited for still counts.
bool may_have_ended(const OwnerBlock& owner) {
  if (owner.pid == 0) return false;
  return is_elsewhere(owner) || (::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH);
}

std::string in_use_by(const OwnerBlock& owner) {
  if (owner.pid == 0) return "another process";
  if (is_elsewhere(owner)) {
    return fmt::format("process {} of another container (PID namespace {}), or a child of it",
                       owner.pid, owner.pid_namespace);
  }
  if (owner.pid == static_cast<std::uint64_t>(::getpid())) return "this process";
  if (may_have_ended(owner))
    return fmt::format("a child of process {}, which has ended or is in another container",
                       owner.pid);
  return fmt::format("process {}", owner.pid);
}

void pause_for_a_child() { std::this_thread::sleep_for(FileLock::kPause); }

}  // namespace

std::uint64_t pid_namespace() noexcept {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

FileLock::FileLock(const pm::File& file, const pm::NoFork& no_fork)
    : FileLock(file, no_fork, pause_for_a_child) {}

FileLock::FileLock(const pm::File& file, const pm::NoFork& no_fork,
                   const std::function<void()>& pause)
    : file_(file) {
  for (int pauses = 0; set_lock(file, F_WRLCK) != 0; ++pauses) {
    const int error = errno;
    const std::string path = file.path().string();
    if (error != EAGAIN && error != EACCES)
      throw Error(Errc::io_error, fmt::format("can't lock '{}': {}", path, std::strerror(error)));
    const OwnerBlock owner = owner_of(file);
    if (!may_have_ended(owner) || pauses == kMaxPauses) {
      throw Error(Errc::in_use, fmt::format("pool '{}' is in use by {}; one process owns a pool at "
                                            "a time: close it there first",
                                            path, in_use_by(owner)));
    }
    pause();
  }
  close_in_children(file.descriptor(), no_fork);
}

FileLock::~FileLock() {
  // If the program has closed the descriptor, the lock ended with the mapping.
  if (file_.is_ours()) set_lock(file_, F_UNLCK);
  leave_to_children(file_.descriptor());  // which get no lock with it from now on
}

}  // namespace perdix::detail::pool
