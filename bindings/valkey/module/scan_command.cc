// PX.SCAN: all pairs in small steps. A pair that is there throughout is shown once, whatever else
// changes. The cursor says where to go on, and the server keeps nothing.
//
// With an ordered engine the cursor is the last field that was looked at, in hexadecimal. A hash
// engine shows pairs in no order, so a step shows those whose fields have hashes of one residue:
// the cursor is the number of residues and the next one. Each step reads the whole table, so there
// are at most kMaxSteps, and COUNT is raised accordingly.
#include <algorithm>
#include <charconv>

#include "bytes.h"
#include "command.h"

namespace perdix::valkey {
namespace {

constexpr std::uint64_t kMaxSteps = 64;
constexpr std::uint64_t kDefaultCount = 10;
constexpr std::string_view kStart = "0";
constexpr std::string_view kDigits = "0123456789abcdef";

struct Options {
  std::optional<std::string_view> pattern;
  std::uint64_t count = kDefaultCount;
};

struct Step {
  std::string pairs;
  std::uint64_t count = 0;
  std::string cursor{kStart};
};

[[noreturn]] void bad_cursor() { throw Error(Errc::invalid_argument, "invalid cursor"); }

Options parse(Arguments arguments) {
  Options options;
  if (arguments.size() % 2 != 0) throw Error(Errc::invalid_argument, "syntax error");
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    if (is_word(arguments[i], "MATCH")) {
      options.pattern = view(arguments[i + 1]);
    } else if (is_word(arguments[i], "COUNT")) {
      options.count = count_in(arguments[i + 1]);
    } else {
      throw Error(Errc::invalid_argument, "syntax error");
    }
  }
  if (options.count == 0) throw Error(Errc::invalid_argument, "syntax error");
  return options;
}

std::string to_hex(std::string_view bytes) {
  std::string hex = "x";
  for (const char c : bytes) {
    hex.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

std::string from_hex(std::string_view cursor) {
  if (!cursor.starts_with('x') || cursor.size() % 2 == 0) bad_cursor();
  std::string bytes;
  for (std::size_t i = 1; i < cursor.size(); i += 2) {
    const std::size_t high = kDigits.find(cursor[i]);
    const std::size_t low = kDigits.find(cursor[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) bad_cursor();
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

class Matcher {
 public:
  Matcher(const Table& table, const Options& options) : info_(table.info()), options_(options) {}

  void add(Step& step, std::string_view key, std::string_view value) const {
    if (options_.pattern && !matches(*options_.pattern, Decoded(info_.key_kind, key).text()))
      return;
    append_pair(step.pairs, key, value);
    ++step.count;
  }

 private:
  const IndexInfo& info_;
  const Options& options_;
};

Step ordered_step(Table& table, std::string_view cursor, const Options& options) {
  Step step;
  const Matcher matcher(table, options);
  const bool from_start = cursor == kStart;
  const std::string last = from_start ? std::string() : from_hex(cursor);
  std::uint64_t seen = 0;
  table.index().scan(last, [&](std::string_view key, std::string_view value) {
    if (!from_start && key == last) return true;
    if (seen == options.count) return false;
    matcher.add(step, key, value);
    if (++seen == options.count) step.cursor = to_hex(key);
    return true;
  });
  if (seen < options.count) step.cursor = kStart;
  return step;
}

/// FNV-1a, folded: a cursor must mean the same after a restart and on a replica.
std::uint64_t hash_of(std::string_view key) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash ^ hash >> 32;
}

struct Residue {
  std::uint64_t steps = 1;
  std::uint64_t next = 0;
};

/// A cursor of a hash engine: h<steps>-<next>.
Residue residue_in(std::string_view cursor) {
  Residue residue;
  const char* const end = cursor.data() + cursor.size();
  if (!cursor.starts_with('h')) bad_cursor();
  const auto steps = std::from_chars(cursor.data() + 1, end, residue.steps);
  if (steps.ec != std::errc() || steps.ptr == end || *steps.ptr != '-') bad_cursor();
  const auto next = std::from_chars(steps.ptr + 1, end, residue.next);
  if (next.ec != std::errc() || next.ptr != end) bad_cursor();
  if (residue.steps > kMaxSteps || residue.next >= residue.steps) bad_cursor();
  return residue;
}

Step hashed_step(Table& table, std::string_view cursor, const Options& options) {
  const Index& index = table.index();
  Residue residue;
  if (cursor == kStart) {
    residue.steps = std::clamp<std::uint64_t>(index.size() / options.count, 1, kMaxSteps);
  } else {
    residue = residue_in(cursor);
  }
  Step step;
  const Matcher matcher(table, options);
  index.for_each([&](std::string_view key, std::string_view value) {
    if (hash_of(key) % residue.steps == residue.next) matcher.add(step, key, value);
    return true;
  });
  if (++residue.next < residue.steps)
    step.cursor = "h" + std::to_string(residue.steps) + "-" + std::to_string(residue.next);
  return step;
}

int reply(Context* context, const IndexInfo& info, const Step& step) {
  RedisModule_ReplyWithArray(context, 2);
  reply_bytes(context, step.cursor);
  RedisModule_ReplyWithArray(context, static_cast<long>(step.count * 2));
  for_each_pair(step.pairs, [&](std::string_view key, std::string_view value) {
    reply_bytes(context, Decoded(info.key_kind, key).text());
    reply_bytes(context, Decoded(info.value_kind, value).text());
  });
  return REDISMODULE_OK;
}

}  // namespace

int scan_pairs(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  const Options options = parse(arguments.subspan(3));
  if (key.is_absent()) return reply(context, {}, {});
  Table& table = key.table();
  const std::string_view cursor = view(arguments[2]);
  const bool ordered = table.index().ordered();
  return reply(
      context, table.info(),
      ordered ? ordered_step(table, cursor, options) : hashed_step(table, cursor, options));
}

}  // namespace perdix::valkey
