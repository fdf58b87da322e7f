#include "testing/linearizability/index_system.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/index.h>

#include "index/fastfair/fastfair.h"
#include "index/test_options.h"
#include "pool/claim_image.h"
#include "pool/pool_core.h"
#include "testing/engine_traits.h"

namespace perdix::testing {
namespace {

constexpr Value kDamaged = ~Value{0};  // no operation writes it

constexpr unsigned kManyLeaves = 49;

LeafSizes leaf_sizes_of(std::string_view engine) {
  const detail::index::EngineTraits& traits = engine_traits(engine);
  return {traits.full, traits.most, traits.joinable, kManyLeaves, inserts_ahead(engine)};
}

std::string number_bytes(std::uint64_t number) {
  const auto bytes = encode_u64(number);
  return {bytes.begin(), bytes.end()};
}

/// Numbers as keys and values of an index, and back.
class Encoding {
 public:
  explicit Encoding(const IndexSystemOptions& options)
      : u64_keys_(options.key_kind == Kind::u64), u64_values_(options.value_kind == Kind::u64) {}

  // Keys sort as their numbers do, and those of bytes have several lengths.
  std::string key(Key number) const {
    if (u64_keys_) return number_bytes(kFirst + number * kStride);
    return fmt::format("key-{:06}", number) + std::string(number % 4 * 17, '.');
  }

  Key key_of(std::string_view bytes) const {
    if (u64_keys_) return (decode_u64(bytes) - kFirst) / kStride;
    return std::stoull(std::string(bytes.substr(4, 6)));
  }

  // Values of bytes have several lengths, and show whether all of them belongs together.
  std::string value(Value number) const {
    std::string bytes = number_bytes(number);
    const std::string word = bytes;
    for (Value i = 0; !u64_values_ && i < number % 7; ++i) bytes += word;
    return bytes;
  }

  Value value_of(std::string_view bytes) const {
    if (bytes.size() < sizeof(Value)) return kDamaged;
    const Value number = decode_u64(bytes.substr(0, sizeof(Value)));
    return value(number) == bytes ? number : kDamaged;
  }

 private:
  static constexpr Key kStride = 0x0001'0003'0007;
  // So that many keys lie on both sides of a bound that integers have in some engines.
  static constexpr Key kFirst = (Key{1} << 62) - 500 * kStride;

  bool u64_keys_;
  bool u64_values_;
};

/// Nothing happens outside the schedule.
IndexOptions index_options(const IndexSystemOptions& wanted, std::uint64_t dram_budget) {
  const detail::index::EngineTraits& traits = engine_traits(wanted.engine);
  IndexOptions options = detail::index::options_or_defaults(wanted.growing    ? traits.growing
                                                            : wanted.straight ? traits.straight
                                                                              : traits.small);
  detail::index::set_if_there(options, wanted.engine, "technique", wanted.technique);
  detail::index::set_if_there(options, wanted.engine, "dram_budget", dram_budget);
  options.resume_in_background = false;
  return options;
}

class IndexMap final : public Map {
 public:
  IndexMap(const Pool& pool, const IndexInfo& info, const IndexSystemOptions& options, bool is_new)
      : options_after_(index_options(options, options.dram_budget_after)),
        index_(Index::open_or_create(
            pool, info, is_new ? index_options(options, options.dram_budget) : options_after_)),
        encoding_(options),
        core_(pool.core()) {}

  std::optional<Value> get(Key key) override {
    const auto found = index_->get(encoding_.key(key));
    return found ? std::optional(encoding_.value_of(*found)) : std::nullopt;
  }
  /// Some are followed by what waits for the pool's background thread.
  void put(Key key, Value value) override {
    index_->put(encoding_.key(key), encoding_.value(value));
    if (value % kPutsPerTurn == 0) core_->background().drain();
  }
  bool insert(Key key, Value value) override {
    return index_->insert(encoding_.key(key), encoding_.value(value));
  }
  void insert_ahead(Key key, Value value) override {
    index_->insert_ahead(encoding_.key(key), encoding_.value(value));
  }
  bool update(Key key, Value value) override {
    return index_->update(encoding_.key(key), encoding_.value(value));
  }
  bool erase(Key key) override { return index_->erase(encoding_.key(key)); }
  std::optional<Value> swap(Key key, Value value) override {
    return exchange(key, Change<std::string>::store(encoding_.value(value)));
  }
  std::optional<Value> take(Key key) override {
    return exchange(key, Change<std::string>::erase());
  }
  bool ordered() const override { return index_->ordered(); }
  void scan(Key from, const std::function<bool(Key, Value)>& visit) override {
    const auto show = [&](std::string_view key, std::string_view value) {
      return visit(encoding_.key_of(key), encoding_.value_of(value));
    };
    if (index_->ordered())
      index_->scan(encoding_.key(from), show);
    else
      index_->for_each(show);
  }

