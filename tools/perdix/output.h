// Standard output, written in blocks and without losing errors.
#pragma once

#include <string>
#include <string_view>

namespace perdix::tool {

/// Thrown when the reader has closed standard output ("perdix dump … | head"). This is not an
/// error, but it ends the work.
class ReaderGone {};

/// Not thread-safe. SIGPIPE must be ignored.
class Output {
 public:
  /// Throws perdix::Error io_error, or ReaderGone. The same holds for flush().
  void write(std::string_view text);

  /// Writes all buffered text to the descriptor.
  void flush();

 private:
  std::string buffer_;
};

}  // namespace perdix::tool
