// Any pool file: verification, opening, reading, writing and checking give a result or an Error,
// never a crash, a hang or an access outside of the pool.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <perdix/perdix.h>
#include <perdix/tips_indexes.h>

#include "fuzz/pool_images.h"
#include "fuzz/require.h"
#include "util/test_directory.h"

namespace perdix::fuzz {
namespace {

constexpr std::uint64_t kMaxPairs = 100'000;  // more than any file here can hold

/// Calls act(); an Error is a right answer too.
template <class Act>
void attempt(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    require(*error.what() != '\0', "an error has a message");
  }
}

/// Row numbers, of which a damaged table may show any, but not without end.
void read(const Elf& elf) {
  const std::vector<std::uint32_t> lower(elf.dimensions(), 0);
  const std::vector<std::uint32_t> upper(elf.dimensions(), ~std::uint32_t{0});
  std::uint64_t shown = 0;
  attempt([&] {
    elf.range(lower, upper, [&](std::uint32_t) {
      require(++shown <= kMaxPairs, "it ends");
      return true;
    });
  });
  attempt([&] { require(elf.count(lower, upper) <= kMaxPairs, "it ends"); });
  attempt([&] { elf.exact(lower); });
  attempt([&] { elf.explain(lower, upper); });
  attempt([&] { elf.size(); });
}

void use_elf(const Pool& pool, const IndexInfo& info) {
  Elf elf(pool, info.name);
  for (const CachePolicy& policy :
       {CachePolicy::none(), CachePolicy::hybrid(), CachePolicy::static_levels(3),
        CachePolicy::dynamic(100'000) | CachePolicy::probability(2000)}) {
    attempt([&] { elf.cache(policy); });
    elf.wait_for_cache();
    read(elf);
  }
  attempt([&] { elf.check(); });
  attempt([&] { elf.insert(std::vector<std::uint32_t>(elf.dimensions(), 7)); });
  for (const unsigned tid : {7, 95, 100}) attempt([&] { elf.erase(tid); });
  attempt([&] { elf.compact(); });
  read(elf);
  attempt([&] { elf.stats(); });
}

/// The pool's own table has these columns; a damaged one may have any.
void use_elf_table(const Pool& pool, const IndexInfo& info) {
  ElfTable table(pool, info.name);
  std::uint64_t shown = 0;
  const auto show = [&](std::uint32_t, std::span<const ElfValue>) {
    require(++shown <= kMaxPairs, "it ends");
    return true;
  };
  const std::vector<ElfPredicate> words = {ElfPredicate::prefix("word", "w"),
                                           ElfPredicate::less("number", std::int64_t{2})};
  attempt([&] { table.rows({}, show); });
  attempt([&] { table.rows(words, show); });
  attempt([&] { require(table.count(words) <= kMaxPairs, "it ends"); });
  attempt([&] { table.select({ElfPredicate::equal("number", std::int64_t{6})}); });
  attempt([&] { table.explain(words); });
  for (const unsigned tid : {0, 3, 30, 99}) attempt([&] { table.row(tid); });
  attempt([&] { table.check(); });
  attempt([&] { table.insert({std::int64_t{7}, "new"}); });
  for (const unsigned tid : {0, 30, 100}) attempt([&] { table.erase(tid); });
  attempt([&] { table.compact(); });
  attempt([&] { table.stats(); });
  attempt([&] { table.rows({}, show); });
}

void use(const Pool& pool, const IndexInfo& info) {
  if (info.engine == "elf_table") return use_elf_table(pool, info);
  if (info.model == DataModel::points) return use_elf(pool, info);
  const auto index = Index::open(pool, info.name);
  std::string first;
  attempt([&] {
    std::uint64_t shown = 0;
    index->for_each([&](std::string_view key, std::string_view) {
      if (shown == 0) first = key;
      require(++shown <= kMaxPairs, "it ends");
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

PoolOptions with_plugins() {
  PoolOptions options;
  options.plugins = tips::further_plugins();
  return options;
}

void use(const std::filesystem::path& path) {
  Pool pool = Pool::open(path, with_plugins());
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
  attempt([&] { perdix::Pool::verify(path, with_plugins()); });
  images.write({data, size}, path);
  attempt([&] { use(path); });
  std::filesystem::remove(path);
  return 0;
}
