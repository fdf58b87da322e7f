// What a test of one engine, one combination of kinds and one domain works with: a pool in a folder
// of its own, indexes in it, keys, values, and the checks that end every test. Used by one thread,
// except for pool().
#pragma once

#include <gtest/gtest.h>
#include <perdix/perdix.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/compare.h"
#include "support/domain.h"
#include "support/engines.h"
#include "support/keys.h"
#include "support/rng.h"
#include "support/settings.h"
#include "support/temp_dir.h"
#include "support/values.h"

namespace perdix::test {

template <class EngineT, Storable KeyT, Storable ValueT>
class Rig {
 public:
  using Engine = EngineT;
  using K = KeyT;
  using V = ValueT;
  using Index = typename Engine::template Index<K, V>;
  using Model = test::Model<K, V>;

  Rig(Domain domain, std::uint64_t seed)
      : domain_(domain), rng_(seed), folder_(domain), options_(options_for(domain)) {
    create_pool();
  }

  Domain domain() const { return domain_; }
  Rng& rng() { return rng_; }
  std::filesystem::path path() const { return folder_.path() / "pool"; }
  const PoolOptions& options() const { return options_; }
  Pool& pool() { return *pool_; }

  Index open(std::string_view name = "index") { return Index(pool(), name); }

  static IndexInfo info(std::string name = "index") {
    return {std::move(name), std::string(Engine::kName), kKindOf<K>, kKindOf<V>};
  }

  /// Closes the pool, in which no index may be open.
  void close_pool() {
    pool_->close();
    pool_.reset();
  }

  void open_pool() {
    pool_.emplace(Pool::open(path(), options_));
    EXPECT_TRUE(pool_->info().was_clean) << "the pool had been closed";
  }

  void reopen_pool() {
    close_pool();
    open_pool();
  }

  /// Starts anew with a pool of other options.
  void replace_pool(const PoolOptions& options) {
    close_pool();
    std::filesystem::remove(path());
    options_ = options;
    create_pool();
  }

  /// Closes an index and the pool around it, and opens both again.
  void reopen(std::optional<Index>& index) {
    index.reset();
    reopen_pool();
    index.emplace(open());
  }

  /// Operations for this domain at the scale of the run: each costs a write to disk in page_cache.
  std::size_t count(double operations) const {
    return scaled(domain_ == Domain::page_cache ? operations / 100 : operations, 20);
  }

  /// At least all edge keys, ascending; fewer others in the page_cache domain.
  std::vector<K> keys(double wanted) { return make_keys<K>(rng_, key_count(wanted), kMixed); }

  V value() { return random_value<V>(rng_); }

  /// A short value, for tests in which its size does not matter.
  V small_value() {
    if constexpr (std::is_same_v<V, std::string>)
      return bytes_of(rng_(), rng_.below(40));
    else
      return random_value<V>(rng_);
  }

  /// Nothing leaked, neither by what the test did nor by dropping all indexes.
  void finish() {
    if (!pool_) open_pool();
    expect_sound("at the end");
    for (const IndexInfo& index : pool_->indexes()) pool_->drop(index.name);
    expect_sound("after dropping all indexes");
    reopen_pool();
    expect_sound("after dropping all indexes and reopening");
    EXPECT_EQ(pool_->info().allocated, allocated_when_new_)
        << "bytes are still allocated after dropping all indexes";
  }

  /// The pool's own check, which finds leaks and blocks with two owners.
  void expect_sound(std::string_view when) {
    const CheckReport report = pool_->check();
    EXPECT_TRUE(report.ok()) << "Pool::check() " << when << ": " << problems_of(report);
  }

 private:
  static constexpr KeyStyle kMixed = KeyStyle::mixed;

  void create_pool() {
    pool_.emplace(Pool::create(path(), options_));
    EXPECT_EQ(pool_->info().domain, expected_domain(domain_));
    allocated_when_new_ = pool_->info().allocated;
  }

  std::size_t key_count(double wanted) const {
    return std::max(edge_keys<K>().size() + 10, count(wanted));
  }

  Domain domain_;
  Rng rng_;
  TempDir folder_;
  PoolOptions options_;
  std::optional<Pool> pool_;
  std::uint64_t allocated_when_new_ = 0;
};

/// Rigs that a case may ask for, so that it is registered for these only.
template <class R>
concept OrderedRig = OrderedIndex<typename R::Index>;

template <class R>
concept BytesKeyRig = std::is_same_v<typename R::K, std::string>;

template <class R>
concept BytesValueRig = std::is_same_v<typename R::V, std::string>;

/// Fills index and model with all keys in random order.
template <class R>
void fill(R& rig, typename R::Index& index, typename R::Model& model,
          std::vector<typename R::K> keys) {
  std::shuffle(keys.begin(), keys.end(), rig.rng());
  for (const auto& key : keys) {
    const auto value = rig.small_value();
    index.put(key, value);
    model.put(key, value);
  }
}

/// The code that a call fails with; nothing if it succeeds.
template <class F>
std::optional<Errc> error_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const Error& error) {
    EXPECT_FALSE(std::string_view(error.what()).empty()) << "an error without a message";
    return error.code();
  }
  return std::nullopt;
}

}  // namespace perdix::test
