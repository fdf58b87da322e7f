// A source of rows for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "perdix/source.h"

namespace perdix::tool {

/// Gives a text in pieces, so that rows straddle blocks.
class TextSource final : public Source {
 public:
  TextSource(std::string text, std::size_t piece) : text_(std::move(text)), piece_(piece) {}

  std::size_t read(char* buffer, std::size_t size) override {
    const std::size_t n = std::min({size, piece_, text_.size() - at_});
    std::memcpy(buffer, text_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  std::string text_;
  std::size_t piece_;
  std::size_t at_ = 0;
};

}  // namespace perdix::tool
