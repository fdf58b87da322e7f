// PX.RANGE and PX.REVRANGE: pairs in the order of their fields. Only ordered engines have one.
//
// Bounds are written as those of ZRANGEBYLEX: [field, (field without itself, - and +.
#include <limits>

#include "bytes.h"
#include "command.h"

namespace perdix::valkey {
namespace {

struct Bound {
  bool open = true;        ///< no bound on this side
  bool inclusive = false;  ///< else the field itself is outside
  bool nothing = false;    ///< + as the lower or - as the upper bound
  std::string field;       ///< as the index has it
};

Bound bound_in(const RedisModuleString* argument, Kind kind, char open_sign) {
  const std::string_view text = view(argument);
  if (text == "-" || text == "+")
    return {.open = true, .inclusive = false, .nothing = text[0] != open_sign, .field = {}};
  if (text.empty() || (text[0] != '[' && text[0] != '('))
    throw Error(Errc::invalid_argument, "min or max not valid string range item");
  return {.open = false,
          .inclusive = text[0] == '[',
          .nothing = false,
          .field = std::string(Encoded(kind, text.substr(1)).bytes())};
}

struct Options {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  bool values = true;
};

Options parse(Arguments arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_word(arguments[i], "NOVALUES")) {
      options.values = false;
    } else if (is_word(arguments[i], "LIMIT") && i + 1 < arguments.size()) {
      options.limit = count_in(arguments[++i]);
    } else {
      throw Error(Errc::invalid_argument, "syntax error");
    }
  }
  return options;
}

/// Pairs that are collected before the reply begins, since an error must come instead of it.
struct Collected {
  std::string pairs;
  std::uint64_t count = 0;

  void add(std::string_view key, std::string_view value) {
    append_pair(pairs, key, value);
    ++count;
  }
};

bool before_lower(const Bound& lower, std::string_view key) {
  return !lower.open && (lower.inclusive ? key < lower.field : key <= lower.field);
}

bool past_upper(const Bound& upper, std::string_view key) {
  return !upper.open && (upper.inclusive ? key > upper.field : key >= upper.field);
}

void collect(const Index& index, const Bound& lower, const Bound& upper, const Options& options,
             Collected& collected) {
  index.scan(lower.field, [&](std::string_view key, std::string_view value) {
    if (past_upper(upper, key)) return false;
    if (!before_lower(lower, key)) collected.add(key, value);
    return collected.count < options.limit;
  });
}

void collect_backwards(const Index& index, const Bound& lower, const Bound& upper,
                       const Options& options, Collected& collected) {
  auto cursor = index.cursor();
  if (upper.open) {
    cursor.seek_last();
  } else {
    upper.inclusive ? cursor.seek_floor(upper.field) : cursor.seek_below(upper.field);
  }
  for (; cursor.valid() && !before_lower(lower, cursor.key()); cursor.prev()) {
    collected.add(cursor.key(), cursor.value());
    if (collected.count == options.limit) return;
  }
}

int reply(Context* context, const IndexInfo& info, const Collected& collected, bool values) {
  RedisModule_ReplyWithArray(context, static_cast<long>(collected.count * (values ? 2 : 1)));
  for_each_pair(collected.pairs, [&](std::string_view key, std::string_view value) {
    reply_bytes(context, Decoded(info.key_kind, key).text());
    if (values) reply_bytes(context, Decoded(info.value_kind, value).text());
  });
  return REDISMODULE_OK;
}

template <class Collect>
int show(Context* context, Arguments arguments, std::size_t lower_at, std::size_t upper_at,
         Collect collect_pairs) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  const Options options = parse(arguments.subspan(4));
  const Kind kind = key.is_absent() ? Kind::bytes : key.info().key_kind;
  const Bound lower = bound_in(arguments[lower_at], kind, '-');
  const Bound upper = bound_in(arguments[upper_at], kind, '+');
  Collected collected;
  if (key.is_absent()) return reply(context, {}, collected, options.values);
  const Index& index = key.table().index();
  if (!index.ordered())
    throw Error(Errc::unsupported, "engine " + key.info().engine + " keeps no order of fields");
  if (options.limit > 0 && !lower.nothing && !upper.nothing)
    collect_pairs(index, lower, upper, options, collected);
  return reply(context, key.info(), collected, options.values);
}

}  // namespace

int show_range(Context* context, Arguments arguments) {
  return show(context, arguments, 2, 3, collect);
}

int show_range_backwards(Context* context, Arguments arguments) {
  return show(context, arguments, 3, 2, collect_backwards);
}

}  // namespace perdix::valkey
