#include "pm/mapping.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "pm/persist.h"
#include "pm/test_files.h"
#include "util/test_eventually.h"

namespace perdix::detail::pm {
namespace {

using testing_files::expect_error;
using testing_files::MountedTmpfs;
using testing_files::smaps_kib;
using testing_files::TempDirectory;
using testing_files::true_in_child;

constexpr std::uint64_t kUnit = std::uint64_t{16} << 20;
constexpr std::uint64_t kMax = 8 * kUnit;

/// Makes libpmem2 report a granularity, as it would on a machine with persistent memory.
class ForcedGranularity {
 public:
  explicit ForcedGranularity(const char* name) { ::setenv(kVariable, name, 1); }
  ~ForcedGranularity() { ::unsetenv(kVariable); }

 private:
  static constexpr const char* kVariable = "PMEM2_FORCE_GRANULARITY";
};

File make_file(const TempDirectory& directory, std::uint64_t size) {
  File file = File::create(directory.file("pool"));
  file.allocate(size);
  file.publish();
  return file;
}

bool kernel_populates() {
  constexpr int kPopulateWrite = 23;
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool done = ::madvise(page, 4096, kPopulateWrite) == 0;
  ::munmap(page, 4096);
  return done;
}

/// As many mappings as the kernel lets a process have, while this lives.
class AllMappings {
 public:
  AllMappings() {
    void* const got =
        ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    begin_ = static_cast<char*>(got);
    // Each page with other rights than its neighbours is a separate mapping.
    for (std::size_t at = kPage; at < kBytes && !full_; at += 2 * kPage)
      full_ = ::mprotect(begin_ + at, kPage, PROT_READ) != 0;
    // The kernel lets mmap() have one more than others.
    last_ = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  ~AllMappings() {
    if (begin_ != nullptr) ::munmap(begin_, kBytes);
    if (last_ != MAP_FAILED) ::munmap(last_, kPage);
  }
  AllMappings(const AllMappings&) = delete;
  AllMappings& operator=(const AllMappings&) = delete;
  bool full() const { return full_; }

 private:
  static constexpr std::size_t kPage = 4096, kBytes = (std::size_t{1} << 18) * kPage;

  char* begin_ = nullptr;
  void* last_ = MAP_FAILED;
  bool full_ = false;
};

class MappingIn : public ::testing::TestWithParam<const char*> {
 protected:
  MappingIn()
      : directory_(std::string_view(GetParam()) == "memory"
                       ? testing_files::memory_directory()
                       : std::filesystem::temp_directory_path()) {}

