// Runs operations on an index and the reference map side by side. Every function returns what
// differs in words, or an empty string.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/engines.h"
#include "support/model.h"
#include "support/show.h"
#include "support/values.h"
#include "support/workload.h"

namespace perdix::test {

/// "" if equal, else both.
template <class T>
std::string differ(const std::string& what, const T& expected, const T& actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what, show(expected), show(actual));
}

/// A report's problems in one string.
inline std::string problems_of(const CheckReport& report) {
  return fmt::format("{}", fmt::join(report.problems, "; "));
}

template <class Rows>
std::string differ_rows(const std::string& what, const Rows& expected, const Rows& actual) {
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (e == expected.end() && a == actual.end()) return {};
  const auto text = [](auto row, auto end) {
    return row == end ? "the end" : show(row->first) + " = " + show(row->second);
  };
  return fmt::format("{}: row {} of {}: expected {}, got {}", what, e - expected.begin(),
                     expected.size(), text(e, expected.end()), text(a, actual.end()));
}

template <class I, class M>
std::string compare_scan(const I& index, const M& model, typename I::Key from, std::size_t limit) {
  const std::string what = fmt::format("scan({}, {})", show(from), limit);
  return differ_rows(what, model.scan(from, limit), index.scan(from, limit));
}

/// Runs one operation on both; what they return must be the same.
template <class I, class K, class V>
std::string compare_step(I& index, Model<K, V>& model, const Step& step, const K& key,
                         const V& value) {
  const std::string what = fmt::format("{}({})", to_string(step.op), show(key));
  const auto same = [&](bool expected, bool actual) {
    return expected == actual ? std::string()
                              : fmt::format("{}: expected {}, got {}", what, expected, actual);
  };
  switch (step.op) {
    case Op::put:
      model.put(key, value);
      index.put(key, value);
      return differ(what, model.get(key), index.get(key));
    case Op::insert: return same(model.insert(key, value), index.insert(key, value));
    case Op::update: return same(model.update(key, value), index.update(key, value));
    case Op::erase: return same(model.erase(key), index.erase(key));
    case Op::get: return differ(what, model.get(key), index.get(key));
    case Op::contains: return same(model.contains(key), index.contains(key));
    case Op::scan:
      if constexpr (OrderedIndex<I>) return compare_scan(index, model, key, step.limit);
      return differ(what, model.get(key), index.get(key));
  }
  return {};
}

/// Sizes and the index's own check.
template <class I, class M>
std::string compare_summary(const I& index, const M& model) {
  const CheckReport report = index.check();
  if (!report.ok()) return "check(): " + problems_of(report);
  const std::uint64_t size = model.size();
  if (auto text = differ("check().pairs", size, report.pairs); !text.empty()) return text;
  if (auto text = differ("size()", size, index.size()); !text.empty()) return text;
  return differ("stats().pairs", size, index.stats().pairs);
}

/// Compares everything: sizes, check(), a full scan, and a lookup of each of `keys`, which should
/// hold all keys that may be in the index and some that are not.
template <class I, class K, class V>
std::string compare_all(const I& index, const Model<K, V>& model, std::span<const K> keys) {
  if (auto text = compare_summary(index, model); !text.empty()) return text;
  if constexpr (OrderedIndex<I>) {
    auto text = compare_scan(index, model, K{}, std::numeric_limits<std::size_t>::max());
    if (!text.empty()) return text;
  }
  for (const K& key : keys) {
    auto text = differ(fmt::format("get({})", show(key)), model.get(key), index.get(key));
    if (!text.empty()) return text;
    if (model.contains(key) != index.contains(key)) {
      return fmt::format("contains({}) and get() disagree", show(key));
    }
  }
  return {};
}

template <class I, class K, class V>
std::string compare_all(const I& index, const Model<K, V>& model, const std::vector<K>& keys) {
  return compare_all(index, model, std::span<const K>(keys));
}

}  // namespace perdix::test
