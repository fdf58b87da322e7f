// A process that forks keeps its pools, and its children cannot use them. Real processes test this
// for every workload.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/papers/fastfair.h>

#include "health/suite.h"
#include "support/pool_options.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;

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

class Forks : public ::testing::TestWithParam<WorkloadEntry> {
 protected:
  using Instance = std::unique_ptr<testing::Instance>;
  static constexpr std::uint64_t kSeed = 1, kSteps = 500;

  static PoolOptions options() {
    PoolOptions options = options_for_all_engines();
    options.max_size = 256 << 20;
    return options;
  }
  static Instance open(const Pool& pool) { return GetParam().open(pool, kName); }

  static void work(Course& course, testing::Instance& instance, std::uint64_t steps) {
    while (steps-- > 0) course.step(instance);
  }
  static void expect_contents(testing::Instance& instance, const Course& course) {
    EXPECT_TRUE(instance.shows(course.state())) << "after " << course.steps() << " steps";
  }

  /// Every call of a pool that the process has inherited, and of what is open in it.
  static void expect_forked(Pool& pool, testing::Instance& instance) {
    expect_refused(Errc::forked, "", pool, instance, GetParam());
    expect_error(Errc::forked, "", [&] { pool.huge_pages(); });
    expect_error(Errc::forked, "", [&] { pool.close(); });
  }

  /// A child may use pools that it opens itself like any other process.
  static void use_own_pool(const std::filesystem::path& path) {
    auto pool = Pool::create(path, options());
    {
      Course course(GetParam(), kSeed);
      const Instance instance = open(pool);
      work(course, *instance, 100);
      expect_contents(*instance, course);
    }
    EXPECT_TRUE(pool.check().ok());
    pool.drop(kName);
    pool.close();
  }

