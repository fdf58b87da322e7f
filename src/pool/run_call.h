// A public call of an index: what comes before and after what the engine does.
#pragma once

#include <type_traits>

#include "pool/as_errors.h"
#include "pool/health.h"
#include "pool/pool_core.h"

namespace perdix::detail::pool {

/// Throws unless the pool can be read, or written by a call that changes it. `health` is the
/// pool's: a caller may know it without looking for the pool.
template <bool changes, class Engine>
[[gnu::always_inline]] inline void require_health(const Health& health, const Engine& engine) {
  if (!(changes ? health.writable() : health.usable())) [[unlikely]]
    changes ? engine.pool().require_writable() : engine.pool().require_usable();
}

/// Returns call(engine). A call that takes a const engine reads. The pool's health is asked before
/// the engine is called and before what it found is returned: by then a sync of the data that was
/// read or written may have failed. That another thread has meanwhile noticed the loss of the file
/// is no reason to refuse a change that is made: it is as durable as those before.
template <class Engine, class Call>
[[gnu::always_inline]] inline auto run_call(const Health& health, Engine& engine, Call& call) {
  constexpr bool changes = !std::is_invocable_v<Call&, const Engine&>;
  return as_errors(engine, [&] {
    require_health<changes>(health, engine);
    if constexpr (std::is_void_v<decltype(call(engine))>) {
      call(engine);
      require_health<false>(health, engine);
    } else {
      auto result = call(engine);
      require_health<false>(health, engine);
      return result;
    }
  });
}

}  // namespace perdix::detail::pool
