#include "storm/faults.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "storm/descriptors.h"
#include "storm/device.h"

namespace perdix::test::storm::faults {
namespace {

/// Plain data, so that a thread has it before it allocates anything.
struct ThreadState {
  Fault fault = Fault::none;
  bool lasting = false;
  bool struck = false;
  bool spared = false;
  bool exempt = false;
  unsigned left = 0;
};

thread_local constinit ThreadState mine;

// Global, since what is interposed has no object: the C library's functions are the process's.
constinit std::atomic<Fault> others_fault{Fault::none};
constinit std::atomic<unsigned> others_left{0};
constinit std::atomic<std::uint64_t> injected_calls{0};
constinit std::atomic<bool> bad_alloc_accepted{false};

bool strikes_this_thread(Fault fault) {
  if (mine.fault != fault || mine.spared) return false;
  if (mine.left > 1) {
    --mine.left;
    return false;
  }
  if (mine.left == 0 && !mine.lasting) return false;
  mine.left = mine.lasting ? 1 : 0;
  mine.struck = true;
  return true;
}

bool strikes_others(Fault fault) {
  if (mine.exempt || mine.spared || others_fault.load(std::memory_order_relaxed) != fault)
    return false;
  return others_left.load(std::memory_order_relaxed) > 0 && others_left.fetch_sub(1) == 1;
}

/// Whether the call at hand fails.
bool strikes(Fault fault) {
  if (!strikes_this_thread(fault) && !strikes_others(fault)) return false;
  injected_calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// liburcu ends the process if it gets no memory for a thread that it sees for the first time, and
/// nothing that uses it can help that.
bool from_liburcu(const void* caller) {
  Dl_info info{};
  return ::dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "urcu") != nullptr;
}

/// libpmem2 gives pages back by mapping nothing over them. The kernel refuses that only at the
/// limit of mappings, and below it once they are gone: no such call fails twice.
bool frees(int protection, int flags) {
  return protection == PROT_NONE && (flags & MAP_FIXED) != 0 && (flags & MAP_ANONYMOUS) != 0;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0) bytes = 1;
  if (strikes(Fault::memory)) return nullptr;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

Armed::Armed(Fault fault, unsigned nth, bool lasting) {
  mine.struck = false;
  mine.lasting = lasting;
  mine.left = nth;
  mine.fault = fault;
}

Armed::~Armed() { mine.fault = Fault::none; }

bool Armed::struck() const { return mine.struck; }

Spared::Spared() : before_(mine.spared) { mine.spared = true; }
Spared::~Spared() { mine.spared = before_; }

void arm_others(Fault fault, unsigned nth) {
  others_fault = Fault::none;
  others_left = nth;
  others_fault = fault;
}

void exempt_this_thread() { mine.exempt = true; }

void accept_bad_alloc() { bad_alloc_accepted = true; }

bool accepts_bad_alloc() { return bad_alloc_accepted; }

std::uint64_t injected() { return injected_calls; }

}  // namespace perdix::test::storm::faults

namespace descriptors = perdix::test::storm::descriptors;
namespace device = perdix::test::storm::device;
namespace faults = perdix::test::storm::faults;
using perdix::test::storm::Fault;

void* operator new(std::size_t bytes) { return faults::allocate_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return faults::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return faults::allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return faults::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {

void* mmap(void* address, size_t n, int protection, int flags, int fd, off_t offset) noexcept {
  if (!faults::frees(protection, flags) && faults::strikes(Fault::map) &&
      !faults::from_liburcu(__builtin_return_address(0))) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, n, protection, flags, fd, offset));
}

int mprotect(void* address, size_t n, int protection) noexcept {
  if (faults::strikes(Fault::map)) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_mprotect, address, n, protection));
}

int posix_fallocate(int fd, off_t begin, off_t n) {
  if (faults::strikes(Fault::space)) return ENOSPC;
  const descriptors::OldCalls calls;
  if (calls.have_lost(fd)) return EBADF;
  return ::syscall(SYS_fallocate, fd, 0, begin, n) == 0 ? 0 : errno;
}

int ftruncate(int fd, off_t size) noexcept {
  const descriptors::OldCalls calls;
  if (!calls.have_lost(fd)) return static_cast<int>(::syscall(SYS_ftruncate, fd, size));
  errno = EBADF;
  return -1;
}

int msync(void* address, size_t n, int flags) {
  const bool fails = faults::strikes(Fault::sync);
  const faults::Spared spared;
  device::on_sync(address, n, !fails);
  if (!fails) return static_cast<int>(::syscall(SYS_msync, address, n, flags));
  errno = EIO;
  return -1;
}

int fsync(int fd) {
  const bool fails = faults::strikes(Fault::sync);
  const faults::Spared spared;
  device::on_sync(fd, !fails);
  if (!fails) return static_cast<int>(::syscall(SYS_fsync, fd));
  errno = EIO;
  return -1;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (faults::strikes(Fault::thread)) return EAGAIN;
  static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}

}  // extern "C"
