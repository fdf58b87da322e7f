// Rows from any bytes, in both formats. The result is an Error or rows, and does not depend on how
// the text is split into blocks.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/error.h>

#include "fuzz/require.h"
#include "perdix/dump_header.h"
#include "perdix/rows.h"

namespace perdix::fuzz {
namespace {

class TextSource final : public tool::Source {
 public:
  TextSource(std::string_view text, std::size_t piece) : text_(text), piece_(piece) {}

  std::size_t read(char* buffer, std::size_t size) override {
    const std::size_t n = std::min({size, piece_, text_.size()});
    std::memcpy(buffer, text_.data(), n);
    text_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view text_;
  std::size_t piece_;
};

struct Outcome {
  std::vector<std::vector<std::string>> rows;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome read_all(std::string_view text, tool::RowFormat format, std::size_t piece) {
  TextSource source(text, piece);
  tool::RowReader reader(source, "input", format);
  Outcome outcome;
  try {
    for (tool::Row row; reader.next(row);) outcome.rows.push_back(row.fields);
    if (!outcome.rows.empty()) tool::DumpHeader::parse(outcome.rows.front());
  } catch (const Error& error) {
    outcome.error = error.what();
    require(!outcome.error.empty(), "an error has a message");
  }
  return outcome;
}

}  // namespace
}  // namespace perdix::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdix;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const tool::RowFormat format : {tool::RowFormat::tsv, tool::RowFormat::csv}) {
    const fuzz::Outcome whole = fuzz::read_all(text, format, std::size_t{1} << 20);
    fuzz::require(whole == fuzz::read_all(text, format, 3), "pieces make no difference");
    for (const auto& row : whole.rows) fuzz::require(!row.empty(), "a row has a field");
  }
  return 0;
}
