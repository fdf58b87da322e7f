// The containers that the suites run TipsOf over: docs/tips-of.md has the same list. Each has a
// name and, whatever it is, the calls of a map from numbers to numbers. The presence of this file
// tells CMake that this is an engine without pairs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/container/flat_map.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <tsl/robin_map.h>

#include <perdix/tips_of.h>

#include "util/hash.h"

namespace perdix::detail::index::tips_of {

using TestNumber = std::uint64_t;
template <class T>
using Allocator = TipsAllocator<T>;
using NumberPair = std::pair<TestNumber, TestNumber>;
using ConstPair = std::pair<const TestNumber, TestNumber>;
using StringPair = std::pair<const TipsString, TipsString>;

/// A hash of a number that is equal in each process.
struct NumberHash {
  std::size_t operator()(TestNumber number) const { return util::hash(number); }
};
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return util::hash(text); }
};

/// Text that no string keeps within its object.
inline std::string long_text(TestNumber number) {
  return "a text that is too long to lie within a string: " + std::to_string(number);
}
inline TestNumber number_in(std::string_view text) {
  return std::stoull(std::string(text.substr(text.rfind(' ') + 1)));
}

/// What the tests do to a container, by its kind.
template <class C>
struct MapCalls {
  using Container = C;
  static void put(C& c, TestNumber key, TestNumber value) { c[key] = value; }
  static void erase(C& c, TestNumber key) { c.erase(key); }
  static std::optional<TestNumber> get(const C& c, TestNumber key) {
    const auto at = c.find(key);
    return at == c.end() ? std::nullopt : std::optional(at->second);
  }
  static NumberPair pair_of(const typename C::value_type& element) {
    return {element.first, element.second};
  }
};

/// A map without operator[].
template <class C>
struct MultimapCalls : MapCalls<C> {
  static void put(C& c, TestNumber key, TestNumber value) {
    c.erase(key);
    c.emplace(key, value);
  }
};

/// Strings for both.
template <class C>
struct StringCalls {
  using Container = C;
  static void put(C& c, TestNumber key, TestNumber value) {
    const std::string name = long_text(key), text = long_text(value);
    c[TipsString(name)] = TipsString(text);
  }
  static void erase(C& c, TestNumber key) {
    const auto at = c.find(std::string_view(long_text(key)));
    if (at != c.end()) c.erase(at);
  }
  static std::optional<TestNumber> get(const C& c, TestNumber key) {
    const std::string name = long_text(key);
    const auto at = c.find(std::string_view(name));
    return at == c.end() ? std::nullopt : std::optional(number_in(at->second));
  }
  static NumberPair pair_of(const typename C::value_type& element) {
    return {number_in(element.first), number_in(element.second)};
  }
};

/// Pairs in a row, in no order.
template <class C>
struct SequenceCalls {
  using Container = C;
  static auto find(C& c, TestNumber key) {
    return std::find_if(c.begin(), c.end(), [&](const auto& pair) { return pair.first == key; });
  }
  static void put(C& c, TestNumber key, TestNumber value) {
    const auto at = find(c, key);
    if (at != c.end()) {
      at->second = value;
    } else {
      c.insert(c.end(), {key, value});
    }
  }
  static void erase(C& c, TestNumber key) {
    const auto at = find(c, key);
    if (at != c.end()) c.erase(at);
  }
  static std::optional<TestNumber> get(const C& c, TestNumber key) {
    const auto at = find(const_cast<C&>(c), key);
    return at == c.end() ? std::nullopt : std::optional(at->second);
  }
  static NumberPair pair_of(const NumberPair& pair) { return pair; }
};

/// A set of tuples, whose last member is no part of the key.
template <class C>
struct TupleCalls {
  using Container = C;
  static auto find(const C& c, TestNumber key) { return c.lower_bound({key, 0, TestNumber{0}}); }
  static void erase(C& c, TestNumber key) {
    const auto at = find(c, key);
    if (at != c.end() && std::get<0>(*at) == key) c.erase(at);
  }
  static void put(C& c, TestNumber key, TestNumber value) {
    erase(c, key);
    c.insert({key, 7, value});
  }
  static std::optional<TestNumber> get(const C& c, TestNumber key) {
    const auto at = find(c, key);
    if (at == c.end() || std::get<0>(*at) != key) return std::nullopt;
    return std::get<2>(*at);
  }
  static NumberPair pair_of(const typename C::value_type& tuple) {
    return {std::get<0>(tuple), std::get<2>(tuple)};
  }
};

/// A container of containers.
template <class C>
struct NestedCalls : MapCalls<C> {
  static void put(C& c, TestNumber key, TestNumber value) {
    auto& values = c[key];
    values.insert(values.begin(), value);
    if (values.size() > 20) values.pop_back();
  }
  static std::optional<TestNumber> get(const C& c, TestNumber key) {
    const auto at = c.find(key);
    return at == c.end() ? std::nullopt : std::optional(at->second.front());
  }
  static NumberPair pair_of(const typename C::value_type& element) {
    return {element.first, element.second.front()};
  }
};

