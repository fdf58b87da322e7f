// Reports why a worker ends. Thread-safe.
#pragma once

#include <string>

#include "storm/board.h"

namespace perdix::test::storm {

/// Puts a problem on the board, unless there is one.
void report_problem(Board& board, const std::string& problem);

/// From now on a thread that a crash's signal hits leaves its stack on the board, and the process
/// dies as it would have.
void report_crashes(Board& board);

/// The functions of a stack that a worker left, innermost first, for the process that forked it.
std::string show_stack(const Board& board);

/// What all threads of a process are doing, by the debugger, where there is one.
std::string show_threads(pid_t process);

}  // namespace perdix::test::storm
