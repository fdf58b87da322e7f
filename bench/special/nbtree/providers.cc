#include "special/nbtree/providers.h"

#include <cstdlib>
#include <string_view>

#include "epoch/guard.h"
#include "index/nbtree/ledger.h"
#include "pool/pool_core.h"

namespace perdix::bench::figures {
namespace {

using detail::index::nbtree::Ledger;

class CallocProvider final : public Provider {
 public:
  CallocProvider(const std::filesystem::path& directory, Capacity capacity, DomainChoice domain)
      : pool_(Pool::create(directory / "calloc.pool", options(capacity, domain))),
        ledger_(core(), make_root()) {
    core().wait_for_growth();  // what it has is made ready by a thread, which would be in the way
  }

  std::string name() const override { return "Calloc"; }

  BlockId allocate(std::size_t bytes) override {
    detail::alloc::Session session = core().allocator().session();
    const BlockId block = session.reserve(bytes);
    session.log();
    session.finish();
    return block;
  }

  // As in src/index/nbtree/smo.cc. Between claim() and linked() the index would write the blocks
  // and link them, which is its own affair.
  std::array<BlockId, 2> replace(const Replacement& replacement, BlockId old) override {
    const detail::epoch::Guard guard;
    Ledger::StripeLease lease(ledger_, Ledger::Purpose::modification);
    lease.make_room(4);
    lease.name(0, old);
    std::array<detail::pm::Offset, 4> blocks{};
    if (replacement.split())
      blocks[2] = core().offset(&lease.take_anchor()) | detail::index::nbtree::kAnchorTag;
    lease.claim([&](detail::alloc::Session& session) {
      for (std::size_t i = 0; i < replacement.fresh.size(); ++i)
        if (replacement.fresh[i] != 0) blocks[i] = session.reserve(replacement.fresh[i]);
      return blocks;
    });
    lease.linked();
    lease.unlinked();
    return {blocks[0], blocks[1]};
  }

 private:
  static PoolOptions options(Capacity capacity, DomainChoice domain) {
    PoolOptions options;
    options.initial_size = capacity.pool_bytes();
    options.domain = domain;
    return options;
  }

  detail::pool::PoolCore& core() const { return *pool_.core(); }

  /// A block with an empty ledger.
  detail::index::nbtree::Root& make_root() {
    auto& root =
        *core().at<detail::index::nbtree::Root>(allocate(sizeof(detail::index::nbtree::Root)));
    core().pm().zero(&root, sizeof root);
    return root;
  }

  Pool pool_;
  Ledger ledger_;
};

class NaiveProvider final : public Provider {
 public:
  std::string name() const override { return "naive"; }

  BlockId allocate(std::size_t bytes) override {
    const BlockId block = next_;
    next_ += bytes;
    return block;
  }

  std::array<BlockId, 2> replace(const Replacement& replacement, BlockId) override {
    const BlockId first = allocate(replacement.fresh[0]);
    return {first, allocate(replacement.fresh[1])};
  }

 private:
  BlockId next_ = 0;
};

}  // namespace

std::unique_ptr<Provider> calloc_provider(const std::filesystem::path& directory, Capacity capacity,
                                          DomainChoice domain) {
  return std::make_unique<CallocProvider>(directory, capacity, domain);
}

std::unique_ptr<Provider> naive_provider() { return std::make_unique<NaiveProvider>(); }

DomainChoice pmemobj_domain() {
  const char* choice = std::getenv("PMEM_NO_FLUSH");
  return choice != nullptr && std::string_view(choice) == "0" ? DomainChoice::memory_controller
                                                              : DomainChoice::cpu_cache;
}

}  // namespace perdix::bench::figures
