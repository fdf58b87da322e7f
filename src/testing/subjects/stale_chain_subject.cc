#include "testing/subjects/stale_chain_subject.h"

#include <string>
#include <vector>

#include <perdix/index.h>

#include "index/common/word.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/replay.h"
#include "index/sptree/sptree.h"
#include "index/sptree/write_buffer.h"
#include "pool/pool_core.h"
#include "testing/subjects/index_subject.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"
#include "wal/log.h"

namespace perdix::testing {
namespace {

namespace sptree = index::sptree;

const IndexInfo kInfo{"index", std::string(sptree::kEngineName), Kind::bytes, Kind::bytes};
constexpr wal::Log::Limits kNoLimit{~std::uint64_t{0}};

/// Gives a leaf of a closed index, whose log is empty, a chain that should have ended.
class StaleChain {
 public:
  StaleChain(pool::PoolCore& pool, const sptree::Root& root)
      : pool_(pool), root_(root), keys_(pool), log_(pool, pm::load(root.log), kNoLimit) {}

  /// Returns the keys that it names. None if there is only one leaf.
  std::vector<std::string> add(util::Random& random) {
    std::vector<sptree::Leaf*> lefts;
    for (sptree::Leaf* leaf = &leaf_at(pm::load(root_.first)); next(*leaf) != nullptr;
         leaf = next(*leaf))
      lefts.push_back(leaf);
    return lefts.empty() ? std::vector<std::string>()
                         : add(*lefts[random.below(lefts.size())], random);
  }

 private:
  sptree::Leaf& leaf_at(pm::Offset offset) const { return sptree::leaf_at(pool_, offset); }
  sptree::Leaf* next(const sptree::Leaf& leaf) const {
    const pm::Offset offset = sptree::successor_of(leaf);
    return offset == pm::kNull ? nullptr : &leaf_at(offset);
  }
  wal::Owner owner_of(const sptree::Leaf& leaf) const {
    return sptree::owner_of(pool_.offset(&leaf));
  }

  /// A record of each pair that moved out of the left leaf's buffer.
  std::vector<std::string> add(const sptree::Leaf& left, util::Random& random) {
    log_.add(chain_);
    chain_.assign(owner_of(left));
    std::vector<std::string> moved;
    const sptree::Leaf& right = *next(left);
    for (const unsigned slot : sptree::slots_of(right)) {
      if (moved.size() == sptree::kBufferPairs) break;
      if (random.one_in(3)) continue;
      const sptree::Pair& pair = sptree::pair_at(right, slot);
      log_.admit();
      log_.append(chain_, wal::Type::put, pm::load(pair.key), pm::load(pair.value));
      moved.emplace_back(keys_.view(pm::load(pair.key)));
    }
    return moved;
  }

  pool::PoolCore& pool_;
  const sptree::Root& root_;
  const index::Words<std::string> keys_;
  wal::Chain chain_;  // outlives the log, which knows it
  wal::Log log_;
};

class StaleChainSubject final : public Subject {
 public:
  StaleChainSubject(const IndexOptions& options, pm::Domain domain)
      : index_(make_index_subject(kInfo, options, domain)), domain_(domain) {}

  std::uint64_t size() const override { return index_->size(); }

  State create(Medium& medium, util::Random& random) override {
    State state = index_->create(medium, random);
    moved_.clear();
    if (state.empty()) return state;
    const auto core = pool::PoolCore::open(medium.path(), pool_options(domain_));
    {
      const pool::IndexHandle handle =
          core->open_index(kInfo.name, kInfo.engine, kInfo.key_kind, kInfo.value_kind);
      sptree::Root& root = sptree::root_at(*core, handle.root());
      link_block(*core, root.log,
                 [&](alloc::Session& session) { return wal::Log::create(session, *core); });
      moved_ = StaleChain(*core, root).add(random);
    }
    core->close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override { return index_->open(medium); }

  Step next_step(util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    if (threads == 1 && !moved_.empty() && random.one_in(2)) {
      const std::string& key = moved_[random.below(moved_.size())];
      return random.one_in(2) ? erase_step(key) : put_step(key, kInfo.value_kind, random);
    }
    return index_->next_step(random, state, thread, threads);
  }

  Effects effects(const Step& step, const State& state) const override {
    return index_->effects(step, state);
  }

  std::string describe(const Step& step) const override { return index_->describe(step); }

 private:
  std::unique_ptr<Subject> index_;
  pm::Domain domain_;
  std::vector<std::string> moved_;  // keys that the stale chain of the round names
};

}  // namespace

std::unique_ptr<Subject> make_stale_chain_subject(const IndexOptions& options, pm::Domain domain) {
  return std::make_unique<StaleChainSubject>(options, domain);
}

}  // namespace perdix::testing
