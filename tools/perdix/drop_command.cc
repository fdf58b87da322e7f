#include "perdix/commands.h"

namespace perdix::tool {

ExitStatus drop(const Target& target) {
  Pool::open(target.pool).drop(target.index);
  return ExitStatus::ok;
}

}  // namespace perdix::tool
