#include <fmt/format.h>

#include "perdix/commands.h"
#include "perdix/output.h"
#include "terminal/format.h"

namespace perdix::tool {

ExitStatus create(const CreateOptions& o) {
  PoolOptions options;
  options.durability = o.durability;
  options.domain = o.domain;
  if (!o.size.empty()) options.initial_size = terminal::parse_size(o.size);
  if (!o.max_size.empty()) options.max_size = terminal::parse_size(o.max_size);
  Pool pool = Pool::create(o.pool, options);
  const PoolInfo info = pool.info();
  Output out;
  out.write(fmt::format("{} created: {}, survives {}\n", o.pool,
                        terminal::format_bytes(static_cast<double>(info.size)),
                        info.durability == Durability::power
                            ? "power failures and the end of any process"
                            : "the end of any process, but not of the machine"));
  pool.close();
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
