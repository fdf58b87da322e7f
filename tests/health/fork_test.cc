// A process that forks keeps its pools, and its children cannot use them. Real processes test this
// for every engine x kinds.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/papers/fastfair.h>

#include "health/name_of.h"
#include "support/engines.h"
#include "support/pool_options.h"
#include "support/values.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using testing_files::TempDirectory;

/// A child that hangs is ended by this, and its test fails. Far more seconds than any needs on a
/// busy machine, and less than ctest leaves to the test.
constexpr unsigned kPatience = 300;

/// Bytes that one process tells another.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  template <class T>
  void tell(const T& value) const {
    ASSERT_EQ(::write(ends_[1], &value, sizeof value), static_cast<ssize_t>(sizeof value));
  }
  template <class T>
  T hear() const {
    T value{};
    EXPECT_EQ(::read(ends_[0], &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }

 private:
  int ends_[2];
};

/// Forks; the child runs `body` and ends by exit(), as a program does, with the destructors of what
/// is static: 0 if no expectation failed in it.
template <class Body>
pid_t start(Body body) {
  std::fflush(nullptr);  // else the child's exit() writes it once more
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(kPatience);
  const bool failed_before = ::testing::Test::HasFailure();
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the child threw: " << error.what();
  }
  std::exit(::testing::Test::HasFailure() && !failed_before ? 1 : 0);
}

