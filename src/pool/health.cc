#include "pool/health.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::pool {
namespace {

[[noreturn]] void throw_no_page(const char* what) {
  throw Error(Errc::io_error,
              fmt::format("can't {} a page for the state of a pool: {}; perdix needs Linux 4.14 or "
                          "later, and some memory",
                          what, std::strerror(errno)));
}

}  // namespace

Health::Owner Health::create() {
  void* const page =
      ::mmap(nullptr, sizeof(Health), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw_no_page("map");
  Owner health(new (page) Health());
  if (::madvise(page, sizeof(Health), MADV_WIPEONFORK) != 0) throw_no_page("keep from children");
  return health;
}

void Health::throw_unusable(const std::string& pool) const {
  if (forked()) {
    throw Error(Errc::forked,
                fmt::format("pool '{}' belongs to the process that opened it, of which this one is "
                            "a child; open pools after the fork (daemon(3) is one)",
                            pool));
  }
  if (page_lost()) {
    throw Error(Errc::io_error,
                fmt::format("the device did not give a page of pool '{}' (SIGBUS); close the pool, "
                            "check the device and its space, and open it again",
                            pool));
  }
  if (state() == State::file_lost) {
    throw Error(Errc::io_error,
                fmt::format("this program has closed the file of pool '{}', which it had not "
                            "opened, so the pool can only be read; close the pool and open it "
                            "again: what was written is there",
                            pool));
  }
  throw Error(Errc::io_error,
              fmt::format("pool '{}' could not be written to its device, so what the device holds "
                          "is unknown; close the pool, check the device and open it again",
                          pool));
}

void Health::Unmap::operator()(Health* health) const noexcept { ::munmap(health, sizeof(Health)); }

}  // namespace perdix::detail::pool
