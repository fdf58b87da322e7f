// A key or a value whose kind is known at run time: a number or a string of bytes. The suites use
// it, so that they compile once for all kinds. Datums of one kind are ordered as every engine
// orders them: numbers by value, bytes as unsigned, a prefix first.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <perdix/types.h>

namespace perdix::test {

/// Owns what it holds.
class Datum {
 public:
  Datum() = default;
  // NOLINTBEGIN(google-explicit-constructor): numbers and strings are passed directly
  Datum(std::uint64_t number) : held_(number) {}
  Datum(std::string bytes) : held_(std::move(bytes)) {}
  // NOLINTEND(google-explicit-constructor)

  /// 0, or no bytes: what sorts before all others of its kind.
  static Datum least(Kind kind) { return kind == Kind::u64 ? Datum(0) : Datum(std::string()); }

  Kind kind() const { return held_.index() == 0 ? Kind::u64 : Kind::bytes; }

  /// Each throws std::bad_variant_access for a datum of the other kind.
  std::uint64_t number() const { return std::get<0>(held_); }
  const std::string& bytes() const { return std::get<1>(held_); }

 private:
  std::variant<std::uint64_t, std::string> held_;
};

/// Refers to bytes of another, as the calls of an index and the visitors of its scans do.
class DatumView {
 public:
  // NOLINTBEGIN(google-explicit-constructor): numbers and strings are passed directly
  DatumView(std::uint64_t number) : held_(number) {}
  DatumView(std::string_view bytes) : held_(bytes) {}
  DatumView(const std::string& bytes) : held_(std::string_view(bytes)) {}
  DatumView(const Datum& datum) {
    if (datum.kind() == Kind::u64)
      held_ = datum.number();
    else
      held_ = std::string_view(datum.bytes());
  }
  // NOLINTEND(google-explicit-constructor)

  Kind kind() const { return held_.index() == 0 ? Kind::u64 : Kind::bytes; }

  /// Each throws std::bad_variant_access for a datum of the other kind.
  std::uint64_t number() const { return std::get<0>(held_); }
  std::string_view bytes() const { return std::get<1>(held_); }

  /// A copy that owns its bytes.
  Datum copy() const { return kind() == Kind::u64 ? Datum(number()) : Datum(std::string(bytes())); }

 private:
  std::variant<std::uint64_t, std::string_view> held_;
};

/// Data of different kinds are not equal.
bool operator==(DatumView left, DatumView right);
std::strong_ordering operator<=>(DatumView left, DatumView right);

/// As the interface of bytes (perdix::Index) takes it: numbers are eight big-endian bytes.
std::string encoded(DatumView datum);

/// For messages: short, printable, and long enough to tell data apart. Of bytes the first ones,
/// those that are not printable in hexadecimal, and the length if some are left.
std::string show(DatumView datum);

/// How GoogleTest prints them.
void PrintTo(const Datum& datum, std::ostream* out);
void PrintTo(const DatumView& datum, std::ostream* out);

}  // namespace perdix::test
