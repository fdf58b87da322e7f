#include "index/elimda/map.h"

namespace perdix::detail::index::elimda {

template class Map<std::uint64_t, std::string>;

}  // namespace perdix::detail::index::elimda
