#include "index/elimda/map.h"

namespace perdix::detail::index::elimda {

template class Map<std::string, std::uint64_t>;

}  // namespace perdix::detail::index::elimda
