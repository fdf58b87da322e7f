#include "testing/subjects/index_keys.h"

#include <array>
#include <cstdint>
#include <utility>

#include <perdix/index.h>

#include "index/common/codec.h"
#include "pm/probe.h"
#include "util/seeded_hash.h"

namespace perdix::testing {
namespace {

/// One of very many keys.
std::string key_of(Kind kind, std::uint64_t i) {
  if (kind == Kind::u64) {
    if (i < 2) return bytes_of_number(i == 0 ? 0 : ~std::uint64_t{0});
    const std::uint64_t anywhere = i * 0x9e3779b97f4a7c15;
    return bytes_of_number(i % 8 == 0 ? anywhere : anywhere >> 2);
  }
  static constexpr std::array<std::size_t, 6> kPadding = {0, 0, 3, 20, 70, 300};
  if (i == 0) return "";
  return std::to_string(i) + std::string(kPadding[i % kPadding.size()], 'x');
}

/// Hashes as an engine does in an index that is made while a probe watches.
class Hash {
 public:
  explicit Hash(const detail::index::EngineTraits& engine)
      : hash_(engine.seeded ? detail::pm::kWatchedHashSeed : 0) {}

  detail::index::Hash16 operator()(Kind kind, const std::string& key) const {
    const std::uint64_t bits = kind == Kind::u64 ? hash_(decode_u64(key)) : hash_(key);
    return static_cast<detail::index::Hash16>(bits >> 48);
  }

 private:
  const detail::util::SeededHash hash_;
};

/// The first kIndexKeys keys that are wanted.
template <class Predicate>
std::vector<std::string> find_keys(Kind kind, Predicate is_wanted) {
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; keys.size() < kIndexKeys; ++i) {
    std::string key = key_of(kind, i);
    if (is_wanted(key)) keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<std::string> first_keys(Kind kind) {
  return find_keys(kind, [](const std::string&) { return true; });
}

}  // namespace

std::string bytes_of_number(std::uint64_t number) {
  const auto bytes = encode_u64(number);
  return {bytes.begin(), bytes.end()};
}

const std::vector<std::string>& any_keys(Kind kind) {
  static const std::vector<std::string> numbers = first_keys(Kind::u64);
  static const std::vector<std::string> strings = first_keys(Kind::bytes);
  return kind == Kind::u64 ? numbers : strings;
}

std::vector<std::string> crowded_keys(Kind kind, const detail::index::EngineTraits& engine) {
  if (engine.crowds == nullptr) return any_keys(kind);
  const Hash hash(engine);
  return find_keys(kind, [&](const std::string& key) { return engine.crowds(hash(kind, key)); });
}

}  // namespace perdix::testing