int await_child(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void expect_success(pid_t pid) {
  const int status = await_child(pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << (WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                              : "exit " + std::to_string(WEXITSTATUS(status)));
}

template <class Call>
void expect_code(Errc code, const char* what, Call call) {
  try {
    call();
    ADD_FAILURE() << what << ": no error; expected " << to_string(code);
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << what << ": " << error.what();
  }
}

class Forks : public ::testing::TestWithParam<IndexType> {
 protected:
  static constexpr std::uint64_t kPairs = 500;

  static PoolOptions options() {
    PoolOptions options = options_for_all_engines();
    options.max_size = 256 << 20;
    return options;
  }

  /// Not in order, of which a tree that is not balanced would become a list.
  static Datum key(std::uint64_t i) {
    const std::uint64_t number = i * 0x9E37'79B9'7F4A'7C15;  // odd, so no two are equal
    return GetParam().key_kind == Kind::u64 ? Datum(number)
                                            : Datum("key " + std::to_string(number));
  }
  static Datum value(std::uint64_t i) { return tagged_value(GetParam().value_kind, i); }
  static AnyIndex open(const Pool& pool, const char* name = "index") {
    return GetParam().open(pool, name);
  }
  static void put(AnyIndex& index, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) index.put(key(i), value(i));
  }
  static void expect_pairs(const AnyIndex& index, std::uint64_t count) {
    EXPECT_EQ(index.size(), count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto found = index.get(key(i));
      ASSERT_TRUE(found) << i;
      ASSERT_EQ(DatumView(*found), DatumView(value(i))) << i;
    }
  }

  /// Every call of a pool and an index that the process has inherited.
  static void expect_forked(Pool& pool, AnyIndex& index) {
    const auto forked = [](const char* what, auto call) { expect_code(Errc::forked, what, call); };
    forked("put", [&] { index.put(key(0), value(1)); });
    forked("insert", [&] { index.insert(key(kPairs), value(1)); });
    forked("update", [&] { index.update(key(0), value(1)); });
    forked("erase", [&] { index.erase(key(0)); });
    forked("get", [&] { index.get(key(0)); });
    forked("contains", [&] { index.contains(key(0)); });
    forked("get_many", [&] { index.get_many({key(0), key(1)}); });
    forked("visit", [&] { index.visit_all([](DatumView, DatumView) { return true; }); });
    if (index.ordered()) forked("scan of rows", [&] { index.scan(key(0), 10); });
    forked("size", [&] { index.size(); });
    forked("stats", [&] { index.stats(); });
    forked("check", [&] { index.check(); });
    forked("info", [&] { pool.info(); });
    forked("huge_pages", [&] { pool.huge_pages(); });
    forked("indexes", [&] { pool.indexes(); });
    forked("check of the pool", [&] { pool.check(); });
    forked("drop", [&] { pool.drop("index"); });
    forked("close", [&] { pool.close(); });
    forked("opening an index", [&] { open(pool, "another"); });
    forked("opening an index by bytes", [&] { Index::open(pool, "index"); });
  }

  /// A child may use pools that it opens itself like any other process.
  static void use_own_pool(const std::filesystem::path& path) {
    auto pool = Pool::create(path, options());
    {
      AnyIndex index = open(pool);
      put(index, 0, 100);
      expect_pairs(index, 100);
    }
    EXPECT_TRUE(pool.check().ok());
    pool.drop("index");
    pool.close();
  }

  void expect_sound_file(std::uint64_t pairs) {
    auto pool = Pool::open(path_, options());
    {
      const AnyIndex index = open(pool);
      expect_pairs(index, pairs);
      EXPECT_TRUE(index.check().ok());
    }
    EXPECT_TRUE(pool.check().ok());
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_P(Forks, ChildHasNoPool) {
  auto pool = std::optional(Pool::create(path_, options()));
  auto index = std::optional(open(*pool));
  put(*index, 0, kPairs);
  expect_success(start([&] {
    expect_forked(*pool, *index);
    use_own_pool(directory_.file("child.pool"));
    expect_success(start([&] { expect_forked(*pool, *index); }));
    index.reset();
    expect_code(Errc::forked, "close", [&] { pool->close(); });
    pool.reset();
    use_own_pool(directory_.file("child again.pool"));
  }));
  put(*index, kPairs, 2 * kPairs);
  expect_pairs(*index, 2 * kPairs);
  index.reset();
  pool->close();
  expect_sound_file(2 * kPairs);
}

// The destructors of what is static run at exit(), in the child too.
TEST_P(Forks, ChildMayExit) {
  expect_success(start([&] {
    static std::optional<Pool> pool;
    static std::optional<AnyIndex> index;
    pool.emplace(Pool::create(path_, options()));
    index.emplace(open(*pool));
    put(*index, 0, kPairs);
    expect_success(start([] {}));
    put(*index, kPairs, 20 * kPairs);
    expect_success(start([] {}));
    expect_pairs(*index, 20 * kPairs);
    index.reset();
    pool->close();
  }));
  expect_sound_file(20 * kPairs);
}

// The pool grows before and after the fork: a child has none of the pieces.
TEST_P(Forks, LockIsTheOwnersAlone) {
  const Pipe ready, ended;
  const pid_t owner = start([&] {
    auto pool = Pool::create(path_, options());
    AnyIndex index = open(pool);
    FastFair<std::uint64_t, std::string> filler(pool, "filler");
    const std::string long_value(64 << 10, 'v');
    std::uint64_t count = 0, fillers = 0;
    const auto grow = [&] {
      put(index, count, count + 5000);
      count += 5000;
      const std::uint64_t before = pool.info().size;
      while (pool.info().size == before) filler.put(fillers++, long_value);
    };
    grow();
    expect_success(start([] {}));
    const pid_t child = start([&] {
      const pid_t grandchild = start([] { ::pause(); });
      ended.tell(grandchild);
      ::pause();
    });
    grow();
    ready.tell(child);
    ready.tell(count);
    ::pause();
  });
  const auto child = ready.hear<pid_t>();
  const auto count = ready.hear<std::uint64_t>();
  const auto grandchild = ended.hear<pid_t>();
  try {
    Pool::open(path_, options());
    ADD_FAILURE() << "a second owner";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::in_use);
    EXPECT_NE(std::string(error.what()).find(std::to_string(owner)), std::string::npos);
  }
  ::kill(owner, SIGKILL);
  await_child(owner);
  expect_sound_file(count);  // though its children live
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0);
}

TEST_P(Forks, WhileThreadsWork) {
  auto pool = Pool::create(path_, options());
  {
    AnyIndex index = open(pool);
    put(index, 0, kPairs);
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t round = 0; !done; ++round) {
          for (std::uint64_t i = 0; i < 100; ++i)
            index.put(key(kPairs + 100 * t + i), value(round));
          for (std::uint64_t i = 0; i < 100; ++i) index.erase(key(kPairs + 100 * t + i));
          index.visit_all([&](DatumView, DatumView) { return !done; });
        }
      });
    }
    for (int round = 0; round < 10; ++round) {
      expect_success(start([&] {
        expect_forked(pool, index);
        use_own_pool(directory_.file("child" + std::to_string(round)));
      }));
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    expect_pairs(index, kPairs);
    EXPECT_TRUE(index.check().ok());
  }
  EXPECT_TRUE(pool.check().ok());
}

