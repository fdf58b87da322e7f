// The indexes of examples/converted, plugged into Tips and by themselves.
#include <vector>

#include "converted/khash.h"
#include "converted/red_black_tree.h"
#include "systems/on_heap.h"
#include "systems/systems.h"
#include "systems/tips_map.h"

namespace perdix::bench {

std::vector<System> converted_systems() {
  using Khashes = tips::User<"khash", examples::Khash>;
  using Trees = tips::User<"rbtree", examples::RedBlackTree>;
  return {system_on_tips<Khashes>("the hash table khash", "tips:khash"),
          system_on_tips<Trees>("the red-black tree of libbsd", "tips:rbtree"),
          system_on_heap<examples::Khash>("khash", "the hash table khash"),
          system_on_heap<examples::RedBlackTree>("rbtree", "the red-black tree of libbsd")};
}

}  // namespace perdix::bench
