#include "perdix/commands.h"

namespace perdix::tool {

ExitStatus drop(const Target& target) {
  Pool pool = Pool::open(target.pool);
  pool.drop(target.index);
  pool.close();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
