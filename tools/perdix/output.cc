#include "perdix/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::tool {

void Output::write(std::string_view text) {
  constexpr std::size_t kBlock = 1 << 16;
  buffer_ += text;
  if (buffer_.size() >= kBlock) flush();
}

void Output::flush() {
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      throw ReaderGone();
    } else if (errno != EINTR) {
      throw Error(Errc::io_error,
                  fmt::format("can't write to standard output: {}", std::strerror(errno)));
    }
  }
  buffer_.clear();
}

}  // namespace perdix::tool
