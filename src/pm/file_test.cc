#include "pm/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "pm/test_files.h"

namespace perdix::detail::pm {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;
using testing_files::true_in_child;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::uint64_t blocks_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(File, CreatedOneHasItsNameOnlyOncePublished) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  File file = File::create(path);
  file.allocate(kMiB);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  file.publish();
  EXPECT_EQ(std::filesystem::file_size(path), kMiB);
}

TEST(File, RefusesAPathThatTheKernelWouldCutOff) {
  const TempDirectory directory;
  std::string path = directory.file("pool").string();
  File::create_in_place(path).publish();
  path += '\0';
  path += "other";
  expect_error(Errc::invalid_argument, "NUL byte", [&] { File::open(path); });
  std::filesystem::remove(directory.file("pool"));
  expect_error(Errc::invalid_argument, "NUL byte", [&] { File::create(path); });
  expect_error(Errc::invalid_argument, "NUL byte", [&] { File::create_in_place(path); });
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(File, NamesADanglingLink) {
  const TempDirectory directory;
  const auto link = directory.file("link");
  std::filesystem::create_symlink("nowhere", link);
  const std::string text = "is a symbolic link to 'nowhere', where there is no file";
  expect_error(Errc::not_found, text, [&] { File::open(link); });
  expect_error(Errc::already_exists, text, [&] { File::create(link); });
  expect_error(Errc::already_exists, text, [&] { File::create_in_place(link); });
  File::create(directory.file("nowhere")).publish();
  File::open(link);
  expect_error(Errc::already_exists, "exists already", [&] { File::create(link); });
}

TEST(File, UnpublishedOneLeavesNothing) {
  const TempDirectory directory;
  {
    File nameless = File::create(directory.file("a"));
    nameless.allocate(kMiB);
    File in_place = File::create_in_place(directory.file("b"));
    in_place.allocate(kMiB);
    EXPECT_TRUE(std::filesystem::exists(directory.file("b")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(File, IsPrivateToItsUserAndClosesOnExec) {
  const TempDirectory directory;
  const mode_t before = ::umask(0);
  for (const bool in_place : {false, true}) {
    const auto path = directory.file(in_place ? "in-place" : "nameless");
    File file = in_place ? File::create_in_place(path) : File::create(path);
    file.publish();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    EXPECT_NE(::fcntl(file.fd(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(File::open(path).fd(), F_GETFD) & FD_CLOEXEC, 0);
  }
  ::umask(before);
}

TEST(File, CreateRefusesExistingFiles) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  std::ofstream(path) << "precious";
  expect_error(Errc::already_exists, path.string(), [&] { File::create(path); });
  expect_error(Errc::already_exists, path.string(), [&] { File::create_in_place(path); });
  const auto dangling = directory.file("dangling");
  std::filesystem::create_symlink("nowhere", dangling);
  expect_error(Errc::already_exists, dangling.string(), [&] { File::create(dangling); });
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST(File, TheFirstOfTwoCreatorsWins) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  File first = File::create(path);
  File second = File::create(path);
  first.allocate(kMiB);
  first.publish();
  expect_error(Errc::already_exists, path.string(), [&] { second.publish(); });
  EXPECT_EQ(std::filesystem::file_size(path), kMiB);
}

TEST(File, OpenRefusesEverythingButFiles) {
  const TempDirectory directory;
  expect_error(Errc::not_found, "absent", [&] { File::open(directory.file("absent")); });
  expect_error(Errc::not_found, "absent", [&] { File::create(directory.file("absent/pool")); });
  expect_error(Errc::not_a_pool, "regular file", [&] { File::open(directory.path()); });
  expect_error(Errc::not_a_pool, "regular file", [] { File::open("/dev/null"); });

  const auto pipe = directory.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(Errc::not_a_pool, "regular file", [&] { File::open(pipe); });

  const auto socket = directory.file("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  expect_error(Errc::not_a_pool, "regular file", [&] { File::open(socket); });
  ::close(fd);

  const auto loop = directory.file("loop");
  std::filesystem::create_symlink("loop", loop);
  expect_error(Errc::io_error, "symbolic link", [&] { File::open(loop); });
}

TEST(File, OpensThroughASymbolicLink) {
  const TempDirectory directory;
  std::ofstream(directory.file("pool")) << "1234";
  std::filesystem::create_symlink("pool", directory.file("link"));
  EXPECT_EQ(File::open(directory.file("link")).size(), 4u);
}

TEST(File, WithoutPermissionSaysWhatToCheck) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  std::ofstream(path) << "1234";
  std::filesystem::permissions(path, std::filesystem::perms::none);
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all |
                                                     std::filesystem::perms::others_read |
                                                     std::filesystem::perms::others_exec);
  EXPECT_TRUE(true_in_child([&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) return false;
    expect_error(Errc::io_error, "owner and mode", [&] { File::open(path); });
    return !::testing::Test::HasFailure();
  }));
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
}

TEST(File, AllocatedBytesHaveSpace) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  File file = File::create(path);
  file.allocate(kMiB);
  file.allocate(3 * kMiB);
  file.publish();
  EXPECT_EQ(file.size(), 3 * kMiB);
  EXPECT_GE(blocks_of(path), 3 * kMiB);
}

TEST(File, FailedAllocationChangesNothing) {
  const TempDirectory directory;
  File file = File::create(directory.file("pool"));
  file.allocate(kMiB);
  EXPECT_TRUE(true_in_child([&] {  // the limit is the process's
    const rlimit limit{2 * kMiB, 2 * kMiB};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    expect_error(Errc::out_of_space, "free some space", [&] { file.allocate(3 * kMiB); });
    return file.size() == kMiB && !::testing::Test::HasFailure();
  }));
}

// On tmpfs too, where huge pages are allocated in another way.
TEST(File, LimitOfFileSizesSendsNoSignal) {
  for (const auto& parent : {std::filesystem::temp_directory_path(),
                             std::filesystem::path(testing_files::memory_directory())}) {
    const TempDirectory directory(parent);
    EXPECT_TRUE(true_in_child([&] {
      File file = File::create(directory.file("pool"));
      const rlimit limit{16 * kMiB, 16 * kMiB};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
      expect_error(Errc::out_of_space, "limit", [&] { file.allocate(32 * kMiB); });
      sigset_t pending, blocked;
      ::sigpending(&pending);
      ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0) << "it would arrive later";
      EXPECT_EQ(::sigismember(&blocked, SIGXFSZ), 0) << "the mask is the program's";
      struct sigaction action {};
      ::sigaction(SIGXFSZ, nullptr, &action);
      EXPECT_EQ(action.sa_handler, SIG_DFL) << "and so is what a signal does";
      return !::testing::Test::HasFailure();
    })) << parent;
  }
}

// A signal that the program had sent before is not lost, and others arrive.
TEST(File, OtherSignalsArrive) {
  const TempDirectory directory;
  EXPECT_TRUE(true_in_child([&] {
    static volatile std::sig_atomic_t arrived = 0;
    ::signal(SIGUSR1, [](int) { arrived = arrived + 1; });
    ::signal(SIGXFSZ, [](int) { arrived = arrived + 10; });
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::raise(SIGUSR1);
    ::raise(SIGXFSZ);
    File::create(directory.file("pool")).allocate(kMiB);
    EXPECT_EQ(arrived, 0);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    EXPECT_EQ(arrived, 11);
    return !::testing::Test::HasFailure();
  }));
}

// A timer that fires faster than space can be allocated must not keep it from ending.
TEST(File, AllocationEndsUnderATimer) {
  const TempDirectory directory(testing_files::memory_directory());
  EXPECT_TRUE(true_in_child([&] {
    ::signal(SIGALRM, [](int) {});
    const itimerval often{{0, 50}, {0, 50}};
    if (::setitimer(ITIMER_REAL, &often, nullptr) != 0) return false;
    File file = File::create(directory.file("pool"));
    file.allocate(64 * kMiB, false);
    return file.size() == 64 * kMiB;
  }));
}

TEST(File, IsKnownFromItsCopiesAndByAnyName) {
  const TempDirectory directory;
  const auto path = directory.file("pool"), copy = directory.file("copy");
  std::ofstream(path) << "1234";
  const FileId id = File::open(path).id();
  EXPECT_NE(id.inode, 0u);
  std::filesystem::copy_file(path, copy);
  EXPECT_NE(File::open(copy).id().inode, id.inode);
  std::filesystem::rename(path, directory.file("renamed"));
  const FileId renamed = File::open(directory.file("renamed")).id();
  EXPECT_EQ(renamed.device, id.device);
  EXPECT_EQ(renamed.inode, id.inode);
  EXPECT_EQ(renamed.birth, id.birth);
}

// One descriptor is enough to make a file without a name, but not to make its name durable.
TEST(File, IsRemovedIfItCannotBePublished) {
  const TempDirectory directory;
  for (const bool in_place : {false, true}) {
    const auto path = directory.file("pool");
    EXPECT_TRUE(true_in_child([&] {
      expect_error(Errc::io_error, "Too many open files", [&] {
        const testing_files::OneMoreDescriptor few;
        File file = in_place ? File::create_in_place(path) : File::create(path);
        file.publish();
      });
      return !::testing::Test::HasFailure();
    }));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

// Without /proc a file can't be named later, so it has its name from the start.
TEST(File, IsCreatedWithoutProc) {
  const TempDirectory directory;
  EXPECT_TRUE(true_in_child([&] {
    if (::chroot(directory.path().c_str()) != 0) return ::geteuid() != 0;  // may not be tried
    {
      File file = File::create("/pool");
      file.allocate(kMiB);
      EXPECT_TRUE(std::filesystem::exists("/pool"));
      file.publish();
    }
    EXPECT_EQ(std::filesystem::file_size("/pool"), kMiB);
    { File::create("/other").allocate(kMiB); }
    EXPECT_FALSE(std::filesystem::exists("/other"));
    expect_error(Errc::not_found, "no directory '/absent'", [] { File::create("/absent/pool"); });
    return !::testing::Test::HasFailure();
  }));
}

// Of the instrument of other tests: a thread stores a number at both ends of a file, one after the
// other. A copy that is made meanwhile is of one moment.
TEST(File, IsCopiedAtOneMoment) {
  constexpr std::uint64_t kBytes = 16 * kMiB;
  const TempDirectory directory(testing_files::memory_directory());
  const auto path = directory.file("pool"), copy = directory.file("copy");
  File file = File::create(path);
  file.allocate(kBytes);
  file.publish();
  void* const view = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  ASSERT_NE(view, MAP_FAILED);
  auto* const first = static_cast<std::uint64_t*>(view);
  std::uint64_t* const last = first + kBytes / sizeof *first - 1;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop; ++i) {
      __atomic_store_n(first, i, __ATOMIC_RELEASE);
      __atomic_store_n(last, i, __ATOMIC_RELEASE);
    }
  });
  for (int round = 0; round < 10; ++round) {
    testing_files::copy_at_one_moment(path, copy);
    const File copied = File::open(copy);
    std::uint64_t one = 0, other = 0;
    EXPECT_EQ(copied.read(0, &one, sizeof one), sizeof one);
    EXPECT_EQ(copied.read(kBytes - sizeof other, &other, sizeof other), sizeof other);
    EXPECT_TRUE(one == other || one == other + 1) << one << ' ' << other;
  }
  stop = true;
  writer.join();
  ::munmap(view, kBytes);
}

TEST(File, DropsCachedPages) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  File file = File::create(path);
  file.allocate(4 * kMiB);
  file.publish();
  if (file.in_memory()) GTEST_SKIP() << "the directory for temporary files has no disk behind it";
  std::ofstream(path, std::ios::in) << std::string(4 * kMiB, 'x');
  const auto cached = [&] {
    void* const view = ::mmap(nullptr, 4 * kMiB, PROT_READ, MAP_SHARED, file.fd(), 0);
    EXPECT_NE(view, MAP_FAILED);
    std::vector<unsigned char> pages(4 * kMiB / 4096);
    EXPECT_EQ(::mincore(view, 4 * kMiB, pages.data()), 0);
    ::munmap(view, 4 * kMiB);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
  };
  const auto before = cached();
  EXPECT_GT(before, 0);
  file.forget_cached();
  EXPECT_LT(cached(), before);
  char last = 0;
  EXPECT_EQ(file.read(4 * kMiB - 1, &last, 1), 1u);
  EXPECT_EQ(last, 'x');
}

