#include "kill/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

extern char** environ;

namespace perdix::test::kill {
namespace {

constexpr int kChildPipe = 3;
constexpr int kPipeSize = 1 << 20;  // so that a child seldom waits for its parent

[[noreturn]] void fail(int code, const char* what) {
  throw std::system_error(code, std::generic_category(), what);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe");
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeSize);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  std::string program = "/proc/self/exe";
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], kChildPipe);
  const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  pipe_ = ends[0];
  if (error != 0) {
    ::close(pipe_);
    fail(error, "posix_spawn");
  }
}

Process::~Process() {
  kill();
  wait();
  ::close(pipe_);
}

bool Process::receive(std::vector<Record>& records, std::chrono::microseconds patience) {
  pollfd poll = {pipe_, POLLIN, 0};
  const timespec time = {patience.count() / 1'000'000, patience.count() % 1'000'000 * 1000};
  if (::ppoll(&poll, 1, &time, nullptr) <= 0) return true;
  std::array<Record, 4096> buffer;
  for (;;) {
    const ssize_t bytes = ::read(pipe_, buffer.data(), sizeof buffer);
    if (bytes == 0) return false;
    if (bytes < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      fail(errno, "read");
    }
    // Writers write whole records, and a pipe holds a multiple of their size.
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(Record);
    records.insert(records.end(), buffer.begin(), buffer.begin() + count);
  }
}

void Process::kill() {
  if (!status_) ::kill(pid_, SIGKILL);
}

int Process::wait() {
  int status = 0;
  while (!status_) {
    if (::waitpid(pid_, &status, 0) == pid_)
      status_ = status;
    else if (errno != EINTR)
      fail(errno, "waitpid");
  }
  return *status_;
}

Sender::Sender() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

void Sender::send(Record::Type type, unsigned thread, std::uint32_t number,
                  std::uint64_t payload) const {
  const Record record = {type, static_cast<std::uint16_t>(thread), number, payload};
  while (::write(kChildPipe, &record, sizeof record) < 0 && errno == EINTR) {
  }
}

void Sender::problem(const std::string& text) const {
  for (std::size_t i = 0; i < text.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t piece = 0;
    std::memcpy(&piece, text.data() + i, std::min(sizeof piece, text.size() - i));
    send(Record::Type::text, 0, 0, piece);
  }
  send(Record::Type::problem, 0, static_cast<std::uint32_t>(text.size()), 0);
}

}  // namespace perdix::test::kill
