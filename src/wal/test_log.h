// For the tests of the log: a pool with one log, buffers for its chains, and a model of what they
// hold.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "pool/test_pool.h"
#include "wal/log.h"
#include "wal/owned_block.h"

namespace perdix::detail::wal {

using Change = std::tuple<Type, Word, Word>;
using Changes = std::vector<Change>;
using Strings = std::vector<std::string>;

/// The smallest limit that there is.
inline constexpr std::uint64_t kSmallest = 0;

inline std::vector<Owner> first_owners(std::size_t count) {
  std::vector<Owner> owners(count);
  std::iota(owners.begin(), owners.end(), Owner{1});
  return owners;
}

/// As an index that is dropped does with its log.
inline void drop(pool::PoolCore& pool, std::uint64_t& header_word) {
  if (pm::load(header_word) == pm::kNull) return;
  for_each_owner(pool, header_word,
                 [&](std::uint64_t& word, std::uint64_t) { free_from(pool, word); });
}

class Fixture {
 public:
  explicit Fixture(std::uint64_t limit = kSmallest, std::uint64_t max_size = 8 * pool::kGrowthUnit)
      : limit_(limit) {
    options_.max_size = max_size;
    core_ = pool::PoolCore::create(path_, options_);
    handle_.emplace(core_->open_index("log", "none", Kind::u64, Kind::u64));
    create_log();
    open_log();
    log_->resumed();
  }

  pool::PoolCore& pool() { return *core_; }
  Log& log() { return *log_; }
  std::uint64_t& word() { return handle_->root(); }
  Header& header() { return *core_->at<Header>(word()); }

  void create_log() {
    alloc::Session session = core_->allocator().session();
    const pm::Offset header = Log::create(session, *core_);
    session.commit_when(word(), ~std::uint64_t{0}, header);
    session.log();
    core_->pm().publish(word(), header);
    session.finish();
  }

  void open_log() {
    log_.reset();
    open_.clear();
    spare_.clear();
    chains_.clear();
    log_ = std::make_unique<Log>(*core_, word(), Log::Limits{limit_});
  }

  /// Opens the log as a restart would, of the process (`whole`) or of the index alone, and adopts
  /// the chains of the owners in the given order.
  void restart(bool whole, const std::vector<Owner>& owners) {
    log_.reset();
    if (whole) {
      handle_.reset();
      core_->close();
      core_ = pool::PoolCore::open(path_, options_);
      handle_.emplace(core_->open_index("log", "none", Kind::u64, Kind::u64));
    }
    open_log();
    for (const Owner owner : owners) adopt(owner);
    log_->resumed();
  }

  void adopt(Owner owner, std::uint8_t sure = 0) {
    const Position head = log_->surviving(owner);
    if (head == 0) return;
    log_->adopt(spare_chain(), log_->prepare_adoption(owner, head, sure));
    open_[owner] = spare_.back();
    spare_.pop_back();
  }

  /// The owner's buffer, a new one if it has none.
  Chain& chain(Owner owner) {
    Chain*& chain = open_[owner];
    if (chain == nullptr) {
      chain = &spare_chain();
      spare_.pop_back();
      chain->assign(owner);
    }
    return *chain;
  }

  void put(Owner owner, Word key, Word value, Type type = Type::put) {
    if (!log_->admit()) {
      clean();
      ASSERT_TRUE(log_->admit());
    }
    log_->append(chain(owner), type, key, value);
  }

  /// Puts a record as put() does, at a stripe if that has room.
  void put_at(unsigned stripe, Owner owner, Word key, Word value) {
    log_->go_to(stripe);
    put(owner, key, value);
  }

  void end(Owner owner) {
    const auto it = open_.find(owner);
    if (it == open_.end()) return;
    log_->end(*it->second);
    it->second->assign(0);
    spare_.push_back(it->second);
    open_.erase(it);
  }

  /// A round of maintenance. Returns the owners whose chains it ended.
  std::vector<Owner> clean() {
    std::vector<Owner> ended;
    while (Chain* chain = log_->crowded() ? log_->oldest() : nullptr) {
      ended.push_back(chain->owner.load());
      end(ended.back());
    }
    if (log_->checkpoint_due()) log_->checkpoint();
    log_->reclaim();
    ended_by_cleaning_.insert(ended_by_cleaning_.end(), ended.begin(), ended.end());
    return ended;
  }

  /// The owners whose chains clean() has ended since the last call.
  std::vector<Owner> take_cleaned() { return std::exchange(ended_by_cleaning_, {}); }

  /// The changes of a chain, the oldest first.
  Changes read(Owner owner) {
    const auto it = open_.find(owner);
    return it == open_.end() ? Changes{} : read_from(owner, it->second->head.load());
  }

  Changes read_from(Owner owner, Position head) {
    Changes changes;
    log_->follow(owner, head, [&](Type type, Word key, Word value, Position) {
      changes.emplace_back(type, key, value);
    });
    std::reverse(changes.begin(), changes.end());
    return changes;
  }

  /// The log's own check, the allocator's, and that the allocated blocks are the log's and `more`.
  std::vector<std::string> problems(std::vector<pm::Offset> more = {}) {
    CheckReport report;
    log_->check(report);
    core_->allocator().check(report);
    log_->for_each_block([&](pm::Offset block) { more.push_back(block); });
    std::sort(more.begin(), more.end());
    if (more != pool::allocated_blocks(*core_)) report.problems.push_back("blocks leak");
    return report.problems;
  }

  /// Where a record lies, whatever the ring says.
  Record& record_at(Position position) {
    StripeLayout& stripe = header().stripes[stripe_of_position(position)];
    return *core_->at<Record>(stripe.segments[slot_of(position)] + written_at(position));
  }

 private:
  Chain& spare_chain() {
    if (spare_.empty()) {
      spare_.push_back(&chains_.emplace_back());
      log_->add(chains_.back());
    }
    return *spare_.back();
  }

  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  PoolOptions options_;
  std::uint64_t limit_;
  std::shared_ptr<pool::PoolCore> core_;
  std::optional<pool::IndexHandle> handle_;
  std::deque<Chain> chains_;
  std::vector<Chain*> spare_;
  std::map<Owner, Chain*> open_;
  std::vector<Owner> ended_by_cleaning_;
  std::unique_ptr<Log> log_;
};

}  // namespace perdix::detail::wal
