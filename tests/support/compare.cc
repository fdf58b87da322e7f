#include "support/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace perdix::test {
namespace {

std::string show_value(const std::optional<Datum>& value) {
  return value ? show(*value) : "nothing";
}

/// Each "" if equal, else both.
std::string differ(const std::string& what, const std::optional<Datum>& expected,
                   const std::optional<Datum>& actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what, show_value(expected), show_value(actual));
}

std::string differ_count(const std::string& what, std::uint64_t expected, std::uint64_t actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what, expected, actual);
}

std::string differ_answer(const std::string& what, bool expected, bool actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what, expected, actual);
}

std::string differ_rows(const std::string& what, const Rows& expected, const Rows& actual) {
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (e == expected.end() && a == actual.end()) return {};
  const auto text = [](Rows::const_iterator row, Rows::const_iterator end) {
    return row == end ? "the end" : show(row->first) + " = " + show(row->second);
  };
  return fmt::format("{}: row {} of {}: expected {}, got {}", what, e - expected.begin(),
                     expected.size(), text(e, expected.end()), text(a, actual.end()));
}

}  // namespace

std::string problems_of(const CheckReport& report) {
  return fmt::format("{}", fmt::join(report.problems, "; "));
}

std::string compare_scan(const AnyIndex& index, const Model& model, DatumView from,
                         std::size_t limit) {
  const std::string what = fmt::format("scan({}, {})", show(from), limit);
  return differ_rows(what, model.scan(from, limit), index.scan(from, limit));
}

std::string compare_step(AnyIndex& index, Model& model, const Step& step, const Datum& key,
                         const Datum& value) {
  const std::string what = fmt::format("{}({})", to_string(step.op), show(key));
  switch (step.op) {
    case Op::put:
      model.put(key, value);
      index.put(key, value);
      return differ(what, model.get(key), index.get(key));
    case Op::insert: return differ_answer(what, model.insert(key, value), index.insert(key, value));
    case Op::update: return differ_answer(what, model.update(key, value), index.update(key, value));
    case Op::erase: return differ_answer(what, model.erase(key), index.erase(key));
    case Op::get: return differ(what, model.get(key), index.get(key));
    case Op::contains: return differ_answer(what, model.contains(key), index.contains(key));
    case Op::scan:
      if (index.ordered()) return compare_scan(index, model, key, step.limit);
      return differ(what, model.get(key), index.get(key));
  }
  return {};
}

std::string compare_summary(const AnyIndex& index, const Model& model) {
  const CheckReport report = index.check();
  if (!report.ok()) return "check(): " + problems_of(report);
  const std::uint64_t size = model.size();
  if (auto text = differ_count("check().pairs", size, report.pairs); !text.empty()) return text;
  if (auto text = differ_count("size()", size, index.size()); !text.empty()) return text;
  return differ_count("stats().pairs", size, index.stats().pairs);
}

std::string compare_all(const AnyIndex& index, const Model& model, const std::vector<Datum>& keys) {
  if (auto text = compare_summary(index, model); !text.empty()) return text;
  if (index.ordered()) {
    const Datum least = Datum::least(index.key_kind());
    auto text = compare_scan(index, model, least, std::numeric_limits<std::size_t>::max());
    if (!text.empty()) return text;
  }
  for (const Datum& key : keys) {
    auto text = differ(fmt::format("get({})", show(key)), model.get(key), index.get(key));
    if (!text.empty()) return text;
    if (model.contains(key) != index.contains(key)) {
      return fmt::format("contains({}) and get() disagree", show(key));
    }
  }
  return {};
}

}  // namespace perdix::test
