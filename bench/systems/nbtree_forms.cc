// NbTree and the forms of it that its paper is about (bench/nbtree_forms). Records are integers.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <perdix/error.h>
#include <perdix/pool.h>

#include "nbtree_forms/forms.h"
#include "pool/pool_core.h"
#include "systems/perdix_map.h"
#include "systems/systems.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

using namespace nbtree_forms;

/// A pool with one index.
template <class Form>
class FormMap {
 public:
  explicit FormMap(const Setup& setup)
      : pool_(Pool::open_or_create(setup.directory / "bench.pool", pool_options(setup))),
        tree_(pool_.core()->open_index("bench", detail::index::nbtree::kEngineName, Kind::u64,
                                       Kind::u64)) {}

  class Client {
   public:
    Client(Form& tree, detail::pool::PoolCore& core) : tree_(tree), core_(core) {}

    bool get(std::uint64_t key, Sink& sink) {
      const auto value = tree_.get(key);
      if (value) sink.take(*value);
      return value.has_value();
    }
    bool insert(std::uint64_t key, std::uint64_t value) { return tree_.insert(key, value); }
    bool update(std::uint64_t key, std::uint64_t value) { return tree_.update(key, value); }
    bool erase(std::uint64_t key) { return tree_.erase(key); }

    void settle() {
      core_.background().drain();
      core_.reclaimer().settle();
    }

   private:
    Form& tree_;
    detail::pool::PoolCore& core_;
  };

  Client client() { return Client(tree_, *pool_.core()); }

  OwnFootprint footprint() const {
    const IndexStats stats = tree_.stats();
    std::uint64_t conflicts = 0;
    if constexpr (requires { tree_.conflicts(); }) conflicts = tree_.conflicts();
    return {.dram_bytes = stats.dram_bytes, .stored_bytes = stats.pm_bytes, .conflicts = conflicts};
  }

  void resume() { tree_.size(); }  // which needs all leaves

 private:
  Pool pool_;
  Form tree_;
};

template <class Form>
struct MapOf {
  template <class K, class V>
  using Map = FormMap<Form>;
};

template <class Form>
std::unique_ptr<Store> open_integers(const Setup& setup) {
  if (setup.data.shape.key_kind != Kind::u64 || setup.data.shape.value_kind != Kind::u64)
    throw Error(Errc::unsupported, "forms of NbTree have integers only");
  return std::make_unique<MapStore<MapOf<Form>::template Map, std::uint64_t, std::uint64_t>>(setup);
}

template <class Form>
System system_of(std::string name, std::string summary) {
  return {std::move(name),     std::move(summary), true,
          open_integers<Form>, pool_settings,      {.update = true}};
}

}  // namespace

std::vector<System> nbtree_forms_systems() {
  return {system_of<Plain>("nbtree:plain", "NbTree, called as its other forms are"),
          system_of<Counted>("nbtree:counted", "NbTree, which counts conflicts"),
          system_of<WriteLocks>("nbtree:w", "NbTree with a lock in a leaf for writes"),
          system_of<AllLocks>("nbtree:wr", "NbTree with a lock in a leaf for reads and writes"),
          system_of<Coupled>("nbtree:coupled", "NbTree with a leaf's metadata in PM")};
}

}  // namespace perdix::bench
