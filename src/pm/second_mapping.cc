#include "pm/second_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pm/descriptor.h"
#include "pm/no_fork.h"

namespace perdix::detail::pm {
namespace {

/// The mapping grows by this, also beyond the file's end, where it is not used.
constexpr std::size_t kUnit = std::size_t{64} << 20;

constexpr std::size_t whole(std::size_t bytes) noexcept {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

std::unique_ptr<SecondMapping> SecondMapping::create(const File& file, const std::byte* base) {
  const NoFork no_fork;
  const StandardDescriptors taken;
  const std::string name = fmt::format("/proc/self/fd/{}", file.fd());
  Descriptor second(open_above_standard(name.c_str(), O_RDWR | O_CLOEXEC));
  const bool ours = file.descriptor().is_same_file(second);
  const std::size_t size = whole(file.size());
  // PROT_NONE: pages are not read, and a process that locks its memory locks none of them.
  void* const address =
      ours ? ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, second.number(), 0) : MAP_FAILED;
  second.close();
  if (address == MAP_FAILED) return nullptr;
  std::unique_ptr<SecondMapping> mapping(new SecondMapping(base, address, size));
  return ::madvise(address, size, MADV_DONTFORK) == 0 ? std::move(mapping) : nullptr;
}

SecondMapping::~SecondMapping() { ::munmap(address_, size_); }

int SecondMapping::sync(void* begin, std::size_t bytes) noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(begin) - base_);
  if (offset + bytes > size_) {
    const std::size_t size = whole(offset + bytes);
    void* const grown = ::mremap(address_, size_, size, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) return ENOMEM;
    address_ = static_cast<std::byte*>(grown);
    size_ = size;
  }
  return ::msync(address_ + offset, bytes, MS_SYNC) == 0 ? 0 : errno;
}

}  // namespace perdix::detail::pm
