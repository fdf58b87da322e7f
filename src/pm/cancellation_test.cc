// A thread that the program cancels while it waits for the device.
#include <sys/mman.h>

#include "pm/page_sync.h"
#include "pm/persist.h"
#include "pm/test_files.h"
#include "util/test_threads.h"

namespace perdix::detail::pm {
namespace {

using testing_files::TempDirectory;
using testing_files::true_in_child;
using util::ends_after;

class Cancellation : public ::testing::Test {
 protected:
  Cancellation() {
    file_.allocate(kBytes);
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  }
  ~Cancellation() override { ::munmap(memory_, kBytes); }

  static constexpr std::size_t kBytes = 1 << 20;
  const TempDirectory directory_;
  File file_ = File::create(directory_.file("file"));
  void* memory_;
};

// In a child: what goes wrong ends the process.
TEST_F(Cancellation, WaitsForASync) {
  EXPECT_TRUE(true_in_child([&] {
    PageSync sync([] {});
    return ends_after([&] {
      sync.note(memory_, 8);
      sync.sync();
    });
  }));
}

TEST_F(Cancellation, WaitsForASyncInPlaceAndOneOfTheFile) {
  EXPECT_TRUE(true_in_child([&] {
    PageSync sync([] {});
    return ends_after([&] {
      sync.sync_in_place(memory_, 8);
      sync.sync_file(file_);
    });
  }));
}

// A cancelled thread that left the lead of a group would stop all others.
TEST_F(Cancellation, LeavesTheSyncsToOthers) {
  EXPECT_TRUE(true_in_child([&] {
    PageSync sync([] {});
    if (!ends_after([&] { sync.sync_file(file_); })) return false;
    sync.note(memory_, 8);
    sync.sync();
    return !sync.failed();
  }));
}

}  // namespace
}  // namespace perdix::detail::pm
