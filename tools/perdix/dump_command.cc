#include "perdix/commands.h"
#include "perdix/dump_header.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"

namespace perdix::tool {
namespace {

// A "#" at the start of a key is escaped, so that no row is taken for the first line of a dump or
// for its last one.
std::string key_text(std::string_view key, Kind kind) {
  std::string text = to_text(key, kind, Notation::escaped);
  if (text.starts_with('#')) text.replace(0, 1, "\\x23");
  return text;
}

}  // namespace

ExitStatus dump(const DumpOptions& o) {
  const Pool pool = Pool::open(o.target.pool, with_plugins());
  const auto index = Index::open(pool, o.target.index);
  const IndexInfo& info = index->info();
  Output out;
  if (o.header) out.write(DumpHeader{info.engine, info.key_kind, info.value_kind}.line());
  std::uint64_t rows = 0;
  const auto show = [&](std::string_view key, std::string_view value) {
    ++rows;
    out.write(key_text(key, info.key_kind) + "\t" +
              to_text(value, info.value_kind, Notation::escaped) + "\n");
    return true;
  };
  index->for_each(show);
  if (o.header) out.write(DumpEnd{rows}.line());
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
