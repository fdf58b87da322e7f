// Public calls throw only perdix::Error: exceptions of the standard library are converted where
// they would leave the library. Inside, std::bad_alloc is not converted.
#pragma once

#include <exception>

namespace perdix::detail::pool {

/// Throws the exception that is being handled, as an Error. Needs no memory to say that there is
/// none.
[[noreturn]] void throw_as_error();

/// Returns call(). Must not contain calls of a user's code, whose exceptions are the user's.
template <class Call>
[[gnu::always_inline]] inline decltype(auto) as_errors(const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw_as_error();
  }
}

}  // namespace perdix::detail::pool
