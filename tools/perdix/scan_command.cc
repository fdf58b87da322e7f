#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"

namespace perdix::tool {
namespace {

// The smallest key that an index of this kind can have.
std::string smallest_key(Kind kind) {
  return kind == Kind::u64 ? to_bytes("0", kind, Notation::plain) : "";
}

}  // namespace

ExitStatus scan(const ScanOptions& o) {
  const Pool pool = Pool::open(o.target.pool);
  const auto index = Index::open(pool, o.target.index);
  const Kind key_kind = index->info().key_kind;
  const Notation input = o.hex ? Notation::hex : Notation::plain;
  const Notation output = o.hex ? Notation::hex : Notation::escaped;
  if (o.prefix && key_kind == Kind::u64) {
    throw Error(Errc::invalid_argument,
                fmt::format("index '{}' has numbers as keys, which have no prefix; use --from",
                            o.target.index));
  }
  const std::string prefix = o.prefix ? to_bytes(*o.prefix, key_kind, input) : "";
  const std::string from = o.from ? to_bytes(*o.from, key_kind, input) : smallest_key(key_kind);
  Output out;
  std::uint64_t left = o.limit;
  const auto show = [&](std::string_view key, std::string_view value) {
    if (left == 0 || !key.starts_with(prefix)) return false;
    out.write(to_text(key, key_kind, output));
    if (!o.keys_only) out.write("\t" + to_text(value, index->info().value_kind, output));
    out.write("\n");
    return --left > 0;
  };
  index->scan(std::max(from, prefix), show);
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
