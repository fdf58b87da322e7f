// Public calls throw only perdix::Error: exceptions of the standard library are converted where
// they would leave the library. Inside, std::bad_alloc is not converted.
#pragma once

#include <exception>

namespace perdix::detail::pool {

class PoolCore;

/// Throws the exception that is being handled, as an Error. Needs no memory to say that there is
/// none.
[[noreturn]] void throw_as_error();

/// Throws the exception of a call that used the pool, as an Error. If the pool has failed, that is
/// the error: what else the call met may come of it.
[[noreturn]] void throw_as_error(const PoolCore& pool);

/// Returns call(). Must not contain calls of a user's code, whose exceptions are the user's.
template <class Call>
[[gnu::always_inline]] inline decltype(auto) as_errors(const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw_as_error();
  }
}

template <class Call>
[[gnu::always_inline]] inline decltype(auto) as_errors(const PoolCore& pool, const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw_as_error(pool);
  }
}

/// Returns call() of an engine. Looks for the engine's pool only if the call throws.
template <class Engine, class Call>
requires requires(const Engine& engine) { engine.pool(); }
[[gnu::always_inline]] inline decltype(auto) as_errors(const Engine& engine, const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw_as_error(engine.pool());
  }
}

}  // namespace perdix::detail::pool
