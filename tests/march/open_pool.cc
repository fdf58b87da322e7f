// Creates a pool and opens it again, by the interfaces for C++ and for C. Prints "works", or the
// name of the error and its message.
#include <cstdio>
#include <filesystem>
#include <string>

#include <perdix/error.h>
#include <perdix/pool.h>
#include <perdix/tips_c.h>

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const std::filesystem::path path = argv[1];
  perdix::PoolOptions options;
  options.max_size = 64 << 20;
  try {
    perdix::Pool::create(path, options);
    perdix::Pool::open(path, options);
    perdix::Pool::verify(path, options);
    std::puts("works");
  } catch (const perdix::Error& error) {
    std::printf("%s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
  }
  perdix_pool* const pool = perdix_pool_open_or_create(argv[1], nullptr);
  std::puts(pool != nullptr ? "works" : perdix_last_error());
  if (pool != nullptr) perdix_pool_close(pool);
  return 0;
}
