#include "pool/as_errors.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/pool_core.h"

namespace perdix::detail::pool {
namespace {

/// The operating system refused something that no part of the library expected to be refused.
[[noreturn]] void throw_refusal(const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) throw Error::no_memory();
  const bool threads = error.code() == std::errc::resource_unavailable_try_again;
  throw Error(
      threads ? Errc::no_threads : Errc::io_error,
      fmt::format("the operating system refused a part of this call: {}; mend that and call again",
                  error.what()));
}

[[noreturn]] void throw_translated() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {  // those of std::filesystem too
    throw_refusal(error);
  } catch (const std::bad_alloc&) {
    throw Error::no_memory();
  } catch (const std::length_error&) {  // more than any memory has
    throw Error::no_memory();
  }
}

}  // namespace

void throw_as_error() {
  try {
    throw_translated();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {  // for the message
    throw Error::no_memory();
  }
}

void throw_as_error(const PoolCore& pool) {
  try {
    pool.require_usable();
  } catch (const std::exception&) {
    throw_as_error();
  }
  throw_as_error();
}

}  // namespace perdix::detail::pool
