// Pool files for the fuzzer: valid ones, and valid ones that its input has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace perdix::fuzz {

/// A sound pool with an index of each kind: one that was closed, and one whose process died in the
/// middle of an operation.
class PoolImages {
 public:
  explicit PoolImages(const std::filesystem::path& folder);

  /// Writes the file that the input describes. The first byte chooses:
  ///   bit 0  the pool that was closed, or the other
  ///   bit 1  whether the superblock's checksums are made right again
  ///   bit 2  whether the rest of the input is the file itself, instead of a list of changes
  ///   bit 3  whether the file ends at a place that the next two bytes give, in blocks of 4 KiB
  ///   bit 4  whether checksums of the allocator's records are made right again
  /// A change is eight bytes: how to change a word, where in which part of the pool, and a number.
  void write(std::span<const std::uint8_t> input, const std::filesystem::path& path) const;

 private:
  /// A sound file, and the offsets of what is not zero in each of its parts, since a change of an
  /// unused word is hardly ever noticed.
  struct Base {
    std::vector<std::byte> bytes;
    std::vector<std::vector<std::uint64_t>> parts;
  };

  static Base base_of(std::vector<std::byte> bytes);
  static void change(std::vector<std::byte>& bytes, const Base& base,
                     std::span<const std::uint8_t, 8> how);

  Base closed_;
  Base killed_;
};

}  // namespace perdix::fuzz
