#include "storm/shape.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/keys.h"
#include "support/rng.h"
#include "support/values.h"

namespace perdix::test::storm {
namespace {

constexpr std::uint32_t kRun = 48;                  // neighbours in a cluster: most of a leaf
constexpr std::uint32_t kNested = 2000;             // their mean size is a KiB
constexpr std::uint32_t kOtherPrefixInterval = 97;  // keys that leave the prefix of the others
constexpr std::array<std::string_view, 6> kEndings = {
    std::string_view(""),     std::string_view("\0", 1),        std::string_view("\0\0\0", 3),
    std::string_view("\xff"), std::string_view("\xff\xff\xff"), std::string_view("\0\xff", 2)};

const std::vector<Datum>& edges(Kind kind) {
  static const std::vector<Datum> numbers = edge_keys(Kind::u64);
  static const std::vector<Datum> strings = edge_keys(Kind::bytes);
  return kind == Kind::u64 ? numbers : strings;
}

/// Eight bytes that sort as the number does.
std::string big_endian(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(number >> (8 * (bytes.size() - 1 - i)));
  return bytes;
}

/// As often in paths and names: readable, and the same in all keys of an index.
std::string common_prefix(std::uint32_t size, std::uint64_t seed) {
  std::string prefix = fmt::format("https://{:x}.example.com/catalogue/", seed & 0xfff);
  while (prefix.size() < size) prefix += fmt::format("shelf-{}/", prefix.size());
  return prefix.substr(0, size);
}

std::uint64_t number_key(const Keys& keys, std::uint32_t number) {
  switch (keys.shape) {
    case Shape::sequential: return mix(keys.seed) / 2 + number;
    case Shape::clustered:
      return (mix(keys.seed + number / kRun) & ~std::uint64_t{0xff}) + number % kRun;
    default: return mix(keys.seed + number);
  }
}

std::string random_string(std::uint64_t seed, std::uint32_t number) {
  const std::uint64_t head = mix(seed + number);
  const std::size_t tail = number % 64 == 0 ? mix(head) % 1500 : mix(head) % 24;
  return big_endian(head) + bytes_of(head, tail);
}

std::string string_key(const Keys& keys, std::uint32_t number) {
  switch (keys.shape) {
    case Shape::sequential: return fmt::format("word-{:08}", number);
    case Shape::clustered:
      return fmt::format("{:016x}/{:02}", mix(keys.seed + number / kRun), number % kRun);
    case Shape::prefix: return common_prefix(keys.prefix, keys.seed) + fmt::format("{:08}", number);
    case Shape::groups:
      return common_prefix(keys.prefix, keys.seed) +
             fmt::format(
                 "{}/{:08}",
                 number % kOtherPrefixInterval == kOtherPrefixInterval - 1 ? "boots" : "books",
                 number);
    case Shape::endings:
      return fmt::format("{:08}", number / kEndings.size()) +
             std::string(kEndings[number % kEndings.size()]);
    case Shape::nested: return std::string(number, 'a');
    default: return random_string(keys.seed, number);
  }
}

}  // namespace

std::string_view name_of(Shape shape) {
  switch (shape) {
    case Shape::random: return "random";
    case Shape::sequential: return "sequential";
    case Shape::clustered: return "clustered";
    case Shape::edges: return "edges";
    case Shape::prefix: return "prefix";
    case Shape::groups: return "groups";
    case Shape::endings: return "endings";
    case Shape::nested: return "nested";
  }
  return "";
}

Datum Keys::operator()(std::uint32_t number) const {
  if (shape == Shape::edges && number < edges(kind).size()) return edges(kind)[number];
  if (kind == Kind::u64) return number_key(*this, number);
  return string_key(*this, number);
}

std::uint32_t Keys::most() const {
  return shape == Shape::nested ? kNested : std::uint32_t{90'000'000};
}

std::string_view name_of(Sizes sizes) {
  switch (sizes) {
    case Sizes::small: return "small";
    case Sizes::mixed: return "mixed";
    case Sizes::large: return "large";
    case Sizes::huge: return "huge";
  }
  return "";
}

std::size_t Values::size(Tag tag) const {
  if (kind == Kind::u64) return sizeof tag;
  Rng rng(mix(std::uint64_t{tag.key} << 32 | tag.version));
  switch (sizes) {
    case Sizes::small: return rng.between(sizeof tag, 40);
    case Sizes::large: return rng.between(1 << 10, 40 << 10);
    case Sizes::huge: return rng.between(200 << 10, 1 << 20);
    case Sizes::mixed: break;
  }
  const std::uint64_t dice = rng.below(1000);
  if (dice < 2) return rng.between(30'000, 75'000);
  return dice < 50 ? rng.between(300, 6000) : rng.between(sizeof tag, 120);
}

Datum Values::operator()(Tag tag) const {
  const std::uint64_t number = std::uint64_t{tag.key} << 32 | tag.version;
  if (kind == Kind::u64) return number;
  std::string bytes = bytes_of(number, size(tag));
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::optional<Tag> Values::read(DatumView value) const {
  std::uint64_t number = 0;
  if (value.kind() == Kind::u64) {
    number = value.number();
  } else {
    if (value.bytes().size() < sizeof number) return std::nullopt;
    std::memcpy(&number, value.bytes().data(), sizeof number);
  }
  const Tag tag = {static_cast<std::uint32_t>(number >> 32), static_cast<std::uint32_t>(number)};
  if (value.kind() == Kind::bytes && (value.bytes().size() != size(tag) || value != (*this)(tag))) {
    return std::nullopt;
  }
  return tag;
}

}  // namespace perdix::test::storm
