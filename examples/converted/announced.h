// A field of a node whose every change Tips learns of: in C++ the way to convert an index whose
// code takes the caller's types, without a changed line.
#pragma once

namespace perdix::examples {

/// Reads as a T. Each assignment that changes it announces it before.
///
/// `Memory` is where it lies: perdix::tips::Volatile or Durable. It may lie elsewhere (in a node on
/// the stack, which a lookup makes) as long as it is not assigned to.
template <class Memory, class T>
class Announced {
 public:
  Announced() = default;
  /// The first value, in memory that no reader has.
  Announced(T value) : value_(value) {}  // NOLINT(google-explicit-constructor): as a T is
  Announced(const Announced&) = default;
  ~Announced() = default;

  Announced& operator=(T value) {
    if (value_ == value) return *this;
    Memory::add(&value_, sizeof value_);
    value_ = value;
    return *this;
  }
  Announced& operator=(const Announced& other) {  // NOLINT(cert-oop54-cpp): equal changes nothing
    return *this = other.value_;
  }

  operator T() const { return value_; }  // NOLINT(google-explicit-constructor): as a T is
  T operator->() const { return value_; }

 private:
  T value_{};
};

}  // namespace perdix::examples
