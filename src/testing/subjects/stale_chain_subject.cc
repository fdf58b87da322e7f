#include "testing/subjects/stale_chain_subject.h"

#include <algorithm>
#include <string>
#include <vector>

#include <perdix/index.h>

#include "index/common/codec.h"
#include "index/sptree/buffer_shape.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/replay.h"
#include "index/sptree/sptree.h"
#include "pool/pool_core.h"
#include "testing/subjects/index_subject.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"
#include "wal/log.h"

namespace perdix::testing {
namespace {

namespace sptree = detail::index::sptree;

const IndexInfo kInfo{"index", std::string(sptree::kEngineName), Kind::bytes, Kind::bytes};
const detail::wal::Log::Limits kNoLimit{~std::uint64_t{0}};

/// Gives a leaf of a closed index, whose log is empty, a chain that should have ended.
class StaleChain {
 public:
  StaleChain(detail::pool::PoolCore& pool, const sptree::Root& root)
      : pool_(pool), root_(root), keys_(pool), log_(pool, detail::pm::load(root.log), kNoLimit) {}

  /// Its keys.
  struct Names {
    std::vector<std::string> moved;  ///< those that it names
    std::vector<std::string> left;   ///< some of its leaf
  };

  /// Nothing if there is only one leaf.
  Names add(detail::util::Random& random) {
    std::vector<sptree::Leaf*> lefts;
    for (sptree::Leaf* leaf = &leaf_at(detail::pm::load(root_.first)); next(*leaf) != nullptr;
         leaf = next(*leaf))
      lefts.push_back(leaf);
    if (lefts.empty()) return {};
    // Mostly not the first, which is closed before anything else is done.
    const std::size_t first = lefts.size() > 1 && !random.one_in(4) ? 1 : 0;
    return add(*lefts[first + random.below(lefts.size() - first)], random);
  }

 private:
  sptree::Leaf& leaf_at(detail::pm::Offset offset) const { return sptree::leaf_at(pool_, offset); }
  sptree::Leaf* next(const sptree::Leaf& leaf) const {
    const detail::pm::Offset offset = sptree::successor_of(leaf);
    return offset == detail::pm::kNull ? nullptr : &leaf_at(offset);
  }
  detail::wal::Owner owner_of(const sptree::Leaf& leaf) const {
    return sptree::owner_of(pool_.offset(&leaf));
  }

  /// A record of each pair that moved out of the left leaf's buffer.
  Names add(const sptree::Leaf& left, detail::util::Random& random) {
    log_.add(chain_);
    chain_.assign(owner_of(left));
    Names names;
    std::vector<std::string>& moved = names.moved;
    for (const unsigned slot : sptree::slots_of(left))
      names.left.emplace_back(keys_.view(detail::pm::load(sptree::pair_at(left, slot).key)));
    const sptree::Leaf& right = *next(left);
    for (const unsigned slot : sptree::slots_of(right)) {
      if (moved.size() == sptree::kBufferPairs) break;
      if (random.one_in(3)) continue;
      const sptree::Pair& pair = sptree::pair_at(right, slot);
      log_.admit();
      log_.append(chain_, detail::wal::Type::put, detail::pm::load(pair.key),
                  detail::pm::load(pair.value));
      moved.emplace_back(keys_.view(detail::pm::load(pair.key)));
    }
    return names;
  }

  detail::pool::PoolCore& pool_;
  const sptree::Root& root_;
  const detail::index::Codec<std::string> keys_;
  detail::wal::Chain chain_;  // outlives the log, which knows it
  detail::wal::Log log_;
};

class StaleChainSubject final : public Subject {
 public:
  StaleChainSubject(const IndexOptions& options, detail::pm::Domain domain)
      : index_(make_index_subject(kInfo, options, domain)), domain_(domain) {}

  std::uint64_t size() const override { return index_->size(); }

  State create(Medium& medium, detail::util::Random& random) override {
    State state = index_->create(medium, random);
    names_ = {};
    if (state.empty()) return state;
    const auto core = detail::pool::PoolCore::open(medium.path(), pool_options(domain_));
    {
      const detail::pool::IndexHandle handle =
          core->open_index(kInfo.name, kInfo.engine, kInfo.key_kind, kInfo.value_kind);
      sptree::Root& root = sptree::root_at(*core, handle.root());
      link_block(*core, root.log, [&](detail::alloc::Session& session) {
        return detail::wal::Log::create(session, *core);
      });
      names_ = StaleChain(*core, root).add(random);
    }
    core->close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override { return index_->open(medium); }

  Step next_step(detail::util::Random& random, const State& state, unsigned thread,
                 unsigned threads) override {
    if (threads == 1 && !names_.moved.empty() && !random.one_in(3)) {
      if (random.one_in(2)) return erase_step(any_moved(random));
      Step step = put_step(any_moved(random), kInfo.value_kind, random);
      if (random.one_in(2)) step.value = like_a_key(random);
      return step;
    }
    return index_->next_step(random, state, thread, threads);
  }

  Effects effects(const Step& step, const State& state) const override {
    return index_->effects(step, state);
  }

  std::string describe(const Step& step) const override { return index_->describe(step); }

 private:
  const std::string& any_moved(detail::util::Random& random) const {
    return names_.moved[random.below(names_.moved.size())];
  }

  /// A value that takes the place of a key which moved, once that is erased, and looks like one of
  /// the left leaf: code that follows the chain then takes it for that.
  std::string like_a_key(detail::util::Random& random) const {
    if (names_.left.empty()) return any_moved(random);
    std::string value = names_.left[random.below(names_.left.size())];
    value.resize(std::max(value.size() + 1, any_moved(random).size()), 'a');
    return value;
  }

  std::unique_ptr<Subject> index_;
  detail::pm::Domain domain_;
  StaleChain::Names names_;  // of the stale chain of the round
};

}  // namespace

std::unique_ptr<Subject> make_stale_chain_subject(const IndexOptions& options,
                                                  detail::pm::Domain domain) {
  return std::make_unique<StaleChainSubject>(options, domain);
}

}  // namespace perdix::testing
