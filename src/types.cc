#include <perdix/types.h>

namespace perdix {

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::u64: return "u64";
    case Kind::bytes: return "bytes";
  }
  return "unknown";
}

}  // namespace perdix
