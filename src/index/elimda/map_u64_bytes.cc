#include "index/elimda/map.h"

namespace perdix::index::elimda {

template class Map<std::uint64_t, std::string>;

}  // namespace perdix::index::elimda
