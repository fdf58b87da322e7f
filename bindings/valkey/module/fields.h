// Fields and values of tables as clients write them: bytes, or decimal numbers where the table has
// numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <perdix/index.h>

namespace perdix::valkey {

/// A field or value as the index takes it. Throws invalid_argument for what is no number.
class Encoded {
 public:
  Encoded(Kind kind, std::string_view text);

  std::string_view bytes() const noexcept {
    return is_number_ ? std::string_view(number_.data(), number_.size()) : text_;
  }

 private:
  bool is_number_;
  std::array<char, 8> number_{};
  std::string_view text_;
};

/// A field or value as clients read it, made of the bytes that an index has shown.
class Decoded {
 public:
  Decoded(Kind kind, std::string_view bytes);

  std::string_view text() const noexcept {
    return size_ > 0 ? std::string_view(digits_.data(), size_) : bytes_;
  }

 private:
  std::array<char, 20> digits_;
  std::size_t size_ = 0;
  std::string_view bytes_;
};

/// Whether `text` matches a pattern as of the server's KEYS: * ? [a-z] [^a] and \ before any.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace perdix::valkey
