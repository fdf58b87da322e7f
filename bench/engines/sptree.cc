#include <perdix/sptree.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using SpTreeMap = PerdixMap<SpTree, K, V>;

}  // namespace

Engine sptree_engine() {
  return {"sptree", "perdix::SpTree, ordered index in a pool", true, open_store<SpTreeMap>,
          pool_settings};
}

}  // namespace perdix::bench
