#include "nbtree/forms.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <perdix/pool.h>

#include "index/nbtree/variants.h"
#include "pool/pool_core.h"
#include "systems/perdix_map.h"
#include "ycsb/worker.h"

namespace perdix::bench::figures {
namespace {

using namespace detail::index::nbtree;
using Number = std::uint64_t;

/// A pool with one index.
template <class Form>
class VariantMap {
 public:
  explicit VariantMap(const Setup& setup)
      : pool_(Pool::open_or_create(setup.directory / "bench.pool", pool_options(setup))),
        tree_(pool_.core()->open_index("bench", kEngineName, Kind::u64, Kind::u64)) {}

  class Client {
   public:
    Client(Variant<Form>& tree, detail::pool::PoolCore& core) : tree_(tree), core_(core) {}

    bool get(Number key, Sink& sink) {
      const auto value = tree_.get(key);
      if (value) sink.take(*value);
      return value.has_value();
    }
    bool insert(Number key, Number value) { return tree_.insert(key, value); }
    bool update(Number key, Number value) { return tree_.update(key, value); }
    bool erase(Number key) { return tree_.erase(key); }

    void settle() {
      core_.background().drain();
      core_.reclaimer().settle();
    }

   private:
    Variant<Form>& tree_;
    detail::pool::PoolCore& core_;
  };

  Client client() { return Client(tree_, *pool_.core()); }
  const Variant<Form>& tree() const { return tree_; }

 private:
  Pool pool_;
  Variant<Form> tree_;
};

class FormStore : public Store {
 public:
  virtual std::uint64_t conflicts() const = 0;
};

template <class Form>
class StoreOf final : public FormStore {
 public:
  explicit StoreOf(const Setup& setup) : data_(setup.data), map_(setup) {}

  ShareResult run(const Share& share, const std::function<void()>& ready) override {
    Worker<typename VariantMap<Form>::Client, Number, Number> worker(map_.client(), data_, share);
    ready();
    return worker.run();
  }

  OwnFootprint footprint() const override {
    const IndexStats stats = map_.tree().stats();
    return {stats.dram_bytes, stats.pm_bytes};
  }
  void resume() override { map_.tree().size(); }  // which needs all leaves

  std::uint64_t conflicts() const override { return map_.tree().conflicts(); }

 private:
  Dataset data_;
  VariantMap<Form> map_;
};

template <class Form>
System system_of(std::string name, std::string summary) {
  return {std::move(name),
          std::move(summary),
          true,
          [](const Setup& setup) -> std::unique_ptr<Store> {
            return std::make_unique<StoreOf<Form>>(setup);
          },
          pool_settings,
          {.update = true}};
}

}  // namespace

const System& lock_free() {
  static const System system = system_of<LockFree>("NBTree", "lock-free, as the library has it");
  return system;
}

const System& counted() {
  static const System system = system_of<Counted>("NBTree", "lock-free, counts conflicts");
  return system;
}

const System& write_locks() {
  static const System system = system_of<WriteLocks>("NBTree-W", "a lock in a leaf for writes");
  return system;
}

const System& all_locks() {
  static const System system =
      system_of<AllLocks>("NBTree-WR", "a lock in a leaf for reads and writes");
  return system;
}

const System& metadata_in_pm() {
  static const System system =
      system_of<MetadataInPm>("not decoupled", "a leaf's metadata is in PM");
  return system;
}

std::uint64_t conflicts_in(const Store& store) {
  const auto* const form = dynamic_cast<const FormStore*>(&store);
  return form == nullptr ? 0 : form->conflicts();
}

}  // namespace perdix::bench::figures
