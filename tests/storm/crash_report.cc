#include "storm/crash_report.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include <fmt/format.h>

extern "C" const char __executable_start;  // by the linker: where this program is loaded

namespace perdix::test::storm {
namespace {

std::atomic<Board*> crash_board{nullptr};  // global, since a signal's handler has nothing else

void leave_stack(int number, siginfo_t*, void*) {
  Board& board = *crash_board.load();
  int none = 0;
  if (board.planned_signal == 0 && board.frames.compare_exchange_strong(none, 1)) {
    board.frames = ::backtrace(board.stack.data(), static_cast<int>(board.stack.size()));
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                             ::pclose);
  std::string output;
  std::array<char, 4096> buffer;
  if (!pipe) return output;
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe.get()) != nullptr)
    output += buffer.data();
  return output;
}

/// The first lines that say something: the library's and the call of the storm.
std::string interesting(const std::string& stack) {
  constexpr std::size_t kLines = 16;
  constexpr std::size_t kColumns = 160;
  std::string kept;
  std::istringstream lines(stack);
  std::string line;
  for (std::size_t left = kLines; left > 0 && std::getline(lines, line);) {
    if (line.find("??") == 0 || line.find("leave_stack") != std::string::npos) continue;
    kept += "  " + line.substr(0, kColumns) + "\n";
    --left;
  }
  return kept;
}

}  // namespace

void report_problem(Board& board, const std::string& problem) {
  bool none = false;
  static std::atomic_flag first = ATOMIC_FLAG_INIT;  // the supervisor reads behind has_problem
  if (first.test_and_set() || board.has_problem) return;
  const std::size_t size = std::min(problem.size(), board.problem.size() - 1);
  std::memcpy(board.problem.data(), problem.data(), size);
  board.has_problem.compare_exchange_strong(none, true);
}

void report_crashes(Board& board) {
  crash_board = &board;
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads what it needs now, not in the handler
  struct sigaction action {};
  action.sa_sigaction = leave_stack;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    ::sigaction(signal, &action, nullptr);
}

std::string show_stack(const Board& board) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string command = fmt::format("addr2line -s -f -i -C -p -e '{}'", program.string());
  const int frames = board.frames;
  const auto* base = reinterpret_cast<const std::byte*>(&__executable_start);
  for (int i = 0; i < frames; ++i) {
    command += fmt::format(" {:#x}", static_cast<const std::byte*>(board.stack[i]) - base - 1);
  }
  return frames > 0 ? interesting(output_of(command + " 2>/dev/null")) : "";
}

std::string show_threads(pid_t process) {
  return output_of(
      fmt::format("timeout 60 gdb -p {} -batch -nx -ex 'thread apply all bt 14' "
                  "2>/dev/null | grep -E '^(Thread|#)'",
                  process));
}

}  // namespace perdix::test::storm
