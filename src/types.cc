#include <string>

#include <perdix/argument.h>
#include <perdix/error.h>
#include <perdix/types.h>

namespace perdix {

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::u64: return "u64";
    case Kind::bytes: return "bytes";
  }
  return "unknown";
}

std::string_view to_string(DataModel model) noexcept {
  switch (model) {
    case DataModel::pairs: return "pairs";
    case DataModel::points: return "points";
    case DataModel::container: return "container";
  }
  return "unknown";
}

void detail::throw_negative(std::int64_t number) {
  throw Error(Errc::invalid_argument,
              std::to_string(number) + " is negative; keys and values of kind u64 are not");
}

}  // namespace perdix
