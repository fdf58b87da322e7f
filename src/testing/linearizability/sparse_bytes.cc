#include "testing/linearizability/sparse_bytes.h"

#include <fcntl.h>
#include <perdix/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace perdix::testing {
namespace {

/// Compares the first word, and then each byte with the one before it.
bool is_zero(std::span<const std::byte> bytes) {
  const std::size_t head = std::min(bytes.size(), sizeof(std::uint64_t));
  const bool begins =
      std::ranges::all_of(bytes.first(head), [](std::byte b) { return b == std::byte{0}; });
  return begins && std::memcmp(bytes.data(), bytes.data() + head, bytes.size() - head) == 0;
}

void clear(std::span<std::byte> bytes) {
  if (!is_zero(bytes)) std::ranges::fill(bytes, std::byte{0});
}

/// A file of so many bytes, mapped. All its space is allocated: a pool that finds holes would fill
/// them, and go another way than one that has never had any.
class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, std::size_t size) : size_(size) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const auto length = static_cast<off_t>(size);
    if (fd >= 0 && ::ftruncate(fd, length) == 0 && ::posix_fallocate(fd, 0, length) == 0)
      mapped_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) ::close(fd);
    if (mapped_ == MAP_FAILED) throw Error(Errc::io_error, "can't write " + path.string());
  }
  ~OpenFile() { ::munmap(mapped_, size_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(mapped_), size_}; }

 private:
  std::size_t size_;
  void* mapped_ = MAP_FAILED;
};

}  // namespace

SparseBytes::SparseBytes(std::span<const std::byte> bytes) : size_(bytes.size()) {
  for (std::size_t at = 0; at < size_; at += kPage) {
    const auto page = bytes.subspan(at, std::min(kPage, size_ - at));
    if (!is_zero(page)) write(at, page);
  }
}

std::span<const std::byte> SparseBytes::read(std::size_t offset, std::size_t n) const {
  static constexpr Page kZeros{};
  const auto found = pages_.find(offset / kPage);
  const Page& page = found != pages_.end() ? found->second : kZeros;
  return std::span(page).subspan(offset % kPage, n);
}

void SparseBytes::write(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kPage - offset % kPage);
    Page& page = pages_[offset / kPage];
    std::ranges::copy(bytes.first(n), page.begin() + static_cast<long>(offset % kPage));
    bytes = bytes.subspan(n);
    offset += n;
  }
}

void SparseBytes::copy_to(std::span<std::byte> to) const {
  std::ranges::fill(to, std::byte{0});
  for (const auto& [number, page] : pages_) {
    const auto at = to.subspan(number * kPage);
    std::ranges::copy(std::span(page).first(std::min(kPage, at.size())), at.begin());
  }
}

void SparseBytes::save(const std::filesystem::path& path) const {
  const OpenFile file(path, size_);
  std::size_t at = 0;
  const auto fill_to = [&](std::size_t end) {
    for (; at < end; at += kPage) clear(file.bytes().subspan(at, std::min(kPage, end - at)));
  };
  for (const auto& [number, page] : pages_) {
    fill_to(number * kPage);
    const auto to = file.bytes().subspan(at, std::min(kPage, size_ - at));
    std::ranges::copy(std::span(page).first(to.size()), to.begin());
    at += to.size();
  }
  fill_to(size_);
}

}  // namespace perdix::testing
