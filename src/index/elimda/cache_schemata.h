// The text by which resctrl says which ways of each cache a group may fill:
// "L3:0=000ff;1=000ff", a hexadecimal mask of ways for each cache of level 3.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace perdix::detail::index::elimda {

class CacheSchemata {
 public:
  using Mask = std::uint64_t;

  /// The line of level 3 of such a file; nothing if there is none, or one of another form.
  static std::optional<CacheSchemata> parse(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      line.erase(0, line.find_first_not_of(' '));
      if (line.rfind("L3:", 0) == 0) return parse_caches(line.substr(3));
    }
    return std::nullopt;
  }

  std::string text() const {
    std::string text = "L3:";
    for (const auto& [cache, mask] : masks_)
      text += fmt::format("{}{}={:x}", text.size() == 3 ? "" : ";", cache, mask);
    return text + "\n";
  }

  /// The highest `ways` of each cache; nothing if a cache has no more than these.
  std::optional<CacheSchemata> highest(unsigned ways) const {
    CacheSchemata some = *this;
    for (auto& [cache, mask] : some.masks_) {
      Mask taken = 0;
      for (unsigned i = 0; i < ways && mask != taken; ++i) taken |= std::bit_floor(mask & ~taken);
      if (taken == mask) return std::nullopt;
      mask = taken;
    }
    return some;
  }

  CacheSchemata without(const CacheSchemata& other) const {
    return with_each([&](int cache, Mask mask) { return mask & ~other.mask_of(cache); });
  }
  CacheSchemata with(const CacheSchemata& other) const {
    return with_each([&](int cache, Mask mask) { return mask | other.mask_of(cache); });
  }

  bool operator==(const CacheSchemata&) const = default;

 private:
  static std::optional<CacheSchemata> parse_caches(const std::string& text) {
    CacheSchemata schemata;
    std::istringstream caches(text);
    for (std::string cache; std::getline(caches, cache, ';');) {
      std::istringstream in(cache);
      int id = 0;
      char equals = 0;
      Mask mask = 0;
      if (!(in >> id >> equals >> std::hex >> mask) || equals != '=') return std::nullopt;
      schemata.masks_[id] = mask;
    }
    if (schemata.masks_.empty()) return std::nullopt;
    return schemata;
  }

  template <class Change>
  CacheSchemata with_each(Change change) const {
    CacheSchemata changed = *this;
    for (auto& [cache, mask] : changed.masks_) mask = change(cache, mask);
    return changed;
  }
  Mask mask_of(int cache) const {
    const auto at = masks_.find(cache);
    return at == masks_.end() ? 0 : at->second;
  }

  std::map<int, Mask> masks_;  // of a cache's ways, by the cache's number
};

}  // namespace perdix::detail::index::elimda