  TempDirectory directory_;
};

TEST_P(MappingIn, GivesAllItsAddressesBack) {
  const File file = make_file(directory_, kUnit);
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 40;
  // Of 2^47 bytes of addresses there are.
  for (int i = 0; i < 300; ++i) ASSERT_NO_THROW(Mapping(file, kUnit, kLarge)) << i;
}

TEST_P(MappingIn, GrowsInPlace) {
  File file = make_file(directory_, kUnit);
  Mapping mapping(file, kUnit, kMax);
  std::byte* const base = mapping.base();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(base) % Mapping::kAlignment, 0u);
  std::memset(base, 1, kUnit);
  for (std::uint64_t size = 2 * kUnit; size <= kMax; size += kUnit) {
    file.allocate(size);
    mapping.grow(size);
    ASSERT_EQ(mapping.base(), base);
    ASSERT_EQ(mapping.size(), size);
    ASSERT_EQ(base[size - 1], std::byte{0});
    std::memset(base + size - kUnit, 1, kUnit);
  }
  EXPECT_EQ(base[0], std::byte{1});
}

TEST_P(MappingIn, StoresReachTheFile) {
  File file = make_file(directory_, kUnit);
  {
    Mapping mapping(file, kUnit, kMax);
    mapping.base()[12345] = std::byte{42};
  }
  char byte = 0;
  EXPECT_EQ(file.read(12345, &byte, 1), 1u);
  EXPECT_EQ(byte, 42);
}

TEST_P(MappingIn, PopulatedPagesArePresentAndZero) {
  File file = make_file(directory_, 2 * kUnit);
  const Mapping mapping(file, 2 * kUnit, kMax);
  ASSERT_EQ(smaps_kib(mapping.base(), mapping.size(), "Rss:"), 0u);
  mapping.populate(kUnit, kUnit);
  if (!kernel_populates()) GTEST_SKIP() << "this kernel is older than Linux 5.14";
  EXPECT_EQ(smaps_kib(mapping.base(), mapping.size(), "Rss:"), kUnit / 1024);
  for (std::uint64_t i = kUnit; i < 2 * kUnit; i += 512) ASSERT_EQ(mapping.base()[i], std::byte{0});
}

TEST_P(MappingIn, KeepsContentsWhenPopulated) {
  File file = make_file(directory_, kUnit);
  const Mapping mapping(file, kUnit, kMax);
  for (std::uint64_t i = 0; i < kUnit; i += 4096) std::memcpy(mapping.base() + i, &i, sizeof(i));
  mapping.populate(0, kUnit);
  for (std::uint64_t i = 0; i < kUnit; i += 4096)
    ASSERT_EQ(std::memcmp(mapping.base() + i, &i, sizeof(i)), 0);
}

TEST_P(MappingIn, OrdinaryFilesHavePageGranularity) {
  File file = make_file(directory_, kUnit);
  const Mapping mapping(file, kUnit, kMax);
  if (mapping.granularity() != Granularity::page)
    GTEST_SKIP() << "this directory lies on persistent memory";
  EXPECT_FALSE(mapping.dax());
}

TEST_P(MappingIn, BelievesLibpmem2) {
  File file = make_file(directory_, kUnit);
  {
    const ForcedGranularity forced("CACHE_LINE");
    const Mapping mapping(file, kUnit, kMax);
    EXPECT_EQ(mapping.granularity(), Granularity::cache_line);
    EXPECT_TRUE(mapping.dax());
  }
  const ForcedGranularity forced("BYTE");
  const Mapping mapping(file, kUnit, kMax);
  EXPECT_EQ(mapping.granularity(), Granularity::byte);
  EXPECT_TRUE(mapping.dax());
}

TEST_P(MappingIn, SaysWhetherHugePagesMapIt) {
  File file = make_file(directory_, kUnit);
  const Mapping mapping(file, kUnit, kMax);
  EXPECT_FALSE(mapping.huge_pages());  // nothing is mapped yet
  mapping.populate(0, kUnit);
  const std::uint64_t huge = smaps_kib(mapping.base(), kUnit, "ShmemPmdMapped:") +
                             smaps_kib(mapping.base(), kUnit, "FilePmdMapped:");
  EXPECT_EQ(mapping.huge_pages(), huge > 0);
}

TEST_P(MappingIn, UnmapsEverything) {
  File file = make_file(directory_, 2 * kUnit);
  std::byte* base = nullptr;
  {
    Mapping mapping(file, kUnit, kMax);
    mapping.grow(2 * kUnit);
    base = mapping.base();
  }
  void* again = ::mmap(base, kMax, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  EXPECT_EQ(again, base) << "something still occupies the range";
  if (again != MAP_FAILED) ::munmap(again, kMax);
}

INSTANTIATE_TEST_SUITE_P(Directories, MappingIn, ::testing::Values("memory", "disk"),
                         [](const auto& directory) { return std::string(directory.param); });

// A tmpfs that gives huge pages to fallocate, on which touching in the wrong order loses stores.
TEST(Mapping, KeepsStoresOnATmpfsOfHugePages) {
  const TempDirectory directory;
  const MountedTmpfs huge(directory.path(), "huge=always,size=64m");
  if (!huge) GTEST_SKIP() << "may not mount a tmpfs with huge pages";
  File file = make_file(directory, 2 * kUnit);
  Mapping mapping(file, kUnit, kMax);
  mapping.populate(0, kUnit);
  mapping.grow(2 * kUnit);
  mapping.populate(kUnit, kUnit);
  for (std::uint64_t i = 0; i < 2 * kUnit; i += 4096) {
    ASSERT_EQ(mapping.base()[i], std::byte{0}) << "at " << i;
    mapping.base()[i] = std::byte{7};
    char stored = 0;
    ASSERT_EQ(file.read(i, &stored, 1), 1u);
    ASSERT_EQ(stored, 7) << "at " << i;
  }
}

TEST(Mapping, WithoutAddressesSaysWhatToDo) {
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 48;  // user space has half of it
  expect_error(Errc::out_of_space, "max_size", [&] { Mapping(file, kUnit, kTooMuch); });
}

// After mlockall() what is mapped counts as locked, addresses included.
TEST(Mapping, NamesTheLimitOfLockedMemory) {
  const TempDirectory directory;
  const File file = make_file(directory, kUnit);
  const auto lock_all = [] {
    rlimit few{};
    ::getrlimit(RLIMIT_MEMLOCK, &few);
    few.rlim_cur = std::min<rlim_t>(few.rlim_max, kUnit);
    if (::setrlimit(RLIMIT_MEMLOCK, &few) != 0 || ::mlockall(MCL_FUTURE) != 0) return false;
    return ::getuid() != 0 || ::setuid(65534) == 0;  // whom no such limit binds
  };
  const auto is_bound = [&] {
    constexpr int kAnywhere = MAP_PRIVATE | MAP_ANONYMOUS;
    return lock_all() && ::mmap(nullptr, 2 * kUnit, PROT_NONE, kAnywhere, -1, 0) == MAP_FAILED;
  };
  if (!true_in_child(is_bound)) GTEST_SKIP() << "mlockall() locks nothing, as under a sanitizer";
  const auto names_it = [&] {
    if (!lock_all()) return false;
    expect_error(Errc::out_of_space, "ulimit -l", [&] { Mapping(file, kUnit, kMax); });
    return !HasFailure();
  };
  EXPECT_TRUE(true_in_child(names_it));
}

TEST(Mapping, GivesItsAddressesBackAtTheLimitOfMappings) {
  const TempDirectory directory;
  const File file = make_file(directory, kUnit);
  std::optional<Mapping> mapping(std::in_place, file, kUnit, kMax);
  const auto address = reinterpret_cast<std::uintptr_t>(mapping->base());
  // An error before: at the limit libpmem2 has no memory for what it tells of its first one.
  expect_error(Errc::in_use, "must be mapped", [&] { Mapping(file, kUnit, kMax, address); });
  {
    const AllMappings all;
    if (!all.full()) GTEST_SKIP() << "a process may have more mappings than the test makes";
    mapping.reset();
  }
  mapping.emplace(file, kUnit, kMax, address);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapping->base()), address);
}

TEST(Mapping, FileThatIsTooShortIsAnError) {
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  Mapping mapping(file, kUnit, kMax);
  expect_error(Errc::io_error, "can't map", [&] { mapping.grow(2 * kUnit); });
  EXPECT_EQ(mapping.size(), kUnit);
  mapping.base()[kUnit - 1] = std::byte{1};
}

// A page that was synced is not dirty any more; the kernel says so.
TEST(PageCacheDomain, PersistSyncsThePages) {
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  file.sync();
  if (file.in_memory()) GTEST_SKIP() << "the directory for temporary files has no disk behind it";
  const Mapping mapping(file, kUnit, kMax);
  const Persister persister(Domain::page_cache);
  auto* word = reinterpret_cast<std::uint64_t*>(mapping.base() + 5 * 4096);
  const auto dirty = [&] {
    return smaps_kib(mapping.base(), kUnit, "Shared_Dirty:") +
           smaps_kib(mapping.base(), kUnit, "Private_Dirty:");
  };
  persister.publish(*word, 1);
  EXPECT_EQ(dirty(), 0u);
  persister.store(*word, 2);
  persister.flush(word, sizeof(*word));
  persister.fence();
  EXPECT_EQ(dirty(), 0u);
  EXPECT_FALSE(persister.failed());
}

TEST(Mapping, StoresNoLongerReachTheFileOncePrivate) {
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  Mapping mapping(file, kUnit, kMax);
  file.allocate(2 * kUnit);
  mapping.grow(2 * kUnit);  // a second piece
  const auto word = [&](std::uint64_t offset) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(mapping.base() + offset);
  };
  const auto in_file = [&](std::uint64_t offset) {
    std::uint64_t value = 0;
    EXPECT_EQ(file.read(offset, &value, sizeof value), sizeof value);
    return value;
  };
  word(0)->store(1);
  word(2 * kUnit - 8)->store(2);
  std::atomic<bool> done{false};
  std::thread user([&] {  // is not disturbed
    while (!done) word(kUnit)->store(word(kUnit)->load() + 1);
  });
  util::eventually_reaches("the user has stored", *word(kUnit), 1u);
  mapping.make_private();
  const std::uint64_t reached = in_file(kUnit);
  for (const std::uint64_t offset : {std::uint64_t{0}, 2 * kUnit - 8}) {
    EXPECT_EQ(word(offset)->load(), offset == 0 ? 1u : 2u);
    word(offset)->store(7);
    EXPECT_EQ(word(offset)->load(), 7u);
    EXPECT_EQ(in_file(offset), offset == 0 ? 1u : 2u);
  }
  util::eventually_reaches("the user has stored ten times more", *word(kUnit), reached + 10);
  done = true;
  user.join();
  EXPECT_EQ(in_file(kUnit), reached);
  file.allocate(3 * kUnit);
  expect_error(Errc::io_error, "device", [&] { mapping.grow(3 * kUnit); });
  EXPECT_EQ(mapping.size(), 2 * kUnit);
}