/// A set of pairs by its hash.
struct FirstHash {
  std::size_t operator()(const NumberPair& pair) const { return util::hash(pair.first); }
};
struct FirstEqual {
  bool operator()(const NumberPair& a, const NumberPair& b) const { return a.first == b.first; }
};
template <class C>
struct PairSetCalls {
  using Container = C;
  static void erase(C& c, TestNumber key) { c.erase({key, 0}); }
  static void put(C& c, TestNumber key, TestNumber value) {
    c.erase({key, 0});
    c.insert({key, value});
  }
  static std::optional<TestNumber> get(const C& c, TestNumber key) {
    const auto at = c.find({key, 0});
    return at == c.end() ? std::nullopt : std::optional(at->second);
  }
  static NumberPair pair_of(const NumberPair& pair) { return pair; }
};

// --- The containers: name, whether iterations are in the order of keys ---------------------------

struct StdMap : MapCalls<std::map<TestNumber, TestNumber, std::less<>, Allocator<ConstPair>>> {
  static constexpr std::string_view kName = "std::map";
  static constexpr bool kOrdered = true;
};
struct StdMultimap
    : MultimapCalls<std::multimap<TestNumber, TestNumber, std::less<>, Allocator<ConstPair>>> {
  static constexpr std::string_view kName = "std::multimap";
  static constexpr bool kOrdered = true;
};
struct StdUnorderedMap : MapCalls<std::unordered_map<TestNumber, TestNumber, NumberHash,
                                                     std::equal_to<>, Allocator<ConstPair>>> {
  static constexpr std::string_view kName = "std::unordered_map";
  static constexpr bool kOrdered = false;
};
struct StdUnorderedSet
    : PairSetCalls<std::unordered_set<NumberPair, FirstHash, FirstEqual, Allocator<NumberPair>>> {
  static constexpr std::string_view kName = "std::unordered_set";
  static constexpr bool kOrdered = false;
};
using TestTuple = std::tuple<TestNumber, std::uint8_t, TestNumber>;
struct StdSetOfTuples
    : TupleCalls<std::set<TestTuple, std::less<TestTuple>, Allocator<TestTuple>>> {
  static constexpr std::string_view kName = "std::set<std::tuple>";
  static constexpr bool kOrdered = true;
};
struct StdVector : SequenceCalls<std::vector<NumberPair, Allocator<NumberPair>>> {
  static constexpr std::string_view kName = "std::vector";
  static constexpr bool kOrdered = false;
};
struct StdDeque : SequenceCalls<std::deque<NumberPair, Allocator<NumberPair>>> {
  static constexpr std::string_view kName = "std::deque";
  static constexpr bool kOrdered = false;
};
struct StdList : SequenceCalls<std::list<NumberPair, Allocator<NumberPair>>> {
  static constexpr std::string_view kName = "std::list";
  static constexpr bool kOrdered = false;
};
struct FlatMap
    : MapCalls<
          boost::container::flat_map<TestNumber, TestNumber, std::less<>, Allocator<NumberPair>>> {
  static constexpr std::string_view kName = "boost::container::flat_map";
  static constexpr bool kOrdered = true;
};
struct UnorderedFlatMap
    : MapCalls<boost::unordered_flat_map<TestNumber, TestNumber, NumberHash, std::equal_to<>,
                                         Allocator<ConstPair>>> {
  static constexpr std::string_view kName = "boost::unordered_flat_map";
  static constexpr bool kOrdered = false;
};
struct RobinMap : MapCalls<tsl::robin_map<TestNumber, TestNumber, NumberHash, std::equal_to<>,
                                          Allocator<NumberPair>>> {
  static constexpr std::string_view kName = "tsl::robin_map";
  static constexpr bool kOrdered = false;
};
struct StdMapOfStrings
    : StringCalls<std::map<TipsString, TipsString, std::less<>, Allocator<StringPair>>> {
  static constexpr std::string_view kName = "std::map of strings";
  static constexpr bool kOrdered = false;
};
struct StdUnorderedMapOfStrings
    : StringCalls<std::unordered_map<TipsString, TipsString, StringHash, std::equal_to<>,
                                     Allocator<StringPair>>> {
  static constexpr std::string_view kName = "std::unordered_map of strings";
  static constexpr bool kOrdered = false;
};
using NumberVector = std::vector<TestNumber, Allocator<TestNumber>>;
struct StdMapOfVectors
    : NestedCalls<std::map<TestNumber, NumberVector, std::less<>,
                           Allocator<std::pair<const TestNumber, NumberVector>>>> {
  static constexpr std::string_view kName = "std::map of vectors";
  static constexpr bool kOrdered = true;
};

using TestedContainers =
    std::tuple<StdMap, StdMultimap, StdUnorderedMap, StdUnorderedSet, StdSetOfTuples, StdVector,
               StdDeque, StdList, FlatMap, UnorderedFlatMap, RobinMap, StdMapOfStrings,
               StdUnorderedMapOfStrings, StdMapOfVectors>;

/// Calls act(type) for the container of that name, or for all whose names begin so. `type` is one
/// of those above.
template <class Act>
void for_each_tested(std::string_view name, Act act) {
  std::apply(
      [&](auto... types) {
        (
            [&] {
              if (decltype(types)::kName.starts_with(name)) act(types);
            }(),
            ...);
      },
      TestedContainers{});
}

}  // namespace perdix::detail::index::tips_of
