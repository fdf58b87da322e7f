// get, put and del.
#include <fmt/format.h>

#include "perdix/commands.h"
#include "perdix/new_index.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"
#include "terminal/format.h"
#include "terminal/progress.h"

namespace perdix::tool {
namespace {

// What is typed in a shell is taken as it is.
Notation input_of(const PointOptions& o) { return o.hex ? Notation::hex : Notation::plain; }

ExitStatus report_absent(const Target& target, const std::string& key) {
  terminal::tell(fmt::format("perdix: index '{}' of {} has no key {}\n", escape(target.index),
                             printable(target.pool), escape(key)));
  return ExitStatus::negative;
}

}  // namespace

ExitStatus get(const PointOptions& o) {
  const Pool pool = Pool::open(o.target.pool, with_plugins());
  const auto index = Index::open(pool, o.target.index);
  const auto value = index->get(to_bytes(o.key, index->info().key_kind, input_of(o)));
  if (!value) return report_absent(o.target, o.key);
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
  Pool pool = Pool::open(o.target.pool, with_plugins());
  NewIndex made(pool, o.target.index);
  auto index = open_or_create(pool, o.target.index, o.spec);
  index->put(to_bytes(o.key, index->info().key_kind, input_of(o)),
             to_bytes(o.value, index->info().value_kind, input_of(o)));
  made.keep();
  index.reset();
  pool.close();
  return ExitStatus::ok;
}

ExitStatus del(const DeleteOptions& o) {
  Pool pool = Pool::open(o.target.pool, with_plugins());
  auto index = Index::open(pool, o.target.index);
  const Notation input = o.hex ? Notation::hex : Notation::plain;
  const auto key = [&](const std::string& text) {
    return to_bytes(text, index->info().key_kind, input);
  };
  const std::uint64_t erased = o.range.empty()
                                   ? std::uint64_t{index->erase(key(o.key))}
                                   : index->erase_range(key(o.range[0]), key(o.range[1]));
  index.reset();
  pool.close();
  if (o.range.empty()) return erased == 1 ? ExitStatus::ok : report_absent(o.target, o.key);
  Output out;
  out.write(fmt::format("{} keys removed\n", terminal::format_count(erased)));
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
