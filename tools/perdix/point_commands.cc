// get, put and del.
#include <fmt/format.h>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"

namespace perdix::tool {
namespace {

// What is typed in a shell is taken as it is.
Notation input_of(const PointOptions& o) { return o.hex ? Notation::hex : Notation::plain; }

ExitStatus report_absent(const PointOptions& o) {
  fmt::print(stderr, "perdix: index '{}' of {} has no key {}\n", escape(o.target.index),
             printable(o.target.pool), escape(o.key));
  return ExitStatus::negative;
}

}  // namespace

ExitStatus get(const PointOptions& o) {
  const Pool pool = Pool::open(o.target.pool);
  const auto index = Index::open(pool, o.target.index);
  const auto value = index->get(to_bytes(o.key, index->info().key_kind, input_of(o)));
  if (!value) return report_absent(o);
  Output out;
  if (o.raw) {
    out.write(to_text(*value, index->info().value_kind, Notation::plain));
  } else {
    out.write(to_text(*value, index->info().value_kind, o.hex ? Notation::hex : Notation::escaped) +
              "\n");
  }
  out.flush();
  return ExitStatus::ok;
}

ExitStatus put(const PointOptions& o) {
  Pool pool = Pool::open(o.target.pool);
  auto index = open_or_create(pool, o.target.index, o.wishes);
  index->put(to_bytes(o.key, index->info().key_kind, input_of(o)),
             to_bytes(o.value, index->info().value_kind, input_of(o)));
  index.reset();
  pool.close();
  return ExitStatus::ok;
}

ExitStatus del(const PointOptions& o) {
  Pool pool = Pool::open(o.target.pool);
  auto index = Index::open(pool, o.target.index);
  const bool erased = index->erase(to_bytes(o.key, index->info().key_kind, input_of(o)));
  index.reset();
  pool.close();
  return erased ? ExitStatus::ok : report_absent(o);
}

}  // namespace perdix::tool
