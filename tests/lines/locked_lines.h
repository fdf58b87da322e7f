// Which lines of memory a call writes by locked instructions. By these threads agree, so they are
// what a thread waits for when another one has the line. For x86-64.
//
// The processor stops after each instruction of the call (the trap flag), and a signal handler
// looks at the next one: whether it is locked, or an exchange with memory, and where its operand
// lies. A plain store to a line that others write is not seen; there is no reason for one without a
// locked instruction on that line, which takes the right to it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

namespace perdix::test {

/// By number: the address divided by the size of a line.
using Lines = std::set<std::uintptr_t>;

/// Calls work() on this thread, a microsecond for each instruction. One thread at a time.
Lines locked_lines(const std::function<void()>& work);

/// The lines that both have.
Lines common_lines(const Lines& a, const Lines& b);

}  // namespace perdix::test
