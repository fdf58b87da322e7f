#include "support/values.h"

#include <cstring>
#include <limits>

namespace perdix::test {
namespace {

std::size_t random_value_size(Rng& rng) {
  const std::uint64_t dice = rng.below(1000);
  if (dice < 50) return 0;
  if (dice < 250) return rng.between(1, 7);
  if (dice < 350) return 8;
  if (dice < 750) return rng.between(9, 64);
  if (dice < 950) return rng.between(65, 1024);
  if (dice < 990) return rng.between(1025, 8192);
  if (dice < 999) return rng.between(8193, 100'000);
  return rng.between(100'001, std::size_t{3} << 20);
}

std::size_t tagged_size(std::uint64_t tag) {
  Rng rng(mix(tag + 1));
  const std::uint64_t dice = rng.below(2048);
  if (dice == 0) return rng.between(60'000, 75'000);
  if (dice < 40) return rng.between(300, 6000);
  return dice < 200 ? sizeof tag : rng.between(sizeof tag, 200);
}

std::uint64_t random_number(Rng& rng) {
  switch (rng.below(16)) {
    case 0: return 0;
    case 1: return std::numeric_limits<std::uint64_t>::max();
    case 2: return std::uint64_t{1} << rng.below(64);
    default: return rng();
  }
}

std::string tagged_bytes(std::uint64_t tag) {
  std::string value = bytes_of(tag, tagged_size(tag));
  std::memcpy(value.data(), &tag, sizeof tag);
  return value;
}

}  // namespace

std::string bytes_of(std::uint64_t number, std::size_t size) {
  std::string bytes(size, '\0');
  Rng rng(number);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t word = rng();
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  for (; i < size; ++i) bytes[i] = static_cast<char>(rng());
  return bytes;
}

Datum random_value(Kind kind, Rng& rng) {
  if (kind == Kind::u64) return random_number(rng);
  const std::size_t size = random_value_size(rng);
  return bytes_of(rng(), size);
}

Datum small_value(Kind kind, Rng& rng) {
  if (kind == Kind::u64) return random_number(rng);
  return bytes_of(rng(), rng.below(40));
}

Datum tagged_value(Kind kind, std::uint64_t tag) {
  if (kind == Kind::u64) return tag;
  return tagged_bytes(tag);
}

std::optional<std::uint64_t> tag_of(DatumView value) {
  if (value.kind() == Kind::u64) return value.number();
  const std::string_view bytes = value.bytes();
  std::uint64_t tag = 0;
  if (bytes.size() < sizeof tag) return std::nullopt;
  std::memcpy(&tag, bytes.data(), sizeof tag);
  if (bytes.size() != tagged_size(tag) || bytes != tagged_bytes(tag)) return std::nullopt;
  return tag;
}

}  // namespace perdix::test
