#include "pm/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace perdix::detail::pm {

StandardDescriptors::StandardDescriptors() noexcept {
  for (int number = 0; number < static_cast<int>(taken_.size()); ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    const int lowest = ::open("/", O_PATH | O_CLOEXEC);
    taken_[static_cast<std::size_t>(number)] = lowest == number;
    // Another thread was faster.
    if (lowest >= 0 && lowest != number) ::close(lowest);
  }
}

StandardDescriptors::~StandardDescriptors() {
  for (int number = 0; number < static_cast<int>(taken_.size()); ++number) {
    if (taken_[static_cast<std::size_t>(number)]) ::close(number);
  }
}

int open_above_standard(const char* path, int flags, mode_t mode) noexcept {
  const StandardDescriptors taken;
  const int number = ::open(path, flags, mode);
  if (number < 0 || number > STDERR_FILENO) return number;
  // Another thread has closed it meanwhile.
  const int above = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(number);
  return above;
}

Descriptor::Descriptor(int number) noexcept {
  struct stat file {};
  if (::fstat(number, &file) != 0) return;
  number_ = number;
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

bool Descriptor::is_ours() const noexcept {
  struct stat file {};
  return number_ >= 0 && ::fstat(number_, &file) == 0 && file.st_dev == device_ &&
         file.st_ino == inode_;
}

void Descriptor::close() noexcept {
  if (is_ours()) ::close(number_);
  *this = Descriptor();
}

}  // namespace perdix::detail::pm
