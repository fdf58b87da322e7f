#include "support/compare.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace perdix::test {
namespace {

std::string show_value(const std::optional<Datum>& value) {
  return value ? show(*value) : "nothing";
}

/// What differs. `what` says in words what was asked; called only if something does, since almost
/// nothing ever does and messages cost more than the calls that they are about.
template <class What>
std::string differ(const What& what, const std::optional<Datum>& expected,
                   const std::optional<Datum>& actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what(), show_value(expected), show_value(actual));
}

template <class What>
std::string differ(const What& what, std::uint64_t expected, std::uint64_t actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what(), expected, actual);
}

template <class What>
std::string differ(const What& what, bool expected, bool actual) {
  if (expected == actual) return {};
  return fmt::format("{}: expected {}, got {}", what(), expected, actual);
}

template <class What>
std::string differ(const What& what, const Rows& expected, const Rows& actual) {
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (e == expected.end() && a == actual.end()) return {};
  const auto text = [](Rows::const_iterator row, Rows::const_iterator end) {
    return row == end ? "the end" : show(row->first) + " = " + show(row->second);
  };
  return fmt::format("{}: row {} of {}: expected {}, got {}", what(), e - expected.begin(),
                     expected.size(), text(e, expected.end()), text(a, actual.end()));
}

}  // namespace

bool make_change(AnyIndex& index, Op op, DatumView key, DatumView value) {
  switch (op) {
    case Op::put: index.put(key, value); return true;
    case Op::insert: return index.insert(key, value);
    case Op::update: return index.update(key, value);
    default: return index.erase(key);
  }
}

std::string problems_of(const CheckReport& report) {
  return fmt::format("{}", fmt::join(report.problems, "; "));
}

std::string compare_scan(const AnyIndex& index, const Model& model, DatumView from,
                         std::size_t limit) {
  const auto what = [&] { return fmt::format("scan({}, {})", show(from), limit); };
  return differ(what, model.scan(from, limit), index.scan(from, limit));
}

std::string compare_pairs(const AnyIndex& index, const Model& model) {
  Rows shown;
  index.for_each([&](DatumView key, DatumView value) {
    shown.emplace_back(key.copy(), value.copy());
    return true;
  });
  std::sort(shown.begin(), shown.end());
  return differ([] { return "for_each()"; }, Rows(model.begin(), model.end()), shown);
}

std::string compare_step(AnyIndex& index, Model& model, const Step& step, const Datum& key,
                         const Datum& value) {
  const auto what = [&] { return fmt::format("{}({})", to_string(step.op), show(key)); };
  switch (step.op) {
    case Op::put:
      model.put(key, value);
      index.put(key, value);
      return differ(what, model.get(key), index.get(key));
    case Op::insert: return differ(what, model.insert(key, value), index.insert(key, value));
    case Op::update: return differ(what, model.update(key, value), index.update(key, value));
    case Op::erase: return differ(what, model.erase(key), index.erase(key));
    case Op::get: return differ(what, model.get(key), index.get(key));
    case Op::contains: return differ(what, model.contains(key), index.contains(key));
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
  const auto compare = [&](std::string_view what, std::uint64_t actual) {
    return differ([&] { return what; }, size, actual);
  };
  if (auto text = compare("check().pairs", report.pairs); !text.empty()) return text;
  if (auto text = compare("size()", index.size()); !text.empty()) return text;
  return compare("stats().pairs", index.stats().pairs);
}

std::string compare_all(const AnyIndex& index, const Model& model, const std::vector<Datum>& keys) {
  if (auto text = compare_summary(index, model); !text.empty()) return text;
  if (index.ordered()) {
    const Datum least = Datum::least(index.key_kind());
    auto text = compare_scan(index, model, least, std::numeric_limits<std::size_t>::max());
    if (!text.empty()) return text;
  }
  if (auto text = compare_pairs(index, model); !text.empty()) return text;
  for (const Datum& key : keys) {
    auto text =
        differ([&] { return fmt::format("get({})", show(key)); }, model.get(key), index.get(key));
    if (!text.empty()) return text;
    if (model.contains(key) != index.contains(key)) {
      return fmt::format("contains({}) and get() disagree", show(key));
    }
  }
  return {};
}

}  // namespace perdix::test