  void expect_sound_file(const Course& course) { expect_sound_file(path_, course, true); }
  static void expect_sound_file(const std::filesystem::path& path, const Course& course,
                                bool was_clean) {
    auto pool = Pool::open(path, options());
    EXPECT_EQ(pool.info().was_clean, was_clean);
    {
      const Instance instance = open(pool);
      expect_contents(*instance, course);
      expect_none(instance->check());
    }
    EXPECT_TRUE(pool.check().ok());
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_P(Forks, ChildHasNoPool) {
  Course course(GetParam(), kSeed);
  auto pool = std::optional(Pool::create(path_, options()));
  Instance instance = open(*pool);
  work(course, *instance, kSteps);
  expect_success(start([&] {
    expect_forked(*pool, *instance);
    use_own_pool(directory_.file("child.pool"));
    expect_success(start([&] { expect_forked(*pool, *instance); }));
    instance.reset();
    expect_error(Errc::forked, "", [&] { pool->close(); });
    pool.reset();
    use_own_pool(directory_.file("child again.pool"));
  }));
  work(course, *instance, kSteps);
  expect_contents(*instance, course);
  instance.reset();
  pool->close();
  expect_sound_file(course);
}

// The destructors of what is static run at exit(), in the child too.
TEST_P(Forks, ChildMayExit) {
  expect_success(start([&] {
    static std::optional<Pool> pool;
    static Instance instance;
    Course course(GetParam(), kSeed);
    pool.emplace(Pool::create(path_, options()));
    instance = open(*pool);
    work(course, *instance, kSteps);
    expect_success(start([] {}));
    work(course, *instance, 19 * kSteps);
    expect_success(start([] {}));
    expect_contents(*instance, course);
    instance.reset();
    pool->close();
  }));
  expect_sound_file(Course(GetParam(), kSeed, 20 * kSteps));
}

// The pool grows before and after the fork: a child has none of the pieces.
TEST_P(Forks, LockIsTheOwnersAlone) {
  const Pipe ready, ended;
  const pid_t owner = start([&] {
    Course course(GetParam(), kSeed);
    auto pool = Pool::create(path_, options());
    const Instance instance = open(pool);
    FastFair<std::uint64_t, std::string> filler(pool, "filler");
    const std::string long_value(64 << 10, 'v');
    std::uint64_t fillers = 0;
    const auto grow = [&] {
      work(course, *instance, 10 * kSteps);
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
    ready.tell(course.steps());
    ::pause();
  });
  const auto child = ready.hear<pid_t>();
  const auto steps = ready.hear<std::uint64_t>();
  const auto grandchild = ended.hear<pid_t>();
  expect_error(Errc::in_use, std::to_string(owner), [&] { Pool::open(path_, options()); });
  ::kill(owner, SIGKILL);
  testing_files::await_child(owner);
  expect_sound_file(path_, Course(GetParam(), kSeed, steps), false);  // though its children live
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0);
}

TEST_P(Forks, WhileThreadsWork) {
  const unsigned writers = GetParam().type != nullptr ? 3 : 1;
  auto pool = Pool::create(path_, options());
  {
    const Instance instance = open(pool);
    std::atomic<bool> done{false};
    std::vector<Course> courses;
    for (unsigned t = 0; t < writers; ++t)
      courses.emplace_back(GetParam(), kSeed + t, 0, t, writers);
    std::vector<std::thread> threads;
    for (Course& course : courses) {
      threads.emplace_back([&] {
        while (!done) course.step(*instance);
      });
    }
    for (const auto& call : instance->companions()) {
      threads.emplace_back([&, call] {
        while (!done) call();
      });
    }
    for (int round = 0; round < 10; ++round) {
      expect_success(start([&] {
        expect_forked(pool, *instance);
        use_own_pool(directory_.file("child" + std::to_string(round)));
      }));
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    testing::State all;
    for (const Course& course : courses) all.insert(course.state().begin(), course.state().end());
    EXPECT_TRUE(instance->shows(all));
    expect_none(instance->check());
  }
  EXPECT_TRUE(pool.check().ok());
}

// As programs become daemons: the original ends, its child goes on.
TEST_P(Forks, DaemonMustOpenItself) {
  const Pipe result;
  for (const bool before : {true, false}) {
    const auto path = directory_.file(before ? "before" : "after");
    Course course(GetParam(), kSeed);
    const pid_t original = start([&] {
      auto pool = std::optional(Pool::create(path, options()));
      Instance instance = open(*pool);
      work(course, *instance, kSteps);
      if (before) {
        instance.reset();
        pool.reset();
      }
      ASSERT_EQ(::daemon(1, 1), 0);
      ::alarm(kPatience);
      try {
        if (before) {
          pool.emplace(Pool::open(path, options()));
          instance = open(*pool);
        }
        work(course, *instance, kSteps);
        instance.reset();
        pool->close();
        result.tell(-1);
      } catch (const Error& error) {
        result.tell(static_cast<int>(error.code()));
      }
    });
    expect_success(original);
    const int code = result.hear<int>();
    EXPECT_EQ(code, before ? -1 : static_cast<int>(Errc::forked));
    expect_sound_file(path, Course(GetParam(), kSeed, before ? 2 * kSteps : kSteps), before);
  }
}

TEST_P(Forks, OtherProgramsAreNoConcern) {
  Course course(GetParam(), kSeed);
  auto pool = Pool::create(path_, options());
  {
    const Instance instance = open(pool);
    work(course, *instance, kSteps);
    EXPECT_EQ(std::system("exit 7"), 7 << 8);
    work(course, *instance, kSteps);
    expect_contents(*instance, course);
  }
  pool.close();
  expect_sound_file(course);
}

// No handler runs for this one.
TEST_P(Forks, BareForkIsNoticedToo) {
  Course course(GetParam(), kSeed);
  auto pool = Pool::create(path_, options());
  const Instance instance = open(pool);
  work(course, *instance, kSteps);
  const pid_t child = ::_Fork();
  if (child == 0) {
    bool good = false;
    try {
      instance->check();
    } catch (const Error& error) {
      good = error.code() == Errc::forked;
    }
    ::_exit(good ? 0 : 1);
  }
  expect_success(child);
  expect_contents(*instance, course);
}

INSTANTIATE_TEST_SUITE_P(Engines, Forks, ::testing::ValuesIn(few_workloads()), name_of);

/// Of an index that was filled and closed.
class ForksOfIndex : public Forks {
 protected:
  void SetUp() override { work(course_, *open(pool_), kSteps); }

  Course course_{GetParam(), kSeed};
  Pool pool_ = Pool::create(path_, options());
};

TEST_P(ForksOfIndex, InAVisitor) {
  const AnyIndex index = GetParam().type->open(pool_, kName);
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
  EXPECT_EQ(shown, course_.state().size());
}

TEST_P(ForksOfIndex, InterfaceOfBytes) {
  std::unique_ptr<Index> index = Index::open(pool_, kName);
  EXPECT_EQ(index->size(), course_.state().size());
  expect_success(start([&] {
    const auto forked = [](const auto& call) { expect_error(Errc::forked, "", call); };
    forked([&] { index->size(); });
    forked([&] { index->get("12345678"); });
    const auto visit = [](std::string_view, std::string_view) { return true; };
    forked([&] { index->for_each(visit); });
    if (index->ordered()) forked([&] { index->scan("", visit); });
    forked([&] { Index::open(pool_, kName); });
    index.reset();
  }));
  EXPECT_EQ(index->size(), course_.state().size());
}

INSTANTIATE_TEST_SUITE_P(Engines, ForksOfIndex, ::testing::ValuesIn(index_workloads()), name_of);

}  // namespace
}  // namespace perdix::test
