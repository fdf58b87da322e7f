#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <perdix/key_range.h>

#include "perdix/commands.h"
#include "perdix/notation.h"
#include "perdix/output.h"

namespace perdix::tool {
namespace {

/// The pairs from one end of a range to the other.
class Scan {
 public:
  Scan(const ScanOptions& options, const Index& index)
      : index_(index),
        keys_only_(options.keys_only),
        output_(options.hex ? Notation::hex : Notation::escaped),
        left_(options.limit) {
    const Kind kind = index.info().key_kind;
    const Notation input = options.hex ? Notation::hex : Notation::plain;
    if (options.prefix) prefix_ = to_bytes(*options.prefix, kind, input);
    if (options.from) from_ = to_bytes(*options.from, kind, input);
    if (options.to) to_ = to_bytes(*options.to, kind, input);
  }

  void ascend(Output& out) {
    index_.scan(std::max(from_, prefix_), [&](std::string_view key, std::string_view value) {
      if (left_ == 0 || (to_ && key >= *to_) || !key.starts_with(prefix_)) return false;
      show(out, key, value);
      return --left_ > 0;
    });
  }

  void descend(Output& out) {
    auto cursor = index_.cursor();
    to_ ? cursor.seek_below(*to_) : cursor.seek_last();
    if (!prefix_.empty()) seek_prefix(cursor);
    for (; left_ > 0 && cursor.valid() && cursor.key() >= from_; cursor.prev(), --left_) {
      if (!cursor.key().starts_with(prefix_)) return;
      show(out, cursor.key(), cursor.value());
    }
  }

 private:
  /// Goes back to the last key that begins with the prefix or is below all that do.
  void seek_prefix(Index::IndexCursor& cursor) const {
    const auto end = end_of_prefix(prefix_);
    if (end && cursor.valid() && cursor.key() >= *end) cursor.seek_below(*end);
  }

  void show(Output& out, std::string_view key, std::string_view value) const {
    out.write(to_text(key, index_.info().key_kind, output_));
    if (!keys_only_) out.write("\t" + to_text(value, index_.info().value_kind, output_));
    out.write("\n");
  }

  const Index& index_;
  bool keys_only_;
  Notation output_;
  std::string prefix_;
  std::string from_;  // no bytes sort before every key, also if keys are numbers
  std::optional<std::string> to_;
  std::uint64_t left_;
};

}  // namespace

ExitStatus scan(const ScanOptions& o) {
  const Pool pool = Pool::open(o.target.pool);
  const auto index = Index::open(pool, o.target.index);
  if (o.prefix && index->info().key_kind == Kind::u64) {
    throw Error(Errc::invalid_argument,
                fmt::format("index '{}' has numbers as keys, which have no prefix; use --from",
                            o.target.index));
  }
  Output out;
  Scan scan(o, *index);
  o.reverse ? scan.descend(out) : scan.ascend(out);
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
