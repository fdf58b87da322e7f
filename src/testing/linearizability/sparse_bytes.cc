#include "testing/linearizability/sparse_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <perdix/error.h>

namespace perdix::testing {
namespace {

/// Compares the first word, and then each byte with the one before it.
bool is_zero(std::span<const std::byte> bytes) {
  const std::size_t head = std::min(bytes.size(), sizeof(std::uint64_t));
  const bool begins =
      std::ranges::all_of(bytes.first(head), [](std::byte b) { return b == std::byte{0}; });
  return begins && std::memcmp(bytes.data(), bytes.data() + head, bytes.size() - head) == 0;
}

/// Without touching pages of zeros.
void clear(std::span<std::byte> bytes) {
  if (!is_zero(bytes)) std::ranges::fill(bytes, std::byte{0});
}

/// A mapped file of this many bytes. All its space is allocated: a pool that finds holes would fill
/// them, and take another path than one that has never had any.
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

SparseBytes::SparseBytes(std::span<const std::byte> bytes)
    : size_(bytes.size()), pages_((size_ + kPage - 1) / kPage) {
  for (std::size_t at = 0; at < size_; at += kPage) {
    const auto page = bytes.subspan(at, std::min(kPage, size_ - at));
    if (!is_zero(page)) write(at, page);
  }
}

std::span<const std::byte> SparseBytes::read(std::size_t offset, std::size_t n) const {
  static constexpr Page kZeros{};
  const Page* const page = pages_[offset / kPage].get();
  return std::span(page != nullptr ? *page : kZeros).subspan(offset % kPage, n);
}

void SparseBytes::write(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kPage - offset % kPage);
    std::ranges::copy(bytes.first(n),
                      page_to_write(offset / kPage).begin() + static_cast<long>(offset % kPage));
    bytes = bytes.subspan(n);
    offset += n;
  }
}

SparseBytes::Page& SparseBytes::page_to_write(std::size_t number) {
  std::shared_ptr<Page>& page = pages_[number];
  if (page == nullptr) {
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

void SparseBytes::copy_to(std::span<std::byte> to) const {
  for (std::size_t at = 0; at < size_; at += kPage) {
    const auto page = to.subspan(at, std::min(kPage, size_ - at));
    if (pages_[at / kPage] == nullptr) {
      clear(page);
    } else {
      std::ranges::copy(read(at, page.size()), page.begin());
    }
  }
}

void SparseBytes::save(const std::filesystem::path& path) const {
  const OpenFile file(path, size_);
  copy_to(file.bytes());
}

}  // namespace perdix::testing
