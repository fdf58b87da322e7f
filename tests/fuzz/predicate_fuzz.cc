// Conditions and values of `perdix elf` from any bytes: an Error or conditions whose values have
// their columns' types; what is read can be written and read again.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/elf_table.h>
#include <perdix/error.h>

#include "fuzz/require.h"
#include "perdix/elf_values.h"
#include "perdix/notation.h"
#include "perdix/predicate.h"

namespace perdix::fuzz {
namespace {

const std::vector<ElfColumn> kColumns = {{"i", ElfType::int32},
                                         {"l", ElfType::int64},
                                         {"g", ElfType::float64},
                                         {"d", ElfType::date},
                                         {"s", ElfType::string}};

ElfType type_of(const std::string& column) {
  for (const ElfColumn& known : kColumns) {
    if (known.name == column) return known.type;
  }
  require(false, "a condition is on a column that there is");
  return ElfType::string;
}

void read_conditions(std::string_view text) {
  try {
    for (const ElfPredicate& predicate : tool::parse_predicates(text, kColumns)) {
      require(!predicate.values.empty(), "a condition has a value");
      for (const ElfValue& value : predicate.values) {
        require(value.index() + 1 == static_cast<std::size_t>(type_of(predicate.column)),
                "a value has its column's type");
      }
    }
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "refused for what it is");
    require(std::string_view(error.what()).find("position") != std::string_view::npos,
            "a message says where");
  }
}

void read_and_write(std::string_view text, ElfType type) {
  ElfValue value;
  try {
    value = tool::parse_value(text, type);
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "refused for what it is");
    return;
  }
  std::string written = tool::to_text(value);
  if (type == ElfType::string) written = tool::unescape(written);
  const bool is_nan =
      type == ElfType::float64 && std::get<double>(value) != std::get<double>(value);
  require(is_nan || tool::parse_value(written, type) == value, "a value to text and back");
}

}  // namespace
}  // namespace perdix::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdix;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::read_conditions(text);
  for (const ElfColumn& column : fuzz::kColumns) fuzz::read_and_write(text, column.type);
  return 0;
}
