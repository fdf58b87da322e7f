#include "support/keys.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace perdix::test {
namespace {

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kRun = 48;  // neighbours in a cluster: most of a leaf

std::string random_bytes(Rng& rng, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(rng());
  return bytes;
}

// A size as keys have it: mostly a word, sometimes a path, now and then a document.
std::size_t random_key_size(Rng& rng) {
  if (rng.once_in(40)) return rng.between(200, 2000);
  return rng.once_in(4) ? rng.between(17, 80) : rng.between(1, 16);
}

std::uint64_t make_number(Rng& rng, std::uint64_t base, std::size_t i, KeyStyle style) {
  switch (style) {
    case KeyStyle::mixed: return rng();
    case KeyStyle::dense: return base + i;
    case KeyStyle::clustered: return mix(base + i / kRun) + i % kRun;
  }
  return 0;
}

std::string make_bytes(Rng& rng, const std::string& base, std::size_t i, KeyStyle style) {
  switch (style) {
    case KeyStyle::mixed: return random_bytes(rng, random_key_size(rng));
    case KeyStyle::dense: return fmt::format("word-{:08}", i);
    case KeyStyle::clustered: {
      // Each run: one long prefix, and all prefixes of one string behind it.
      const std::string run = fmt::format("{}/{:06}/", base, i / kRun);
      return run + std::string(i % kRun, i % 2 ? 'p' : '\0');
    }
  }
  return {};
}

Datum make_key(Rng& rng, const Datum& base, std::size_t i, KeyStyle style) {
  if (base.kind() == Kind::u64) return make_number(rng, base.number(), i, style);
  return make_bytes(rng, base.bytes(), i, style);
}

std::uint64_t make_base_number(Rng& rng, std::size_t count) {
  switch (rng.below(3)) {  // at either end of the range, or anywhere
    case 0: return 0;
    case 1: return kLast - count + 1;
    default: return rng() / 2;
  }
}

Datum make_base(Kind kind, Rng& rng, std::size_t count) {
  if (kind == Kind::u64) return make_base_number(rng, count);
  return random_bytes(rng, rng.between(0, 200));
}

std::vector<Datum> edge_numbers() {
  const std::uint64_t half = std::uint64_t{1} << 63;
  return {0, 1, 0xff, std::uint64_t{1} << 32, half - 1, half, half + 1, kLast - 1, kLast};
}

std::vector<Datum> edge_bytes() {
  const std::string longest(kMaxKeySize, 'm');
  std::string other_end = longest;  // differs from the longest in its last byte only
  other_end.back() = 'n';
  std::vector<std::string> keys = {"",
                                   std::string(1, '\0'),
                                   std::string(2, '\0'),
                                   std::string("\0a", 2),
                                   "a",
                                   std::string("a\0", 2),
                                   std::string("a\0b", 3),
                                   "aa",
                                   "aaaaaaa",
                                   "aaaaaaaa",
                                   "aaaaaaaaa",
                                   std::string(255, 'a'),
                                   std::string(256, 'a'),
                                   std::string(257, 'a'),
                                   longest,
                                   longest.substr(0, kMaxKeySize - 1),
                                   other_end,
                                   "\x7f",
                                   "\x80",
                                   "\xff",
                                   "\xff\xff",
                                   std::string(8, '\xff'),
                                   std::string(300, '\xff')};
  std::sort(keys.begin(), keys.end());
  return {keys.begin(), keys.end()};
}

std::string bytes_after(const std::string& key) {
  if (key.size() < kMaxKeySize) return key + '\0';
  std::string next = key;  // the longest key has no longer one behind it: count up
  while (!next.empty() && next.back() == '\xff') next.pop_back();
  if (next.empty()) return key;
  next.back() = static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
  return next;
}

std::string bytes_before(const std::string& key) {
  if (key.empty()) return key;
  std::string before = key;
  const auto last = static_cast<unsigned char>(before.back());
  before.pop_back();
  if (last == 0) return before;  // exact
  before += static_cast<char>(last - 1);
  return before + std::string(std::min<std::size_t>(3, kMaxKeySize - before.size()), '\xff');
}

}  // namespace

std::vector<Datum> edge_keys(Kind kind) {
  return kind == Kind::u64 ? edge_numbers() : edge_bytes();
}

std::vector<Datum> make_keys(Kind kind, Rng& rng, std::size_t count, KeyStyle style) {
  std::set<Datum> keys;
  if (style == KeyStyle::mixed) {
    for (Datum& key : edge_keys(kind)) keys.insert(std::move(key));
  }
  const Datum base = make_base(kind, rng, count);
  for (std::size_t i = 0; keys.size() < count; ++i) keys.insert(make_key(rng, base, i, style));
  return {keys.begin(), keys.end()};
}

Datum successor(const Datum& key) {
  if (key.kind() == Kind::bytes) return bytes_after(key.bytes());
  return key.number() == kLast ? key : Datum(key.number() + 1);
}

Datum predecessor(const Datum& key) {
  if (key.kind() == Kind::bytes) return bytes_before(key.bytes());
  return key.number() == 0 ? key : Datum(key.number() - 1);
}

}  // namespace perdix::test
