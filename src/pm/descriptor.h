// File descriptors of the library, in a program that does with descriptors what it likes.
//
// A program may run with its standard input, output and error closed, as daemons do. A file that
// then got one of their numbers would be written over by the next line that anything prints. So
// the library opens files only while these numbers are taken (StandardDescriptors).
//
// A program may also close a descriptor that is not its own: all of them when it becomes a daemon,
// or one of its own twice. The next file that it opens gets the number. So each use of a descriptor
// that is kept begins with the question whether it still leads to the file that was opened
// (Descriptor::is_ours). A mapping needs no descriptor, and goes on.
//
// Thread-safe. What happens between the question and the use can't be excluded.
#pragma once

#include <sys/types.h>

#include <array>

namespace perdix::detail::pm {

/// As long as it lives, the standard descriptors that the program has closed are taken, by ones
/// that can be neither read nor written: so that no file which is opened meanwhile gets their
/// number. Where the process has no descriptors left it does nothing, and nothing can be opened.
/// Cost: three system calls.
class StandardDescriptors {
 public:
  StandardDescriptors() noexcept;
  ~StandardDescriptors();
  StandardDescriptors(const StandardDescriptors&) = delete;
  StandardDescriptors& operator=(const StandardDescriptors&) = delete;

 private:
  std::array<bool, 3> taken_{};  // by this one
};

/// open(2), for a descriptor above those of standard input, output and error.
int open_above_standard(const char* path, int flags, mode_t mode = 0) noexcept;

/// A descriptor and the file that it led to when it was opened. A value: copies mean the same one.
class Descriptor {
 public:
  /// None.
  Descriptor() noexcept = default;

  /// Of a file that was just opened.
  explicit Descriptor(int number) noexcept;

  int number() const noexcept { return number_; }

  /// Whether the descriptor is open and leads to the same file as at first. Async-signal-safe.
  bool is_ours() const noexcept;

  /// Whether both led to the same file when they were opened.
  bool is_same_file(const Descriptor& other) const noexcept {
    return number_ >= 0 && other.number_ >= 0 && device_ == other.device_ && inode_ == other.inode_;
  }

  /// Closes the descriptor if it is ours, and becomes none. Async-signal-safe.
  void close() noexcept;

  friend bool operator==(const Descriptor&, const Descriptor&) noexcept = default;

 private:
  int number_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace perdix::detail::pm
