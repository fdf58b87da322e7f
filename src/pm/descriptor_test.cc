// Standard descriptors that are closed, and descriptors that the program closes behind our back.
#include "pm/descriptor.h"

#include <cstring>
#include <string>

#include "pm/mapping.h"
#include "pm/test_files.h"

namespace perdix::detail::pm {
namespace {

using testing_files::content_of;
using testing_files::expect_error;
using testing_files::ReplacedDescriptor;
using testing_files::smaps_kib;
using testing_files::TempDirectory;
using testing_files::true_in_child;

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

/// Runs `body` in a process whose standard input, output and error are closed.
template <class Body>
bool true_without_standard(Body body) {
  return true_in_child([&] {
    for (int number : {0, 1, 2}) ::close(number);
    return body() && !is_open(0) && !is_open(1) && !is_open(2);
  });
}

TEST(StandardDescriptors, AreNotGivenToFiles) {
  const TempDirectory directory;
  EXPECT_TRUE(true_without_standard([&] {
    File created = File::create(directory.file("a"));
    const File in_place = File::create_in_place(directory.file("b"));
    created.publish();
    const File opened = File::open(directory.file("a"));
    return created.fd() > 2 && in_place.fd() > 2 && opened.fd() > 2;
  }));
}

TEST(StandardDescriptors, AreNeitherReadNorWrittenWhileTaken) {
  EXPECT_TRUE(true_without_standard([] {
    const StandardDescriptors taken;
    char byte = 0;
    bool neither = true;
    for (int number : {0, 1, 2}) {
      neither = neither && is_open(number) && ::read(number, &byte, 1) < 0 && errno == EBADF &&
                ::write(number, &byte, 1) < 0 && errno == EBADF;
    }
    return neither;
  }));
}

TEST(StandardDescriptors, ThatAreOpenStayAsTheyAre) {
  EXPECT_TRUE(true_in_child([] {
    ::close(1);
    { const StandardDescriptors taken; }
    return is_open(0) && !is_open(1) && is_open(2);
  }));
}

TEST(Descriptor, IsNotOursOnceClosedOrReplaced) {
  const TempDirectory directory;
  const File file = File::create(directory.file("a"));
  EXPECT_TRUE(file.descriptor().is_ours());
  {
    const ReplacedDescriptor replaced(file.descriptor().number(), directory.file("other"));
    EXPECT_FALSE(file.descriptor().is_ours());
  }
  EXPECT_FALSE(file.descriptor().is_ours());
  EXPECT_FALSE(Descriptor().is_ours());
}

TEST(Descriptor, IsOursUnderAnotherOneOfTheSameFile) {
  const TempDirectory directory;
  const File file = File::create_in_place(directory.file("a"));
  const File again = File::open(directory.file("a"));
  ::dup2(again.fd(), file.fd());
  EXPECT_TRUE(file.descriptor().is_ours());
}

TEST(Descriptor, CallsOfAFileTouchNoOther) {
  const TempDirectory directory;
  File file = File::create_in_place(directory.file("a"));
  file.allocate(4096);
  {
    const ReplacedDescriptor replaced(file.fd(), directory.file("other"));
    char byte = 0;
    const FileRange range{0, 8192};
    const std::string path = directory.file("a").string();
    expect_error(Errc::io_error, path, [&] { file.allocate(1 << 20); });
    expect_error(Errc::io_error, path, [&] { file.fill_holes({&range, 1}); });
    expect_error(Errc::io_error, path, [&] { file.truncate(0); });
    expect_error(Errc::io_error, path, [&] { file.sync(); });
    expect_error(Errc::io_error, path, [&] { file.forget_cached(); });
    expect_error(Errc::io_error, path, [&] { (void)file.size(); });
    expect_error(Errc::io_error, path, [&] { (void)file.id(); });
    expect_error(Errc::io_error, path, [&] { (void)file.has_holes(); });
    expect_error(Errc::io_error, path, [&] { (void)file.may_copy_on_write(); });
    expect_error(Errc::io_error, path, [&] { (void)file.in_memory(); });
    expect_error(Errc::io_error, path, [&] { file.read(0, &byte, 1); });
    file.close();
    EXPECT_TRUE(is_open(replaced.number()));
  }
  EXPECT_EQ(content_of(directory.file("other")), ReplacedDescriptor::kContent);
}

TEST(Descriptor, NoOtherFileGetsTheNameOfANewOne) {
  const TempDirectory directory;
  File file = File::create(directory.file("a"));
  const ReplacedDescriptor replaced(file.fd(), directory.file("other"));
  expect_error(Errc::io_error, "a", [&] { file.publish(); });
  EXPECT_FALSE(std::filesystem::exists(directory.file("a")));
}

class LostDescriptor : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSize = 2 * kHugePage;

  static File make_file(const std::filesystem::path& path) {
    File file = File::create(path);
    file.allocate(2 * kSize);
    file.publish();
    return file;
  }

  TempDirectory directory_{testing_files::memory_directory()};
  File file_ = make_file(directory_.file("pool"));
  Mapping mapping_{file_, kSize, 4 * kSize};
};

TEST_F(LostDescriptor, MapsNoOtherFile) {
  const ReplacedDescriptor replaced(file_.fd(), directory_.file("other"));
  expect_error(Errc::io_error, "pool", [&] { mapping_.grow(2 * kSize); });
  EXPECT_EQ(mapping_.size(), kSize);
}

TEST_F(LostDescriptor, WhatIsMappedCanStillLeaveTheFile) {
  std::byte* const base = mapping_.base();
  std::memset(base, 1, kSize);
  const ReplacedDescriptor replaced(file_.fd(), directory_.file("other"));
  mapping_.make_private();
  for (std::uint64_t at = 0; at < kSize; at += 4096) ASSERT_EQ(base[at], std::byte{1}) << at;
  std::memset(base, 2, kSize);
  EXPECT_EQ(content_of(directory_.file("pool")).substr(0, kSize), std::string(kSize, 1));
  EXPECT_EQ(content_of(directory_.file("other")), ReplacedDescriptor::kContent);
  EXPECT_EQ(smaps_kib(base, kSize, "Shared_Dirty:"), 0u);
}

}  // namespace
}  // namespace perdix::detail::pm
