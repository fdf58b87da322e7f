// incr: adds to a number, atomically.
#include <fmt/format.h>

#include <perdix/error.h>

#include "perdix/commands.h"
#include "perdix/new_index.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"

namespace perdix::tool {
namespace {

/// The number that a value is: of kind bytes, its decimal digits. Throws invalid_argument if it is
/// none.
std::uint64_t number_of(std::string_view value, Kind kind) {
  return decode_u64(kind == Kind::u64 ? std::string(value)
                                      : to_bytes(value, Kind::u64, Notation::plain));
}

/// What is added, which may begin with a minus.
class Addend {
 public:
  explicit Addend(std::string_view text)
      : negative_(text.starts_with('-')),
        size_(number_of(negative_ ? text.substr(1) : text, Kind::bytes)) {}

  /// Throws invalid_argument if the sum is no number from 0 to 2^64 - 1.
  std::uint64_t add_to(std::uint64_t number) const {
    std::uint64_t sum = 0;
    const bool overflows = negative_ ? __builtin_sub_overflow(number, size_, &sum)
                                     : __builtin_add_overflow(number, size_, &sum);
    if (!overflows) return sum;
    throw Error(Errc::invalid_argument,
                fmt::format("{} {} {} is no number from 0 to 2^64 - 1; nothing was changed", number,
                            negative_ ? '-' : '+', size_));
  }

 private:
  bool negative_;
  std::uint64_t size_;
};

}  // namespace

ExitStatus incr(const IncrementOptions& o) {
  const Addend addend(o.by);
  Pool pool = Pool::open(o.target.pool, with_plugins());
  NewIndex made(pool, o.target.index);
  auto index = open_or_create(pool, o.target.index, o.spec);
  const IndexInfo& info = index->info();
  std::string after;
  const std::string key = to_bytes(o.key, info.key_kind, o.hex ? Notation::hex : Notation::plain);
  index->update_with(key, [&](std::optional<std::string_view> before) {
    const std::uint64_t sum = addend.add_to(before ? number_of(*before, info.value_kind) : 0);
    after = to_bytes(std::to_string(sum), info.value_kind, Notation::plain);
    return Change<std::string>::store(after);
  });
  made.keep();
  Output out;
  out.write(to_text(after, info.value_kind, Notation::plain) + "\n");
  index.reset();
  pool.close();
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