  /// What the pool's background thread does, the thread that resumes, or a pool that gets full.
  void tend(std::uint64_t what) override {
    switch (what % 16) {
      case 0:
      case 1:
      case 2: (void)index_->size(); break;    // which needs all leaves
      case 3: core_->reclaim_space(); break;  // waits for all readers, which takes long
      default: core_->background().drain();
    }
  }

  CheckReport check() const { return index_->check(); }
  void close() { index_.reset(); }
  void open(const Pool& pool, const std::string& name) {
    index_ = Index::open(pool, name, options_after_);
  }

 private:
  static constexpr Value kPutsPerTurn = 8;

  /// What was there at the moment of the change.
  std::optional<Value> exchange(Key key, const Change<std::string>& change) {
    std::optional<Value> found;
    index_->update_with(encoding_.key(key), [&](std::optional<std::string_view> before) {
      found = before ? std::optional(encoding_.value_of(*before)) : std::nullopt;
      return change;
    });
    return found;
  }

  const IndexOptions options_after_;
  std::unique_ptr<Index> index_;
  Encoding encoding_;
  const std::shared_ptr<detail::pool::PoolCore> core_;
};

/// A file that is removed at the end.
class ScratchFile {
 public:
  explicit ScratchFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Shared {
  IndexSystemOptions options;
  std::atomic<std::uint64_t> files{0};

  std::filesystem::path next_path() {
    return options.folder / fmt::format("pool-{}", files.fetch_add(1));
  }
};

class IndexSystem final : public System {
 public:
  explicit IndexSystem(std::shared_ptr<Shared> shared)
      : IndexSystem(shared, std::make_unique<ScratchFile>(shared->next_path()), {}) {}
  /// With the contents of the image, if it is not empty.
  IndexSystem(std::shared_ptr<Shared> shared, std::unique_ptr<ScratchFile> file,
              const SparseBytes& image)
      : shared_(std::move(shared)),
        file_(std::move(file)),
        pool_(open(image)),
        map_(std::in_place, *pool_, info(), shared_->options, image.size() == 0) {}

  Map& map() override { return *map_; }
  std::span<std::byte> memory() override { return {pool_->core()->base(), pool_->core()->size()}; }
  bool needs_flushes() const override { return shared_->options.domain != DomainChoice::cpu_cache; }
  LeafSizes leaf_sizes() const override { return leaf_sizes_of(shared_->options.engine); }
  std::unique_ptr<System> recover(const SparseBytes& image) override {
    map_.reset();
    pool_.reset();
    return std::make_unique<IndexSystem>(shared_, std::move(file_), image);
  }
  std::optional<Beginning> beginning() const override { return shared_->options.beginning; }
  std::uint64_t points_per_call() const override { return 44; }
  bool may_be_full() const override { return shared_->options.full; }
  void prepared(std::uint64_t seed) override {
    pool_->core()->background().drain();  // else its thread might go on after the first call
    if (shared_->options.full) fill(seed);
    if (!shared_->options.reopen || seed % 4 < 2) return;
    map_->close();
    map_->open(*pool_, info().name);
  }
  std::vector<std::string> problems() override {
    std::vector<std::string> problems = map_->check().problems;
    map_->close();  // the pool's check wants it closed
    std::ranges::copy(pool_->check().problems, std::back_inserter(problems));
    map_->open(*pool_, info().name);
    return problems;
  }

 private:
  /// Another index takes all the space, and gives some blocks back.
  void fill(std::uint64_t seed) const {
    const auto ballast = Index::open_or_create(
        *pool_,
        {"ballast", std::string(detail::index::fastfair::kEngineName), Kind::u64, Kind::bytes});
    std::uint64_t key = 0;
    for (const std::size_t size : {200'000, 10'000, 1'000, 600, 40}) {
      try {
        for (;; ++key) ballast->put(number_bytes(key), std::string(size, '.'));
      } catch (const Error& error) {
        if (error.code() != Errc::out_of_space) throw;
      }
    }
    for (std::uint64_t i = 0; i < seed % 5; ++i) ballast->erase(number_bytes(key - 1 - 7 * i));
  }

  Pool open(const SparseBytes& image) const {
    PoolOptions options;
    options.plugins = plugins();
    const bool journals = shared_->options.domain == DomainChoice::page_cache;
    options.durability = journals ? Durability::power : Durability::process;
    options.domain = shared_->options.domain;
    options.max_size = std::uint64_t{shared_->options.full ? 16U : 1024U} << 20;
    if (image.size() == 0) return Pool::create(file_->path(), options);
    image.save(file_->path());
    detail::pool::claim_image(file_->path());
    return Pool::open(file_->path(), options);
  }

  IndexInfo info() const {
    const IndexSystemOptions& options = shared_->options;
    return {"tested", options.engine, options.key_kind, options.value_kind};
  }

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<ScratchFile> file_;
  std::optional<Pool> pool_;
  std::optional<IndexMap> map_;
};

}  // namespace

MakeSystem index_systems(const IndexSystemOptions& options) {
  auto shared = std::make_shared<Shared>();
  shared->options = options;
  return [shared] { return std::make_unique<IndexSystem>(shared); };
}

}  // namespace perdix::testing
