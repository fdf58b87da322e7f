#include "support/rig.h"

#include <algorithm>
#include <filesystem>

namespace perdix::test {

Rig::Rig(const IndexType& type, Domain domain, std::uint64_t seed)
    : type_(type), domain_(domain), rng_(seed), folder_(domain), options_(options_for(domain)) {
  create_pool();
}

void Rig::create_pool() {
  pool_.emplace(Pool::create(path(), options_));
  const PoolInfo info = pool_->info();
  EXPECT_EQ(info.domain, expected_domain(domain_));
  allocated_when_new_ = info.allocated;
}

void Rig::close_pool() {
  pool_->close();
  pool_.reset();
}

void Rig::open_pool() {
  pool_.emplace(Pool::open(path(), options_));
  EXPECT_TRUE(pool_->info().was_clean) << "the pool had been closed";
}

void Rig::reopen_pool() {
  close_pool();
  open_pool();
}

void Rig::replace_pool(const PoolOptions& options) {
  close_pool();
  std::filesystem::remove(path());
  options_ = options;
  create_pool();
}

void Rig::reopen(std::optional<AnyIndex>& index) {
  index.reset();
  reopen_pool();
  index.emplace(open());
}

std::size_t Rig::count(double operations) const {
  if (domain_ == Domain::page_cache) operations /= disk_folder().empty() ? 20 : 100;
  return scaled(operations, 20);
}

std::vector<Datum> Rig::keys(double wanted) {
  const std::size_t edges = edge_keys(key_kind()).size();
  return keys_of(std::max(edges + 10, count(wanted)), KeyStyle::mixed);
}

void Rig::finish() {
  if (!pool_) open_pool();
  expect_sound("at the end");
  for (const IndexInfo& index : pool_->indexes()) pool_->drop(index.name);
  expect_sound("after dropping all indexes");
  reopen_pool();
  expect_sound("after dropping all indexes and reopening");
  EXPECT_EQ(pool_->info().allocated, allocated_when_new_)
      << "bytes are still allocated after dropping all indexes";
}

void Rig::expect_sound(std::string_view when) {
  const CheckReport report = pool_->check();
  EXPECT_TRUE(report.ok()) << "Pool::check() " << when << ": " << problems_of(report);
}

void fill(Rig& rig, AnyIndex& index, Model& model, std::vector<Datum> keys) {
  std::shuffle(keys.begin(), keys.end(), rig.rng());
  for (const Datum& key : keys) {
    const Datum value = rig.small_value();
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
