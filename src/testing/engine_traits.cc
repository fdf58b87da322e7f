#include "testing/engine_traits.h"

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/engine.h"

namespace perdix::testing {

const detail::index::EngineTraits& engine_traits(std::string_view engine) {
  for (const detail::index::EngineTraits& traits : all_engine_traits())
    if (traits.engine == engine) return traits;
  throw Error(Errc::invalid_argument,
              fmt::format("the engine '{}' has no test_traits.h, which says what suites must know "
                          "of it",
                          engine));
}

bool inserts_ahead(std::string_view engine) {
  const detail::index::EngineType* const type = detail::index::look_up_engine(engine);
  return type != nullptr && type->can.inserts_ahead;
}

}  // namespace perdix::testing
