// A file or standard input, read in blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace perdix::tool {

/// Where rows come from. Not thread-safe.
class Source {
 public:
  virtual ~Source() = default;

  /// Fills the buffer; 0 at the end. Throws perdix::Error io_error.
  virtual std::size_t read(char* buffer, std::size_t size) = 0;
};

class FileSource final : public Source {
 public:
  /// Opens a file for reading, or takes standard input if the path is "-". Reading ends early, as
  /// if the file ended, once `stop` is true. Throws perdix::Error not_found or io_error.
  FileSource(const std::string& path, const std::atomic<bool>& stop);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::size_t read(char* buffer, std::size_t size) override;

  const std::string& name() const noexcept { return name_; }
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

  /// Size of a regular file; 0 if it isn't one.
  std::uint64_t size() const noexcept { return size_; }

 private:
  std::string name_;
  const std::atomic<bool>& stop_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace perdix::tool
