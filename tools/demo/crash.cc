#include "demo/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include <perdix/error.h>

#include "util/random.h"

namespace perdix::demo {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  throw Error(Errc::io_error, fmt::format("can't {}: {}", what, std::strerror(errno)));
}

// The reading end of a pipe into which a process writes; the process ends with this object at the
// latest.
class LoaderProcess {
 public:
  LoaderProcess(const std::filesystem::path& words, const std::filesystem::path& pool) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("create a pipe");
    pipe_ = ends[0];
    pid_ = ::fork();
    if (pid_ == 0) become_loader(ends[1], words, pool);
    ::close(ends[1]);
    if (pid_ < 0) fail("fork");
  }

  ~LoaderProcess() {
    kill();
    ::close(pipe_);
  }
  LoaderProcess(const LoaderProcess&) = delete;
  LoaderProcess& operator=(const LoaderProcess&) = delete;

  pid_t pid() const { return pid_; }

  void kill() {
    if (killed_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    killed_ = true;
  }

  // Acknowledgements that have arrived since the last call; waits for one. 0 once the process has
  // ended.
  std::uint64_t receive() {
    std::array<char, 1 << 14> buffer;
    ssize_t got = 0;
    do {
      got = ::read(pipe_, buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail("read acknowledgements");
    bytes_ += static_cast<std::uint64_t>(got);
    const std::uint64_t before = received_;
    received_ = bytes_ / sizeof(std::uint64_t);
    return got == 0 ? 0 : received_ - before;
  }

  // Each is written in one piece, and pieces of eight bytes arrive whole.
  std::uint64_t received() const { return received_; }

 private:
  [[noreturn]] static void become_loader(int pipe, const std::filesystem::path& words,
                                         const std::filesystem::path& pool) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(pipe, STDOUT_FILENO);
    ::execl("/proc/self/exe", "perdix-demo", kLoaderCommand, words.c_str(), pool.c_str(), nullptr);
    ::_exit(127);
  }

  int pipe_ = -1;
  pid_t pid_ = -1;
  bool killed_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t received_ = 0;
};

void add_problem(Survivors& survivors, std::uint64_t count, const char* what) {
  if (count > 0) survivors.problems.push_back(fmt::format("{} {}", count, what));
}

}  // namespace

void load_and_acknowledge(const std::filesystem::path& words_file,
                          const std::filesystem::path& path) {
  const std::vector<Word> words = read_words(words_file);
  const Pool pool = Pool::create(path);
  WordIndex index(pool, kIndexName);
  for (std::uint64_t i = 0; i < words.size(); ++i) {
    index.put(words[i].text, words[i].line);
    if (::write(STDOUT_FILENO, &i, sizeof i) != sizeof i) return;
  }
}

Crash load_and_kill(const std::filesystem::path& words_file, const std::filesystem::path& pool,
                    std::uint64_t words, std::uint64_t seed, terminal::ProgressStyle style) {
  detail::util::Random random(seed);
  const std::uint64_t moment = 1 + words / 10 + random.below(words * 8 / 10 + 1);
  const std::chrono::microseconds pause(random.below(1000));
  const Clock::time_point begin = Clock::now();
  LoaderProcess loader(words_file, pool);
  {
    terminal::ProgressBar bar(style, "   another process loads", "words", words);
    while (loader.received() < moment && loader.receive() > 0) bar.update(loader.received());
  }
  if (loader.received() < moment) {
    throw Error(Errc::io_error, "the process that loads ended by itself; its message is above");
  }
  std::this_thread::sleep_for(pause);  // the process continues, so the kill may hit it anywhere
  loader.kill();
  Crash crash{0, std::chrono::duration<double>(Clock::now() - begin).count(), loader.pid()};
  while (loader.receive() > 0) continue;
  crash.acknowledged = loader.received();
  return crash;
}

Survivors inspect(const WordIndex& index, const std::vector<Word>& words,
                  std::uint64_t acknowledged) {
  Survivors survivors;
  for (std::uint64_t i = 0; i < acknowledged; ++i)
    survivors.lost += index.get(words[i].text) != words[i].line;

  std::unordered_map<std::string_view, std::uint64_t> positions;
  for (std::uint64_t i = 0; i < words.size(); ++i) positions.emplace(words[i].text, i);
  index.scan("", [&](std::string_view text, std::uint64_t line) {
    const auto found = positions.find(text);
    if (found == positions.end() || words[found->second].line != line) {
      ++survivors.foreign;
    } else if (found->second >= acknowledged) {
      ++survivors.in_flight;
      survivors.foreign +=
          found->second > acknowledged;  // only the next word can have been in flight
    }
    return true;
  });

  survivors.problems = index.check().problems;
  add_problem(survivors, survivors.lost, "acknowledged words were lost");
  add_problem(survivors, survivors.foreign, "pairs were never put like that");
  return survivors;
}

}  // namespace perdix::demo
