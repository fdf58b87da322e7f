// The options of an engine as a table with a row for each member of its struct, for example
// CcehOptions. From the table come
//
//   require_valid()   whether the members are in their ranges
//   options_of()      the struct for an index that is opened by name (IndexOptions)
//   describe()        what Index::options() says, and with it the tool and its documentation
//
// An engine says its table in its options.h. What a row says of the range is part of messages.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/types.h>

namespace perdix::detail::index {

/// How values of a type are written by name; see IndexOptions::named. `kType` is what
/// Index::options() says of the type, and `kForm` what a message says of a text that is none.
template <class T>
struct OptionText;

template <>
struct OptionText<bool> {
  static constexpr std::string_view kType = "true or false", kForm = kType;
  static std::optional<bool> read(std::string_view text);
  static std::string write(bool value);
};

template <>
struct OptionText<std::uint64_t> {
  static constexpr std::string_view kType = "integer";
  static constexpr std::string_view kForm = "an integer below 2^64, which may end in K, M, G or T";
  static std::optional<std::uint64_t> read(std::string_view text);
  static std::string write(std::uint64_t value);
};

template <>
struct OptionText<std::uint32_t> {
  static constexpr std::string_view kType = OptionText<std::uint64_t>::kType;
  static constexpr std::string_view kForm = "an integer below 2^32, which may end in K, M, G or T";
  static std::optional<std::uint32_t> read(std::string_view text);
  static std::string write(std::uint32_t value) { return OptionText<std::uint64_t>::write(value); }
};

template <>
struct OptionText<double> {
  static constexpr std::string_view kType = "number", kForm = "a number";
  static std::optional<double> read(std::string_view text);
  static std::string write(double value);
};

template <>
struct OptionText<Technique> {
  static constexpr std::string_view kType = "none, b, bo or boc", kForm = kType;
  static std::optional<Technique> read(std::string_view text);
  static std::string write(Technique value);
};

/// A row: one member of `Options`.
template <class Options>
struct EngineOption {
  std::string_view name;
  std::string_view type;
  std::string_view form;     ///< what a text must be
  std::string_view range;    ///< what a value must be; empty if any can be
  std::string_view meaning;  ///< a phrase
  bool (*valid)(const Options& options);
  bool (*read)(std::string_view text, Options& options);  ///< false: not of that type
  std::string (*write)(const Options& options);
};

template <class Options, std::size_t kRows>
using OptionTable = std::array<EngineOption<Options>, kRows>;

/// The struct and the type of a member.
template <auto kMember>
struct MemberOf;
template <class Options, class T, T Options::*kMember>
struct MemberOf<kMember> {
  using Struct = Options;
  using Type = T;
};

/// A row for a member. `valid` says whether it is in its range.
template <auto kMember, class Options = typename MemberOf<kMember>::Struct>
constexpr EngineOption<Options> option(
    std::string_view name, std::string_view meaning, std::string_view range = {},
    std::type_identity_t<bool (*)(const Options&)> valid = [](const Options&) { return true; }) {
  using Text = OptionText<typename MemberOf<kMember>::Type>;
  return {name,
          Text::kType,
          Text::kForm,
          range,
          meaning,
          valid,
          [](std::string_view text, Options& options) {
            const auto value = Text::read(text);
            if (value) options.*kMember = *value;
            return value.has_value();
          },
          [](const Options& options) { return Text::write(options.*kMember); }};
}

/// The row of the option that all engines have.
template <class Options>
constexpr EngineOption<Options> resume_in_background() {
  return option<&Options::resume_in_background>(
      "resume_in_background", "what lies in DRAM comes back after a restart before it is used");
}

/// The row of the budget of an engine whose write buffers need a technique besides.
template <class Options>
constexpr EngineOption<Options> dram_budget_of_technique() {
  return option<&Options::dram_budget>(
      "dram_budget", "bytes of DRAM for write buffers, which need a technique; 0: none");
}

/// The row of what is done with dram_budget.
template <class Options>
constexpr EngineOption<Options> technique() {
  return option<&Options::technique>(
      "technique", "what is done with that budget", {},
      [](const Options& options) { return options.technique <= Technique::boc; });
}

/// Stands for a value of any member.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): in braces
};

/// Whether a table has a row for each member: an aggregate of that many has no place for one more.
template <class Options, std::size_t kRows>
constexpr bool is_complete(const OptionTable<Options, kRows>&) {
  return []<std::size_t... kRow>(std::index_sequence<kRow...>) {
    return requires { Options{(void(kRow), AnyMember())...}; }
    &&!requires { Options{(void(kRow), AnyMember())..., AnyMember()}; };
  }
  (std::make_index_sequence<kRows>());
}

[[noreturn]] void throw_out_of_range(std::string_view engine, std::string_view option,
                                     std::string_view value, std::string_view range);
[[noreturn]] void throw_unreadable(std::string_view engine, std::string_view option,
                                   std::string_view text, std::string_view form,
                                   std::string_view range);
/// `names`: of those that the engine has.
[[noreturn]] void throw_unknown_option(std::string_view engine, std::string_view option,
                                       const std::vector<std::string_view>& names);

/// Throws invalid_argument, with the name of the option, unless all are in their ranges.
template <class Options, std::size_t kRows>
void require_valid(const OptionTable<Options, kRows>& table, std::string_view engine,
                   const Options& options) {
  for (const auto& row : table)
    if (!row.valid(options))
      throw_out_of_range(engine, row.name, row.write(options),
                         row.range.empty() ? row.type : row.range);
}

/// The options of an index that is opened by name. Throws invalid_argument, with the name of the
/// option, for one that the engine does not have, and for a value that is not of its type or not in
/// its range.
template <class Options, std::size_t kRows>
Options options_of(const OptionTable<Options, kRows>& table, std::string_view engine,
                   const IndexOptions& wanted) {
  Options options;
  options.resume_in_background = wanted.resume_in_background;
  for (const auto& [name, text] : wanted.named) {
    const auto row = std::ranges::find(table, name, &EngineOption<Options>::name);
    if (row == table.end()) {
      std::vector<std::string_view> names;
      for (const auto& there : table) names.push_back(there.name);
      throw_unknown_option(engine, name, names);
    }
    if (!row->read(text, options)) throw_unreadable(engine, name, text, row->form, row->range);
  }
  require_valid(table, engine, options);
  return options;
}

template <class Options, std::size_t kRows>
std::vector<OptionInfo> describe(const OptionTable<Options, kRows>& table) {
  std::vector<OptionInfo> all;
  for (const auto& row : table)
    all.push_back({std::string(row.name), std::string(row.type), row.write(Options{}),
                   std::string(row.range), std::string(row.meaning)});
  return all;
}

}  // namespace perdix::detail::index
