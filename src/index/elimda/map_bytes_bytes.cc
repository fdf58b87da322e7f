#include "index/elimda/map.h"

namespace perdix::index::elimda {

template class Map<std::string, std::string>;

}  // namespace perdix::index::elimda
