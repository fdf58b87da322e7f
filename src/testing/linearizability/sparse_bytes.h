// A copy of a region of PM, most of whose pages hold only zeros: those take no memory, and are not
// copied or written again with each image of a crash.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>

namespace perdix::testing {

class SparseBytes {
 public:
  SparseBytes() = default;
  explicit SparseBytes(std::span<const std::byte> bytes);

  std::size_t size() const noexcept { return size_; }

  /// Bytes that lie in one page, until it is written to.
  std::span<const std::byte> read(std::size_t offset, std::size_t n) const;
  void write(std::size_t offset, std::span<const std::byte> bytes);

  /// `to` has size() bytes.
  void copy_to(std::span<std::byte> to) const;

  /// Makes a file with these bytes, or changes what it holds: its space is used again, huge pages
  /// among it. All of it is allocated afterwards. Throws io_error.
  void save(const std::filesystem::path& path) const;

 private:
  static constexpr std::size_t kPage = 4096;
  using Page = std::array<std::byte, kPage>;

  std::size_t size_ = 0;
  std::map<std::size_t, Page> pages_;  // by number; all others are zero
};

}  // namespace perdix::testing
