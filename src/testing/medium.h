// The simulated device: memory behind a file descriptor, so that a pool can be opened on it by a
// path, and bytes that the explorer rewrites between two openings.
//
// Not thread-safe; nothing may be open on it while the explorer writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace perdix::testing {

class Medium {
 public:
  /// `size` bytes of zeros, all allocated. Throws perdix::Error if the system has no memory for
  /// them.
  explicit Medium(std::uint64_t size);
  ~Medium();
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;

  std::byte* bytes() const noexcept { return bytes_; }
  std::uint64_t size() const noexcept { return size_; }

  /// A path that opens the same memory as a regular file.
  std::filesystem::path path() const;

  /// Makes the file empty. Until it has its length again, bytes() must not be touched.
  void empty();

  /// Gives the file its length back, should an opening have cut or grown it. True if it had
  /// changed; bytes that were cut off are zero.
  bool restore_length();

 private:
  int fd_;
  std::uint64_t size_;
  std::byte* bytes_;
};

}  // namespace perdix::testing
