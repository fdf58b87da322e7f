#include <perdix/error.h>

namespace perdix {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::not_found: return "not_found";
    case Errc::already_exists: return "already_exists";
    case Errc::not_a_pool: return "not_a_pool";
    case Errc::truncated: return "truncated";
    case Errc::newer_format: return "newer_format";
    case Errc::older_format: return "older_format";
    case Errc::corrupt: return "corrupt";
    case Errc::wrong_engine: return "wrong_engine";
    case Errc::wrong_kind: return "wrong_kind";
    case Errc::in_use: return "in_use";
    case Errc::needs_check: return "needs_check";
    case Errc::out_of_space: return "out_of_space";
    case Errc::too_large: return "too_large";
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::io_error: return "io_error";
    case Errc::unsupported: return "unsupported";
    case Errc::no_threads: return "no_threads";
    case Errc::forked: return "forked";
    case Errc::no_memory: return "no_memory";
  }
  return "unknown";
}

/// An empty message needs no memory in libstdc++.
Error Error::no_memory() { return {Errc::no_memory, std::string()}; }

const char* Error::what() const noexcept {
  const char* const message = std::runtime_error::what();
  if (code_ != Errc::no_memory || *message != '\0') return message;
  return "the process has no memory for this call; free some or raise the limit (ulimit -v, "
         "memory.max of the control group), then call again";
}

}  // namespace perdix
