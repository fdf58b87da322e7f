#include <fmt/format.h>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"

namespace perdix::tool {

ExitStatus drop(const Target& target) {
  Pool pool = Pool::open(target.pool, with_plugins());
  pool.drop(target.index);
  Output out;
  for (const UnfinishedDrop& drop : pool.info().unfinished_drops) {
    if (drop.index.name != target.index) continue;
    out.write(fmt::format("{} is dropped, but its space could not be freed: {}\n",
                          escape(target.index), printable(drop.why)));
  }
  out.flush();
  pool.close();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
