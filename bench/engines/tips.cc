#include <vector>

#include <perdix/tips.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class K, class V>
using BTreeOfTips = Tips<tips::BTree, K, V>;

template <class K, class V>
using TipsMap = PerdixMap<BTreeOfTips, K, V>;

}  // namespace

std::vector<Engine> tips_engines() {
  return {{"tips:btree", "perdix::Tips, a volatile B+-tree made durable", true, open_store<TipsMap>,
           pool_settings}};
}

}  // namespace perdix::bench
