#include "support/fixture.h"

#include <algorithm>
#include <filesystem>

namespace perdix::test {

Fixture::Fixture(const IndexType& type, Domain domain, std::uint64_t seed)
    : type_(type), domain_(domain), rng_(seed), folder_(domain), options_(options_for(domain)) {
  create_pool();
}

void Fixture::create_pool() {
  pool_.emplace(Pool::create(path(), options_));
  const PoolInfo info = pool_->info();
  EXPECT_EQ(info.domain, expected_domain(domain_));
  allocated_when_new_ = info.allocated;
}

void Fixture::close_pool() {
  pool_->close();
  pool_.reset();
}

void Fixture::open_pool() {
  pool_.emplace(Pool::open(path(), options_));
  EXPECT_TRUE(pool_->info().was_clean) << "the pool had been closed";
}

void Fixture::reopen_pool() {
  close_pool();
  open_pool();
}

void Fixture::replace_pool(const PoolOptions& options) {
  close_pool();
  std::filesystem::remove(path());
  options_ = options;
  create_pool();
}

void Fixture::reopen(std::optional<AnyIndex>& index) {
  index.reset();
  reopen_pool();
  index.emplace(open());
}

std::size_t Fixture::count(double operations) const {
  if (domain_ == Domain::page_cache) operations /= disk_folder().empty() ? 20 : 100;
  return scaled(operations, 20);
}

std::vector<Datum> Fixture::keys(double wanted) {
  const std::size_t edges = edge_keys(key_kind()).size();
  return keys_of(std::max(edges + 10, count(wanted)), KeyStyle::mixed);
}

void Fixture::finish() {
  if (!pool_) open_pool();
  expect_sound("at the end");
  for (const IndexInfo& index : pool_->indexes()) pool_->drop(index.name);
  expect_sound("after dropping all indexes");
  reopen_pool();
  expect_sound("after dropping all indexes and reopening");
  EXPECT_EQ(pool_->info().allocated, allocated_when_new_)
      << "bytes are still allocated after dropping all indexes";
}

void Fixture::expect_sound(std::string_view when) {
  const CheckReport report = pool_->check();
  EXPECT_TRUE(report.ok()) << "Pool::check() " << when << ": " << problems_of(report);
}

void fill(Fixture& fixture, AnyIndex& index, Model& model, std::vector<Datum> keys) {
  std::shuffle(keys.begin(), keys.end(), fixture.rng());
  for (const Datum& key : keys) {
    const Datum value = fixture.small_value();
    index.put(key, value);
    model.put(key, value);
  }
}

std::optional<Errc> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_FALSE(std::string_view(error.what()).empty()) << "an error without a message";
    return error.code();
  }
  return std::nullopt;
}

}  // namespace perdix::test
