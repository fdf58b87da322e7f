#include "index/elimda/map.h"

namespace perdix::detail::index::elimda {

template class Map<std::string, std::string>;

}  // namespace perdix::detail::index::elimda
