// TipsOf in its process: threads, forks, handlers of signals, other indexes and pools.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "alloc/session.h"
#include "index/tips_of/test_containers.h"
#include "index/tips_of/tips_of.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips_of {
namespace {

using Map = StdMap::Container;
using Words = std::vector<TestNumber, Allocator<TestNumber>>;

class ProcessTest : public TipsOfTest {};

TEST_F(ProcessTest, RefusesCallsWithinCalls) {
  const Pool pool = open();
  TipsOf<Map> one(pool, "one"), other(pool, "other");
  one.write([&](Map& map) {
    map[1] = 1;
    EXPECT_EQ(error_of([&] { one.write([](Map&) {}); }), Errc::invalid_argument);
    EXPECT_EQ(error_of([&] { other.write([](Map&) {}); }), Errc::invalid_argument);
    EXPECT_EQ(error_of([&] { one.read([](const Map&) {}); }), Errc::invalid_argument);
    EXPECT_EQ(other.size(), 0U);
    map[2] = 2;
  });
  EXPECT_EQ(one.size(), 2U);
}

TEST_F(ProcessTest, AnAllocatorHasNoMemoryOutsideOfAWrite) {
  const Pool pool = open();
  TipsOf<Map> opened(pool, "c");
  EXPECT_EQ(error_of([] { (void)TipsAllocator<int>().allocate(1); }), Errc::invalid_argument);
  opened.write([](Map& map) { map[1] = 1; });
  EXPECT_EQ(error_of([&] { opened.read([](const Map& map) { const Map copy(map); }); }),
            Errc::invalid_argument);
}

TEST_F(ProcessTest, RefusesForeignMemory) {
  const Pool pool = open();
  TipsOf<Words> one(pool, "one"), other(pool, "other");
  one.write([](Words& words) { words.push_back(1); });
  std::optional<Words> away;
  one.write([&](Words& words) { away.emplace(std::move(words)); });
  EXPECT_EQ(error_of([&] { other.write([&](Words&) { away.reset(); }); }), Errc::invalid_argument);
  EXPECT_TRUE(other.check().ok());
}

TEST_F(ProcessTest, ReadersAndWritersSideBySide) {
  const Pool pool = open();
  TipsOf<Map> opened(pool, "c");
  constexpr TestNumber kSum = 100;
  opened.write([](Map& map) { map[0] = kSum, map[1] = 0; });
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      while (!done) {
        const TestNumber sum = opened.read([](const Map& map) { return map.at(0) + map.at(1); });
        EXPECT_EQ(sum, kSum);
      }
    });
  }
  std::vector<std::thread> writers;
  for (TestNumber writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      for (TestNumber i = 0; i < 200; ++i) {
        opened.write([&](Map& map) {
          const TestNumber moved = (i * 7 + writer) % (kSum + 1);
          map[0] = moved, map[1] = kSum - moved;
          map[1000 * (writer + 1) + i] = i;
        });
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened.size(), 402U);
}

