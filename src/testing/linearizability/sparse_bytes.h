// A copy of a region of PM, most of whose pages hold only zeros: these pages take no memory. A copy
// shares the pages of its source until one of the two is written to.
//
// Not thread-safe, nor are copies that share pages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

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

  Page& page_to_write(std::size_t number);

  std::size_t size_ = 0;
  std::vector<std::shared_ptr<Page>> pages_;  // nullptr: all zero
};

}  // namespace perdix::testing