TEST_P(Forks, InAVisitor) {
  auto pool = Pool::create(path_, options());
  AnyIndex index = open(pool);
  put(index, 0, kPairs);
  std::uint64_t shown = 0;
  const pid_t parent = ::getpid();
  pid_t child = 0;
  const auto scan = [&] {
    index.visit_all([&](DatumView, DatumView) {
      if (++shown == 3) child = ::fork();
      return true;
    });
  };
  try {
    scan();
  } catch (const Error& error) {
    // A child may still be shown what was read before the fork.
    const bool good = ::getpid() != parent && error.code() == Errc::forked && shown >= 3;
    ::_exit(good ? 0 : 1);
  }
  if (::getpid() != parent) ::_exit(2);
  expect_success(child);
  EXPECT_EQ(shown, kPairs);
}

TEST_P(Forks, InterfaceOfBytes) {
  auto pool = Pool::create(path_, options());
  { put(*std::make_unique<AnyIndex>(open(pool)), 0, kPairs); }
  std::unique_ptr<Index> index = Index::open(pool, "index");
  EXPECT_EQ(index->size(), kPairs);
  expect_success(start([&] {
    expect_code(Errc::forked, "size", [&] { index->size(); });
    expect_code(Errc::forked, "get", [&] { index->get("12345678"); });
    const auto visit = [](std::string_view, std::string_view) { return true; };
    expect_code(Errc::forked, "for_each", [&] { index->for_each(visit); });
    if (index->ordered()) expect_code(Errc::forked, "scan", [&] { index->scan("", visit); });
    index.reset();
  }));
  EXPECT_EQ(index->size(), kPairs);
}

// As programs become daemons: the original ends, its child goes on.
TEST_P(Forks, DaemonMustOpenItself) {
  const Pipe result;
  for (const bool before : {true, false}) {
    const auto path = directory_.file(before ? "before" : "after");
    const pid_t original = start([&] {
      auto pool = std::optional(Pool::create(path, options()));
      auto index = std::optional(open(*pool));
      put(*index, 0, kPairs);
      if (before) {
        index.reset();
        pool.reset();
      }
      ASSERT_EQ(::daemon(1, 1), 0);
      ::alarm(kPatience);
      try {
        if (before) {
          pool.emplace(Pool::open(path, options()));
          index.emplace(open(*pool));
        }
        put(*index, kPairs, 2 * kPairs);
        index.reset();
        pool->close();
        result.tell(-1);
      } catch (const Error& error) {
        result.tell(static_cast<int>(error.code()));
      }
    });
    expect_success(original);
    const int code = result.hear<int>();
    EXPECT_EQ(code, before ? -1 : static_cast<int>(Errc::forked));
    auto pool = Pool::open(path, options());
    EXPECT_EQ(pool.info().was_clean, before);
    expect_pairs(open(pool), before ? 2 * kPairs : kPairs);
  }
}

TEST_P(Forks, OtherProgramsAreNoConcern) {
  auto pool = Pool::create(path_, options());
  {
    AnyIndex index = open(pool);
    put(index, 0, kPairs);
    EXPECT_EQ(std::system("exit 7"), 7 << 8);
    put(index, kPairs, 2 * kPairs);
    expect_pairs(index, 2 * kPairs);
  }
  pool.close();
  expect_sound_file(2 * kPairs);
}

// No handler runs for this one.
TEST_P(Forks, BareForkIsNoticedToo) {
  auto pool = Pool::create(path_, options());
  AnyIndex index = open(pool);
  put(index, 0, kPairs);
  const pid_t child = ::_Fork();
  if (child == 0) {
    bool good = false;
    try {
      index.get(key(0));
    } catch (const Error& error) {
      good = error.code() == Errc::forked;
    }
    ::_exit(good ? 0 : 1);
  }
  expect_success(child);
  expect_pairs(index, kPairs);
}

INSTANTIATE_TEST_SUITE_P(Engines, Forks, ::testing::ValuesIn(few_index_types()), name_of);

}  // namespace
}  // namespace perdix::test