TEST(Mapping, ChildHasNone) {
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  Mapping mapping(file, kUnit, kMax);
  file.allocate(2 * kUnit);
  mapping.grow(2 * kUnit);
  const auto mapped = [&](std::uint64_t offset) {
    unsigned char ignored = 0;
    return ::mincore(mapping.base() + offset, 4096, &ignored) == 0;
  };
  const auto none_is_mapped = [&] { return !mapped(0) && !mapped(kUnit); };
  EXPECT_TRUE(mapped(0) && mapped(kUnit));
  EXPECT_TRUE(true_in_child(none_is_mapped));
  mapping.make_private();
  EXPECT_TRUE(true_in_child(none_is_mapped));
}

TEST(PageCacheDomain, FailedSyncIsToldOnceAndIsTheLast) {
  int failures = 0;
  const Persister persister(Domain::page_cache, true, [&] { ++failures; });
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  persister.sync_file(file);
  void* unmapped = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unmapped, MAP_FAILED);
  ::munmap(unmapped, 4096);
  EXPECT_EQ(failures, 0);
  for (int i = 0; i < 3; ++i) persister.persist(unmapped, 8);
  EXPECT_EQ(failures, 1);
  expect_error(Errc::io_error, "earlier", [&] { persister.sync_file(file); });
  EXPECT_EQ(failures, 1);
}

TEST(PageCacheDomain, FailedSyncOfTheFileIsOne) {
  int failures = 0;
  const Persister persister(Domain::page_cache, true, [&] { ++failures; });
  const TempDirectory directory;
  File file = make_file(directory, kUnit);
  file.close();
  expect_error(Errc::io_error, "pool", [&] { persister.sync_file(file); });
  EXPECT_TRUE(persister.failed());
  EXPECT_EQ(failures, 1);
}

TEST(PageCacheDomain, FailedSyncIsRemembered) {
  const Persister persister(Domain::page_cache);
  void* unmapped = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unmapped, MAP_FAILED);
  ::munmap(unmapped, 4096);
  EXPECT_FALSE(persister.failed());
  persister.persist(unmapped, 8);
  EXPECT_TRUE(persister.failed());
  std::uint64_t good = 0;
  persister.persist(&good, sizeof(good));
  EXPECT_TRUE(persister.failed());
}

}  // namespace
}  // namespace perdix::detail::pm
