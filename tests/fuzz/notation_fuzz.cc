// Keys and values as text, from any bytes. Written text can be read again; text that cannot be read
// is an Error.
#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/error.h>

#include "fuzz/require.h"
#include "perdix/notation.h"

namespace perdix::fuzz {
namespace {

using tool::Notation;

void write_and_read(std::string_view bytes) {
  require(tool::unescape(tool::escape(bytes)) == bytes, "escape and unescape");
  for (const Notation notation : {Notation::escaped, Notation::plain, Notation::hex}) {
    const std::string text = tool::to_text(bytes, Kind::bytes, notation);
    require(tool::to_bytes(text, Kind::bytes, notation) == bytes, "bytes to text and back");
  }
}

void read_and_write(std::string_view text, Kind kind, Notation notation) {
  std::string bytes;
  try {
    bytes = tool::to_bytes(text, kind, notation);
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "refused for what it is");
    return;
  }
  const std::string written = tool::to_text(bytes, kind, notation);
  require(tool::to_bytes(written, kind, notation) == bytes, "text to bytes and back");
}

}  // namespace
}  // namespace perdix::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdix;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::write_and_read(text);
  for (const auto notation :
       {tool::Notation::escaped, tool::Notation::plain, tool::Notation::hex}) {
    for (const Kind kind : {Kind::u64, Kind::bytes}) fuzz::read_and_write(text, kind, notation);
  }
  return 0;
}
