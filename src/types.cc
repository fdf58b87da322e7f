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

}  // namespace perdix
