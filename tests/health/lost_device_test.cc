// A device that goes away under an open pool, as a disk that is pulled out or a file system that
// shuts down after an error, for every workload. Even the mapping of a file fails then. The
// process must live, its other pools work, and the device must have what was acknowledged.
#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "health/failing_pool.h"
#include "pool/pool_core.h"

namespace perdix::test {
namespace {

/// A file system of its own in a file, mounted where the user may do that.
class Disk {
 public:
  explicit Disk(const std::filesystem::path& folder)
      : image_(folder / "disk.image"), mount_(folder / "disk") {
    std::filesystem::create_directory(mount_);
    made_ = run("truncate -s 100M " + image_.string() + " && mkfs.ext4 -q -F " + image_.string());
    mount();
  }
  ~Disk() { unmount(); }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  explicit operator bool() const { return mounted_; }
  std::filesystem::path file(const char* name) const { return mount_ / name; }

  void shut_down() const {
    constexpr unsigned long kShutDown = _IOR('X', 125, unsigned);  // EXT4_IOC_SHUTDOWN
    unsigned without_flushing = 2;
    const int folder = ::open(mount_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::ioctl(folder, kShutDown, &without_flushing), 0);
    ::close(folder);
  }

  /// Back from what the device has.
  void restart() {
    unmount();
    mount();
    EXPECT_TRUE(mounted_);
  }

 private:
  static bool run(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(cert-env33-c)
  }
  void mount() {
    mounted_ = made_ && run("mount -o loop " + image_.string() + " " + mount_.string());
  }
  void unmount() {
    if (mounted_) run("umount " + mount_.string());
    mounted_ = false;
  }

  std::filesystem::path image_;
  std::filesystem::path mount_;
  bool made_ = false;
  bool mounted_ = false;
};

class LostDevice : public FailingPool {
 protected:
  LostDevice() : FailingPool(Durability::power) {}

  void SetUp() override {
    if (!disk_) GTEST_SKIP() << "may not mount a file system";
    FailingPool::SetUp();
    std::filesystem::copy_file(base_, path_);
  }

  void expect_gone() const {
    try {
      Pool::open(path_, options_);
      ADD_FAILURE() << "a pool on a device that is gone was opened";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(Errc::io_error)) << error.what();
    }
  }

  /// Another pool of the process is used as before.
  void expect_others_work() const {
    auto pool = Pool::open(base_, options_);
    const auto instance = open(pool);
    Course course = course_so_far();
    course.step(*instance);
    EXPECT_TRUE(instance->shows(course.state()));
  }

  Disk disk_{directory_.path()};
  const std::filesystem::path path_ = disk_.file("test.pool");
};

TEST_P(LostDevice, KeepsAcknowledgedWrites) {
  Course course = course_so_far();
  {
    auto pool = Pool::open(path_, options_);
    {
      const auto instance = open(pool);
      ASSERT_FALSE(work(course, *instance, kSteps / 4));
      disk_.shut_down();
      ASSERT_TRUE(work(course, *instance, 20 * kSteps));
      expect_refused(pool, *instance);
    }
    EXPECT_THROW(pool.close(), Error);
  }
  expect_gone();
  expect_others_work();
  disk_.restart();
  expect_consistent(path_, course, true);
}

TEST_P(LostDevice, EndsNoProcessAtTheEndOfItsPool) {
  {
    auto pool = Pool::open(path_, options_);
    const auto instance = open(pool);
    disk_.shut_down();
  }
  expect_others_work();
}

TEST_P(LostDevice, EndsNoProcessWhenAPoolGrows) {
  PoolOptions options = options_;
  options.durability = Durability::process;
  {
    auto pool = Pool::open(path_, options);
    const auto instance = open(pool);
    disk_.shut_down();
    EXPECT_THROW(pool.core()->extend(pool.info().size + 1), Error);
    EXPECT_TRUE(instance->shows(course_so_far().state()));
  }
  expect_others_work();
}

INSTANTIATE_TEST_SUITE_P(Engines, LostDevice, ::testing::ValuesIn(few_workloads()), name_of);

}  // namespace
}  // namespace perdix::test
