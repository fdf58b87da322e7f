// Any pool file: verification, opening, reading, writing and checking give a result or an Error,
// never a crash, a hang or an access outside of the pool.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <perdix/perdix.h>

#include "fuzz/pool_images.h"
#include "fuzz/require.h"
#include "util/test_directory.h"

namespace perdix::fuzz {
namespace {

constexpr std::uint64_t kMostPairs = 100'000;  // more than any file here can hold

/// Calls act(); an Error is a right answer too.
template <class Act>
void attempt(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    require(*error.what() != '\0', "an error has a message");
  }
}

void use(const Pool& pool, const IndexInfo& info) {
  const auto index = Index::open(pool, info.name);
  std::string first;
  attempt([&] {
    std::uint64_t shown = 0;
    index->for_each([&](std::string_view key, std::string_view) {
      if (shown == 0) first = key;
      require(++shown <= kMostPairs, "it ends");
      return true;
    });
  });
  const std::string key(8, 'x');
  attempt([&] { index->get(first); });
  attempt([&] { index->get(key); });
  attempt([&] { index->put(key, key); });
  attempt([&] { index->erase(first); });
  attempt([&] { index->check(); });
  attempt([&] { index->stats(); });
}

void use(const std::filesystem::path& path) {
  Pool pool = Pool::open(path);
  pool.info();
  for (const IndexInfo& info : pool.indexes()) attempt([&] { use(pool, info); });
  attempt([&] { pool.check(); });
  for (const IndexInfo& info : pool.indexes()) attempt([&] { pool.drop(info.name); });
  attempt([&] { pool.close(); });
}

}  // namespace
}  // namespace perdix::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdix::fuzz;
  namespace files = perdix::testing_files;
  static const files::TempDirectory folder{files::memory_directory()};
  static const PoolImages images(folder.path());
  const std::filesystem::path path = folder.path() / "fuzzed.pool";
  images.write({data, size}, path);
  attempt([&] { perdix::Pool::verify(path); });
  images.write({data, size}, path);
  attempt([&] { use(path); });
  std::filesystem::remove(path);
  return 0;
}
