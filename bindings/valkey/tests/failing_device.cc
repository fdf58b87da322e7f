// A device that fails, for tests: a library that is loaded before a server. Calls that write a pool
// to its device, or give it space there, fail while a file of this name exists:
//
//   <pool>.eio      they fail with EIO, as those of a broken disk
//   <pool>.enospc   those that need space fail with ENOSPC, as those of a full disk
//
// PERDIX_FAILING_POOL names the pool. The server's own files are not concerned, since only the pool
// is mapped and given space in advance.
//
// dlopen() is also here. Valkey binds a module to the C library first (RTLD_DEEPBIND), past all
// that is loaded before the server, sanitizers too. Here it does not.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

bool is_there(const char* ending) {
  const char* pool = std::getenv("PERDIX_FAILING_POOL");
  char path[4096];
  if (pool == nullptr) return false;
  std::snprintf(path, sizeof path, "%s.%s", pool, ending);
  return ::access(path, F_OK) == 0;
}

/// Whether the descriptor is that of the pool.
bool is_pool(int descriptor) {
  const char* path = std::getenv("PERDIX_FAILING_POOL");
  struct stat pool {};
  struct stat file {};
  return path != nullptr && ::stat(path, &pool) == 0 && ::fstat(descriptor, &file) == 0 &&
         pool.st_dev == file.st_dev && pool.st_ino == file.st_ino;
}

int fail(int error) {
  errno = error;
  return -1;
}

int allocate(int descriptor, int mode, off_t begin, off_t size) {
  if (is_pool(descriptor)) {
    if (is_there("enospc")) return fail(ENOSPC);
    if (is_there("eio")) return fail(EIO);
  }
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, begin, size));
}

}  // namespace

extern "C" {

void* dlopen(const char* path, int flags) {
  using Open = void* (*)(const char*, int);
  static const auto open = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, "dlopen"));
  return open(path, flags & ~RTLD_DEEPBIND);
}

// The C library's msync.
int sync_mapping(void* begin, std::size_t size, int flags) __asm__("msync");

int sync_mapping(void* begin, std::size_t size, int flags) {
  if (is_there("eio")) return fail(EIO);
  return static_cast<int>(::syscall(SYS_msync, begin, size, flags));
}

int fsync(int descriptor) {
  if (is_pool(descriptor) && is_there("eio")) return fail(EIO);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  if (is_pool(descriptor) && is_there("eio")) return fail(EIO);
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}

int fallocate(int descriptor, int mode, off_t begin, off_t size) {
  return allocate(descriptor, mode, begin, size);
}

int posix_fallocate(int descriptor, off_t begin, off_t size) {
  return allocate(descriptor, 0, begin, size) == 0 ? 0 : errno;
}
}
