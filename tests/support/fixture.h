// The fixture of a test of one engine, one combination of kinds and one domain: a pool in a
// temporary folder, indexes in it, keys, values, and the checks that end every test. One thread may
// use it, except for pool() and type().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/perdix.h>

#include "support/compare.h"
#include "support/domain.h"
#include "support/engines.h"
#include "support/keys.h"
#include "support/rng.h"
#include "support/settings.h"
#include "support/temp_dir.h"
#include "support/values.h"

namespace perdix::test {

class Fixture {
 public:
  /// `type` must outlive the fixture.
  Fixture(const IndexType& type, Domain domain, std::uint64_t seed);

  const IndexType& type() const { return type_; }
  Kind key_kind() const { return type_.key_kind; }
  Kind value_kind() const { return type_.value_kind; }
  Domain domain() const { return domain_; }
  Rng& rng() { return rng_; }
  std::filesystem::path path() const { return folder_.path() / "pool"; }
  const PoolOptions& options() const { return options_; }
  Pool& pool() { return *pool_; }

  AnyIndex open(std::string_view name = "index") { return open_as(type_, name); }

  /// Opens an index as if it were of another engine or had other kinds.
  AnyIndex open_as(const IndexType& type, std::string_view name = "index") {
    return type.open(pool(), name);
  }

  IndexInfo info(std::string name = "index") const {
    return {std::move(name), type_.engine, type_.key_kind, type_.value_kind};
  }

  /// Closes the pool, in which no index may be open.
  void close_pool();
  void open_pool();
  void reopen_pool();

  /// Replaces the pool by a new one with other options.
  void replace_pool(const PoolOptions& options);

  /// Closes an index and the pool around it, and opens both again.
  void reopen(std::optional<AnyIndex>& index);

  /// Operations for this domain at the scale of the run: in page_cache each costs a system call, on
  /// a disk a write to that.
  std::size_t count(double operations) const;

  /// At least all edge keys, ascending; fewer others in the page_cache domain.
  std::vector<Datum> keys(double wanted);

  /// Exactly `count` keys, ascending.
  std::vector<Datum> keys_of(std::size_t count, KeyStyle style) {
    return make_keys(key_kind(), rng_, count, style);
  }

  /// The key before all others.
  Datum least_key() const { return Datum::least(key_kind()); }

  Datum value() { return random_value(value_kind(), rng_); }

  /// A short value, for tests in which its size does not matter.
  Datum small_value() { return test::small_value(value_kind(), rng_); }

  /// Expects that neither the test nor dropping all indexes has leaked anything.
  void finish();

  /// The pool's own check, which finds leaks and blocks with two owners.
  void expect_sound(std::string_view when);

 private:
  void create_pool();

  const IndexType& type_;
  Domain domain_;
  Rng rng_;
  TempDir folder_;
  PoolOptions options_;
  std::optional<Pool> pool_;
  std::uint64_t allocated_when_new_ = 0;
};

/// Fills index and model with all keys in random order.
void fill(Fixture& fixture, AnyIndex& index, Model& model, std::vector<Datum> keys);

/// The code that a call fails with; nothing if it succeeds.
std::optional<Errc> error_of(const std::function<void()>& call);

}  // namespace perdix::test
