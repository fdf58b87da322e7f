#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <perdix/key_range.h>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"

namespace perdix::tool {
namespace {

/// Shows the pairs of a range.
class Scan {
 public:
  Scan(const ScanOptions& options, const Index& index)
      : index_(index),
        keys_only_(options.keys_only),
        output_(options.hex ? Notation::hex : Notation::escaped),
        left_(options.limit) {
    const Kind kind = index.info().key_kind;
    const Notation input = options.hex ? Notation::hex : Notation::plain;
    if (options.prefix) within_prefix(to_bytes(*options.prefix, kind, input));
    if (options.from) from_ = std::max(from_, to_bytes(*options.from, kind, input));
    if (options.to) end_by(to_bytes(*options.to, kind, input));
  }

  void run(bool reverse, Output& out) {
    const Index::Range range = to_ ? index_.range(from_, *to_) : index_.range(from_);
    reverse ? show_all(range.reversed(), out) : show_all(range, out);
  }

 private:
  void within_prefix(std::string bytes) {
    if (auto end = end_of_prefix(bytes)) end_by(std::move(*end));
    from_ = std::move(bytes);
  }

  void end_by(std::string to) {
    if (!to_ || to < *to_) to_ = std::move(to);
  }

  template <class Range>
  void show_all(const Range& range, Output& out) {
    for (const auto& [key, value] : range) {
      if (left_-- == 0) return;
      show(out, key, value);
    }
  }

  void show(Output& out, std::string_view key, std::string_view value) const {
    out.write(to_text(key, index_.info().key_kind, output_));
    if (!keys_only_) out.write("\t" + to_text(value, index_.info().value_kind, output_));
    out.write("\n");
  }

  const Index& index_;
  bool keys_only_;
  Notation output_;
  std::string from_;  // no bytes sort before every key, also if keys are numbers
  std::optional<std::string> to_;
  std::uint64_t left_;
};

}  // namespace

ExitStatus scan(const ScanOptions& o) {
  const Pool pool = Pool::open(o.target.pool, with_plugins());
  const auto index = Index::open(pool, o.target.index);
  if (o.prefix && index->info().key_kind == Kind::u64) {
    throw Error(Errc::invalid_argument,
                fmt::format("index '{}' has numbers as keys, which have no prefix; use --from",
                            o.target.index));
  }
  Output out;
  Scan(o, *index).run(o.reverse, out);
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
