// For tests of this layer and those above it: children that are killed, errors that are expected,
// facts about a mapping that only the kernel knows.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "util/test_directory.h"

namespace perdix::testing_files {

/// A tmpfs over a directory, where the user may mount one.
class MountedTmpfs {
 public:
  MountedTmpfs(const std::filesystem::path& at, const std::string& options) : at_(at) {
    mounted_ = ::mount("tmpfs", at.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~MountedTmpfs() {
    if (mounted_) ::umount(at_.c_str());
  }
  MountedTmpfs(const MountedTmpfs&) = delete;
  MountedTmpfs& operator=(const MountedTmpfs&) = delete;

  explicit operator bool() const { return mounted_; }

  /// False if the kernel refuses.
  bool change(const std::string& options) {
    return ::mount("tmpfs", at_.c_str(), "tmpfs", MS_REMOUNT, options.c_str()) == 0;
  }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
};

/// Overlays of one writable layer, in folders beside it, where the user may mount them.
class MountedOverlay {
 public:
  MountedOverlay(const std::filesystem::path& folder, const std::string& name)
      : at_(folder / name) {
    const std::string work = (folder / (name + ".work")).string();
    for (const auto& path : {at_, folder / "lower", folder / "upper", std::filesystem::path(work)})
      std::filesystem::create_directory(path);
    const std::string options = "lowerdir=" + (folder / "lower").string() +
                                ",upperdir=" + (folder / "upper").string() + ",workdir=" + work;
    mounted_ = ::mount("overlay", at_.c_str(), "overlay", 0, options.c_str()) == 0;
  }
  ~MountedOverlay() {
    if (mounted_) ::umount(at_.c_str());
  }
  MountedOverlay(const MountedOverlay&) = delete;
  MountedOverlay& operator=(const MountedOverlay&) = delete;

  explicit operator bool() const { return mounted_; }
  const std::filesystem::path& path() const { return at_; }

 private:
  std::filesystem::path at_;
  bool mounted_ = false;
};

/// Runs `body` in a child process, which ends with status 0 if body returns true.
template <class Body>
pid_t start_child(Body body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  bool good = false;
  try {
    good = body();
  } catch (const std::exception&) {
    good = false;
  }
  ::_exit(good ? 0 : 1);
}

/// Its status.
inline int await_child(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// True if `body` returned true in a child process.
template <class Body>
bool true_in_child(Body body) {
  const int status = await_child(start_child(body));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Copies a file as it is at one moment, as if the process were killed then: all of its threads
/// stand still while another program copies what they may be writing to. (A child of fork() would
/// not do: the allocator's lock may belong to a thread that it does not have.)
inline void copy_at_one_moment(const std::filesystem::path& from, const std::filesystem::path& to) {
  static constexpr char kScript[] = R"(
    running() { grep -h '^State:' /proc/$PPID/task/*/status | grep -qv '^State:.[TXZ]'; }
    kill -STOP $PPID || exit 1
    left=60000
    while running && [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.001; done
    [ $left -gt 0 ] && cp -f -- "$1" "$2"
    status=$?
    kill -CONT $PPID
    exit $status
  )";
  const char* const arguments[] = {"sh", "-c", kScript, "sh", from.c_str(), to.c_str(), nullptr};
  pid_t pid = 0;
  const bool started = ::posix_spawn(&pid, "/bin/sh", nullptr, nullptr,
                                     const_cast<char* const*>(arguments), ::environ) == 0;
  if (!started || await_child(pid) != 0)
    throw std::runtime_error("no copy of " + from.string() + " could be made");
}

/// While it lives the process may have one more descriptor. (What looks at an exception afterwards
/// may need some: UBSan does.)
class OneMoreDescriptor {
 public:
  OneMoreDescriptor() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const rlimit one_more{static_cast<rlim_t>(next) + 1, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
  }
  ~OneMoreDescriptor() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OneMoreDescriptor(const OneMoreDescriptor&) = delete;
  OneMoreDescriptor& operator=(const OneMoreDescriptor&) = delete;

 private:
  rlimit before_{};
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The number of the descriptor that leads to a file.
inline int descriptor_of(const std::filesystem::path& path) {
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0) throw std::runtime_error("no file " + path.string());
  for (int number = 0; number < 1024; ++number) {
    struct stat file {};
    const bool open = ::fstat(number, &file) == 0;
    if (open && file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino) return number;
  }
  throw std::runtime_error("no descriptor leads to " + path.string());
}

/// What a program does to a descriptor of the library that closes it, and whose next file gets its
/// number. Closes it at the end.
class ReplacedDescriptor {
 public:
  static constexpr const char* kContent = "the program's";

  ReplacedDescriptor(int number, const std::filesystem::path& by) : number_(number) {
    std::ofstream(by) << kContent;
    const int other = ::open(by.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::dup3(other, number_, O_CLOEXEC), number_);
    ::close(other);
  }
  ~ReplacedDescriptor() { ::close(number_); }
  ReplacedDescriptor(const ReplacedDescriptor&) = delete;
  ReplacedDescriptor& operator=(const ReplacedDescriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

/// Expects an Error of that code whose message has `part` in it.
template <class Call>
void expect_error(Errc code, const std::string& part, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected " << to_string(code);
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

/// KiB of [address, address + n) that the kernel counts under `field`, such as "Shared_Dirty:".
inline std::uint64_t smaps_kib(const void* address, std::uint64_t n, const std::string& field) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool ours = false;
  std::uint64_t sum = 0;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream in(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (in >> std::hex >> begin >> dash >> end && dash == '-') {
      ours = begin < first + n && first < end;
      continue;
    }
    if (ours && line.rfind(field, 0) == 0) sum += std::stoull(line.substr(field.size()));
  }
  return sum;
}

}  // namespace perdix::testing_files