TEST(File, FillsHoles) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  { std::ofstream(path) << "x"; }
  std::filesystem::resize_file(path, 4 * kMiB);
  ASSERT_LT(blocks_of(path), 4 * kMiB);
  File file = File::open(path);
  EXPECT_TRUE(file.has_holes());
  const FileRange all{0, 4 * kMiB};
  file.fill_holes({&all, 1});
  EXPECT_FALSE(file.has_holes());
  EXPECT_GE(blocks_of(path), 4 * kMiB);
  char first = 0;
  EXPECT_EQ(file.read(0, &first, 1), 1u);
  EXPECT_EQ(first, 'x');
}

TEST(File, HolesLargerThanTheDeviceAreRefusedAtOnce) {
  const TempDirectory directory(testing_files::memory_directory());
  const auto path = directory.file("pool");
  { std::ofstream(path) << "x"; }
  std::error_code failed;
  std::filesystem::resize_file(path, std::uint64_t{1} << 42, failed);
  if (failed) GTEST_SKIP() << "no sparse file of 4 TiB here: " << failed.message();
  File file = File::open(path);
  const auto before = blocks_of(path);
  const FileRange all{0, std::uint64_t{1} << 42};
  expect_error(Errc::out_of_space, "holes", [&] { file.fill_holes({&all, 1}); });
  EXPECT_EQ(blocks_of(path), before);
}

TEST(File, ReadsUpToItsEnd) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  { std::ofstream(path) << "12345"; }
  char bytes[8] = {};
  EXPECT_EQ(File::open(path).read(3, bytes, sizeof(bytes)), 2u);
  EXPECT_STREQ(bytes, "45");
}

}  // namespace
}  // namespace perdix::detail::pm
