#include "index/elimda/map.h"

namespace perdix::detail::index::elimda {

template class Map<std::uint64_t, std::uint64_t>;

}  // namespace perdix::detail::index::elimda
