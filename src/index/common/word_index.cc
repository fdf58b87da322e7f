#include "index/common/word_index.h"

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/as_errors.h"

namespace perdix::detail::index {

void throw_without_order(const IndexInfo& info) {
  pool::as_errors([&] {
    throw Error(Errc::unsupported,
                fmt::format("index '{}' has the engine '{}', which keeps no order and can't be "
                            "scanned; for_each() shows all of it",
                            info.name, info.engine));
  });
  __builtin_unreachable();
}

}  // namespace perdix::detail::index