TEST_F(ProcessTest, SeveralPoolsAtOnce) {
  const std::string path = path_.string() + "2";
  std::filesystem::remove(path);
  {
    const Pool pool = open(), second = Pool::create(path, options());
    TipsOf<Map> one(pool, "a"), other(pool, "b"), third(second, "a");
    std::vector<std::thread> threads;
    for (TipsOf<Map>* opened : {&one, &other, &third}) {
      threads.emplace_back([opened] {
        for (TestNumber i = 0; i < 200; ++i) opened->write([i](Map& map) { map[i] = i; });
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const TipsOf<Map>* opened : {&one, &other, &third}) EXPECT_EQ(opened->size(), 200U);
  }
  std::filesystem::remove(path);
}

/// What a container had is given to others, who store as they like.
TEST_F(ProcessTest, PagesOfAClosedContainerAreOrdinaryMemory) {
  PoolOptions small = options();
  small.max_size = std::uint64_t{16} << 20;
  Pool pool = open(small);
  {
    TipsOf<Words> opened(pool, "c");
    opened.write([](Words& words) { words.resize(400'000); });
  }
  pool.drop("c");
  pool::PoolCore& core = *pool.core();
  core.allocator().reclaim();
  alloc::Session session = core.allocator().session();
  std::uint64_t stored = 0;
  for (std::uint64_t bytes = std::uint64_t{8} << 20; bytes > std::uint64_t{1} << 20; bytes /= 2) {
    try {
      std::memset(core.at<std::byte>(session.reserve(bytes)), 1, bytes);
      stored += bytes;
    } catch (const Error&) {  // no space for so much
    }
  }
  EXPECT_GT(stored, std::uint64_t{10} << 20);
}

// --- Many pages ----------------------------------------------------------------------------------

/// Enough that whole extents are opened together.
TEST_F(ProcessTest, AWriteToThousandsOfPages) {
  const Pool pool = open();
  {
    TipsOf<Words> opened(pool, "c");
    constexpr TestNumber kWords = 6000 * 512;
    opened.write([](Words& words) { words.resize(kWords, 1); });
    const auto touch = [](Words& words) {
      for (TestNumber i = 0; i < kWords; i += 1024) words[i] = 2;
      for (TestNumber i = 512; i < kWords; i += 1024) words[i] = 3;
    };
    EXPECT_THROW(opened.write([&](Words& words) {
      touch(words);
      throw 1;
    }),
                 int);
    const auto sum = [&] {
      return opened.read([](const Words& words) {
        TestNumber all = 0;
        for (const TestNumber word : words) all += word;
        return all;
      });
    };
    EXPECT_EQ(sum(), kWords);
    opened.write(touch);
    EXPECT_EQ(sum(), kWords + 3000 + 2 * 3000);
    EXPECT_EQ(opened.stats().commits, 5U) << "the trial, the creation and two writes";
  }
  expect_sound(pool);
}

// --- Forks ---------------------------------------------------------------------------------------

TEST_F(ProcessTest, AChildThatIsForkedWithinAWriteCannotStore) {
  const Pool pool = open();
  TipsOf<Map> opened(pool, "c");
  int storing = 0;
  opened.write([&](Map& map) {
    map[1] = 1;
    storing = status_of([&] { map[1] = 2; });
  });
  EXPECT_FALSE(WIFEXITED(storing) && WEXITSTATUS(storing) == 0) << storing;
  EXPECT_EQ(contents<StdMap>(opened), (Model{{1, 1}}));
}

TEST_F(ProcessTest, AChildThatReturnsFromAWriteGetsAnError) {
  const Pool pool = open();
  TipsOf<Words> opened(pool, "c");
  pid_t child = -1;
  try {
    opened.write([&](Words& words) {
      words.push_back(1);
      child = ::fork();
    });
  } catch (const Error& error) {
    ::_exit(child == 0 && error.code() == Errc::forked ? 7 : 8);
  }
  if (child == 0) ::_exit(9);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_EQ(opened.size(), 1U);
}

// --- Signals -------------------------------------------------------------------------------------

sigjmp_buf back;
std::atomic<int> seen{0};

extern "C" void leave(int) {
  ++seen;
  ::siglongjmp(back, 1);
}

struct sigaction previous;
extern "C" void pass_on_to_previous(int signal, siginfo_t* info, void* context) {
  ++seen;
  if ((previous.sa_flags & SA_SIGINFO) != 0) previous.sa_sigaction(signal, info, context);
}

/// A page that can't be written to, which is none of perdix.
class ForeignPage {
 public:
  ForeignPage()
      : page_(static_cast<char*>(
            ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ForeignPage(const ForeignPage&) = delete;
  ForeignPage& operator=(const ForeignPage&) = delete;
  ~ForeignPage() { ::munmap(page_, 4096); }
  void store() const { *static_cast<volatile char*>(page_) = 1; }

 private:
  char* page_;
};

/// Whether a store to a foreign page came to leave().
bool is_seen(const ForeignPage& page) {
  const int before = seen;
  if (::sigsetjmp(back, 1) == 0) page.store();
  return seen == before + 1;
}

void install_leave() {
  struct sigaction action {};
  action.sa_handler = leave;
  ::sigaction(SIGSEGV, &action, nullptr);
}

/// In a separate process, which keeps the handlers.
TEST_F(ProcessTest, AHandlerOfTheProgramStaysInUse) {
  const int status = status_of([&] {
    const ForeignPage page;
    install_leave();
    const Pool pool = open();
    TipsOf<Map> opened(pool, "c");
    bool well = true;
    for (TestNumber i = 0; i < 10; ++i) {
      opened.write([&](Map& map) { map[i] = i; });
      well = well && is_seen(page);
      if (i == 5) install_leave();  // a program may install its handler later, too
    }
    ::_exit(well && opened.size() == 10 ? 7 : 8);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

/// A handler that calls the one before it, which is this library's, gets no endless loop.
TEST_F(ProcessTest, AHandlerThatPassesOnEndsTheProcess) {
  const int status = status_of([&] {
    const Pool pool = open();
    TipsOf<Map> opened(pool, "c");
    struct sigaction action {};
    action.sa_sigaction = pass_on_to_previous;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &previous);
    opened.write([&](Map& map) { map[1] = 1; });
    ForeignPage().store();
  });
  EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) != 0) << status;
  const Pool pool = open();
  EXPECT_EQ(TipsOf<Map>(pool, "c").size(), 1U);
}

/// Nothing stores past a write: the pages are read-only for all but its thread.
TEST_F(ProcessTest, StoresOutsideOfAWriteEndTheProcess) {
  const auto dies = [&](auto store) {
    const int status = status_of([&] {
      const Pool pool = open();
      TipsOf<Words> opened(pool, "c");
      opened.write([](Words& words) { words.assign(1, 1); });
      store(opened);
    });
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  };
  EXPECT_TRUE(dies([](TipsOf<Words>& opened) {
    opened.read([](const Words& words) { const_cast<Words&>(words)[0] = 2; });
  }));
  EXPECT_TRUE(dies([](TipsOf<Words>& opened) {
    opened.write([](Words& words) { std::thread([&] { words[0] = 2; }).join(); });
  }));
  const Pool pool = open();
  const TipsOf<Words> opened(pool, "c");
  EXPECT_EQ(opened.read([](const Words& words) { return words[0]; }), 1U);
}

}  // namespace
}  // namespace perdix::detail::index::tips_of
