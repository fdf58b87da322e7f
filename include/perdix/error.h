// Errors of the public interface: one exception type with a code to branch on and a sentence to
// show.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace perdix {

/// The kind of an error, for programs. The message of the `Error` says for people what went wrong.
enum class Errc {
  not_found,       ///< the pool file, or the index of that name, does not exist
  already_exists,  ///< create() found a file at the path
  not_a_pool,      ///< the file is empty, foreign, or its superblock is damaged in both copies
  truncated,       ///< the file is shorter than its superblock says
  newer_format,  ///< the pool was written by a later release with a format or feature unknown here
  older_format,  ///< the pool, or the index, has a format of before the first release, which is not
                 ///< read any more
  corrupt,       ///< a structure in the pool contradicts itself; nothing was changed
  wrong_engine,  ///< the index exists with another engine
  wrong_kind,    ///< the index exists with another kind of keys or values
  in_use,        ///< another process owns the pool, or the index is open already
  needs_check,   ///< stores may be missing: the machine went down while a pool that only survives
                 ///< process crashes was open, or the file is a copy of a pool that was not closed
  out_of_space,  ///< the disk or max_size is full; the operation changed nothing
  too_large,     ///< a key, value, name or size above its documented limit
  invalid_argument,  ///< an option or a name that has no meaning
  io_error,          ///< the operating system failed to read, write or sync the file
  unsupported,       ///< the engine has no such operation or is not known to this release, or the
                     ///< machine lacks a needed feature
  no_threads,        ///< the operating system gives the process no thread that a pool needs
  forked,            ///< a child process inherited the pool, which stays its parent's
  no_memory,         ///< the process has no memory for the call, which changed nothing
};

/// The name of a code as it is written in the enumeration, for example "in_use".
std::string_view to_string(Errc code) noexcept;

/// Thrown by every call of perdix that fails. The message names the file or index and says what to
/// do. An exception that a visitor throws leaves the scan unchanged.
class Error : public std::runtime_error {
 public:
  /// An error with a message that says what happened, to which file or index, and what to do.
  Error(Errc code, const std::string& message) : std::runtime_error(message), code_(code) {}

  /// Errc::no_memory, with a message that is not allocated.
  static Error no_memory();

  /// The kind of error, for programs.
  Errc code() const noexcept { return code_; }
  /// The message for people: what went wrong.
  const char* what() const noexcept override;

 private:
  Errc code_;
};

}  // namespace perdix
