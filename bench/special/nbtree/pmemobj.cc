#include <libpmemobj.h>

#include <perdix/error.h>

#include "special/nbtree/providers.h"

namespace perdix::bench::figures {
namespace {

/// Blocks are linked to words of a table in the pool, one for each: BlockId is the number of the
/// word. A replacement is one atomic step, made of reservations (libpmemobj's cheapest way).
class PmemobjProvider final : public Provider {
 public:
  PmemobjProvider(const std::filesystem::path& directory, Capacity capacity)
      : pool_(pmemobj_create((directory / "pmemobj.pool").c_str(), "bench", capacity.pool_bytes(),
                             0600)) {
    if (pool_ == nullptr) throw Error(Errc::io_error, pmemobj_errormsg());
    PMEMoid table = OID_NULL;
    require(pmemobj_zalloc(pool_, &table, capacity.blocks * sizeof(std::uint64_t), 0) == 0);
    links_ = static_cast<std::uint64_t*>(pmemobj_direct(table));
    pool_id_ = table.pool_uuid_lo;
  }
  ~PmemobjProvider() override { pmemobj_close(pool_); }
  PmemobjProvider(const PmemobjProvider&) = delete;
  PmemobjProvider& operator=(const PmemobjProvider&) = delete;

  std::string name() const override { return "libpmemobj"; }

  BlockId allocate(std::size_t bytes) override {
    Step step;
    const BlockId block = add(step, bytes);
    publish(step);
    return block;
  }

  std::array<BlockId, 2> replace(const Replacement& replacement, BlockId old) override {
    Step step;
    std::array<BlockId, 2> fresh{add(step, replacement.fresh[0]), 0};
    if (replacement.split()) fresh[1] = add(step, replacement.fresh[1]);
    pmemobj_defer_free(pool_, {pool_id_, links_[old]}, &step.actions[step.count++]);
    publish(step);
    return fresh;
  }

 private:
  struct Step {
    std::array<pobj_action, 5> actions;
    std::size_t count = 0;
  };

  static void require(bool succeeded) {
    if (!succeeded) throw Error(Errc::out_of_space, pmemobj_errormsg());
  }

  BlockId add(Step& step, std::size_t bytes) {
    const PMEMoid block = pmemobj_reserve(pool_, &step.actions[step.count++], bytes, 0);
    require(!OID_IS_NULL(block));
    pmemobj_set_value(pool_, &step.actions[step.count++], &links_[next_], block.off);
    return next_++;
  }

  void publish(Step& step) {
    require(pmemobj_publish(pool_, step.actions.data(), step.count) == 0);
  }

  PMEMobjpool* pool_;
  std::uint64_t* links_ = nullptr;
  std::uint64_t pool_id_ = 0;
  BlockId next_ = 0;
};

}  // namespace

std::unique_ptr<Provider> pmemobj_provider(const std::filesystem::path& directory,
                                           Capacity capacity) {
  return std::make_unique<PmemobjProvider>(directory, capacity);
}

}  // namespace perdix::bench::figures
