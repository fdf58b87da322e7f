// The write buffers of an index with their log: which node has one, whether the log takes another
// record, and what keeps the log short (sptree paper, §4.1, §4.4, §4.7). Any engine whose nodes
// have leaves can have them (§3). The engine implements the merge of a buffer into its leaf.
//
// A node keeps the number of its buffer: `buffer()` and `set_buffer(number)`, 0 for none, changed
// by the holder of its lock. The engine is an Owner, see below.
//
// Upkeep: the log is bounded by counts and bytes. A writer that finds it long merges the buffers
// whose chains are the oldest, a few at a time; chains are forgotten by checkpoints of the log.
// Where the log is full, writes go to the leaves.
//
// Thread-safe, but for open_log(). Lock order: a node's lock, then a stripe of the log.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/buffer_pool.h"
#include "index/common/retry.h"
#include "index/common/write_buffer.h"
#include "pm/probe.h"
#include "pool/pool_core.h"
#include "util/arena.h"
#include "wal/log.h"

namespace perdix::detail::index {

/// The calls of the upkeep. All are called without locks and guards.
template <class O>
concept BufferOwner = requires(O& owner, wal::Chain& chain, bool may_split, unsigned leaves) {
  /// Merges the buffer of a chain, if a node still has that buffer. `may_split`: else a leaf that
  /// has no room for that is left alone.
  owner.clean(chain, may_split);
  /// Brings back this many leaves of those whose chains the log keeps since the index was opened.
  owner.resume_some(leaves);
  /// The log is short again.
  owner.log_was_shortened();
  /// Pairs that came less those that went.
  { owner.pairs() } -> std::convertible_to<std::int64_t>;
};

/// Whether an index has the log that write buffers need, to which `word` leads. If it has none and
/// one is wanted, gives it one; `word` is the commit. If there is no space for it the index is
/// opened all the same, without buffers: or nothing could be erased from a pool that it has filled.
inline bool has_log(pool::PoolCore& pool, std::uint64_t& word, bool wanted) {
  if (!wanted || pm::load(word) != pm::kNull) return pm::load(word) != pm::kNull;
  try {
    retry_when_full(pool, [&] {
      alloc::Session session = pool.allocator().session();
      const pm::Offset log = wal::Log::create(session, pool);
      session.commit(pm::set_word(word, log));
    });
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    return false;
  }
  return true;
}

template <BufferShape Shape>
class WriteBuffers {
 public:
  using Node = typename Shape::Node;
  using Buffer = WriteBuffer<Shape>;
  using Pool = BufferPool<Buffer>;
  using Number = typename Pool::Number;  ///< 0: none

  /// Without buffers and without a log. `limits`: `bytes` follows from the budget.
  WriteBuffers(util::Arena& arena, const wal::Log::Limits& limits)
      : pool_(arena, [this](Buffer& buffer) { log_->add(buffer); }), limits_(limits) {}

  /// Opens the log at an offset. There may be as many buffers as `budget` bytes hold, if each takes
  /// `beside` bytes of DRAM besides those of the pool of buffers. Once, before all else.
  void open_log(pool::PoolCore& pool, pm::Offset offset, std::uint64_t budget,
                std::uint64_t beside = 0) {
    // Room for all buffers several times over: the longer a buffer may stay, the fuller its batch.
    // One of them is for the room that their chains are promised.
    constexpr std::uint64_t kRounds = 5;
    // What buffers need however few they are: the log and its marks, the heads of lists.
    constexpr std::uint64_t kFixed = std::uint64_t{48} << 10;
    pool_.set_budget(budget - std::min(budget / 4, kFixed), beside);
    limits_.bytes = kRounds * Shape::kPairs * sizeof(wal::Record) * pool_.budget();
    log_ = std::make_unique<wal::Log>(pool, offset, limits_);
  }

  /// The log; null if the index never had buffers.
  wal::Log* log() const { return log_.get(); }

  // --- Buffers ---

  /// Whether nodes get buffers.
  bool any() const { return pool_.budget() != 0; }
  Number budget() const { return pool_.budget(); }
  Buffer& at(Number number) const { return pool_.at(number); }
  void prefetch(Number number) const { pool_.prefetch(number); }

  /// Buffer of a node; null if it has none.
  Buffer* of(const Node& node) const {
    const Number number = node.buffer();
    return number == 0 ? nullptr : &pool_.at(number);
  }

  /// A buffer that no node has; 0 if the budget is used up, or there is no memory.
  Number acquire(Number preferred) noexcept {
    try {
      return pool_.acquire(preferred);
    } catch (const std::bad_alloc&) {
      return 0;
    }
  }

  /// For changes that a restart has found in the log. Throws bad_alloc.
  Number acquire_beyond_budget(Number preferred) { return pool_.acquire_beyond_budget(preferred); }
  void release(Number number) { pool_.release(number); }
  Number in_use() const { return pool_.in_use(); }
  bool budget_is_used_up() const { return pool_.in_use() >= pool_.budget(); }
  bool budget_is_exceeded() const { return pool_.in_use() > pool_.budget(); }

  /// The number of a buffer that was not written to for a while; its node may change at any time.
  Number cold() { return pool_.cold(); }

  /// Whether a node without a buffer, whose lock has this version, may now take that of another
  /// one. One of some writes to a node may: so only a node that is written to often gets another's
  /// buffer. The more pairs a buffer has, the more a merge costs, however few of them wait, and the
  /// more writes there must be for each.
  static bool may_take(std::uint64_t version) {
    constexpr std::uint64_t kAskInterval = std::max(8u, std::bit_ceil(Shape::kPairs / 4));
    return version % kAskInterval == 0;
  }

  /// Gives the locked node a buffer.
  void give_buffer(Node& node, Number number) {
    pool_.at(number).node.store(&node, std::memory_order_release);
    node.set_buffer(number);
  }

  /// Takes the locked node's buffer, whose chain is closed.
  Number take_buffer(Node& node) {
    const Number number = node.buffer();
    Buffer& buffer = pool_.at(number);
    assert(buffer.empty());
    buffer.assign(0);
    buffer.node.store(nullptr, std::memory_order_release);
    node.set_buffer(0);
    return number;
  }

  // --- Log ---

  /// Whether the log has room for another record. If not, the leaf may have some.
  bool admitted() {
    if (!is_full_.load(std::memory_order_relaxed)) {
      try {
        if (log_->admit()) return true;
      } catch (const Error& error) {
        if (error.code() != Errc::out_of_space) throw;
      }
      is_full_.store(true, std::memory_order_relaxed);
    }
    log_->note_refusal();
    return false;
  }

  /// Whether another record may follow in a chain: for changes of pairs that are in it already. If
  /// not, the buffer must be merged.
  bool can_grow(const Buffer& buffer) {
    return buffer.records < Buffer::kChainRecords && admitted();
  }

  /// Room for further records of a chain that is promised to it at a time. A chain of few records
  /// is promised little: promises that are not needed would fill the log, and end other chains.
  static constexpr unsigned kPromise = 32;

  /// What a chain is promised when it begins, if its buffer may come to hold `most` pairs each of
  /// which needs a promised record.
  static std::uint16_t first_promise(unsigned most) {
    return static_cast<std::uint16_t>(std::min(most, kPromise));
  }

  /// Whether the chain of a buffer is promised a record for one more pair, or could be promised
  /// some now. If not, it takes no further pair. A chain that has not begun is promised some then.
  bool has_promise(Buffer& buffer) {
    return buffer.empty_chain() || buffer.size() < buffer.sure ||
           (admitted() && log_->promise(buffer, kPromise));
  }

  // --- Upkeep ---

  /// Only some writers look at the log, each after a number of records: the look reads lines that
  /// all writers change, and a writer that looks cleans as many chains as others may have opened
  /// since the last look. Where the log is full, writes go to the leaves, and a fixed fraction of
  /// them look.
  bool upkeep_due() {
    if (log_ == nullptr || !log_->look_due()) return false;
    return log_->crowded() || log_->suffix_is_long() || is_full_.load(std::memory_order_relaxed);
  }

  /// Keeps the log short, a few chains at a time, by the writer that finds it long.
  template <BufferOwner Owner>
  void keep_short(Owner owner) {
    const std::unique_lock lock(upkeep_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const unsigned most = kChainsPerRecord * limits_.records_per_look;
    try {
      // Until then nothing can be forgotten.
      if (log_->resuming() && log_->suffix_is_long()) owner.resume_some(most);
      for (unsigned i = 0; i < most && log_->crowded(); ++i) {
        wal::Chain* chain = log_->oldest();
        if (chain == nullptr) break;
        pm::on_step("buffers: clean a chain");
        owner.clean(*chain, true);
      }
      shorten();
      is_full_.store(false, std::memory_order_relaxed);  // as far as is known
      owner.log_was_shortened();
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      pm::on_step("buffers: no space to keep the log short");
      // The log stays as long as it is; writers that find no room in it write to the leaves.
    }
  }

  /// All leaves are back after a restart: gives back the buffers that exceed the budget, and the
  /// chains that the log held for cold leaves.
  template <BufferOwner Owner>
  void tidy_up(Owner owner) {
    const std::lock_guard lock(upkeep_);
    try {
      pool_.for_each_used([&](Buffer& buffer) {
        if (budget_is_exceeded()) owner.clean(buffer, true);
      });
      if (pool_.budget() == 0) log_->shrink();
      shorten();
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      // As keep_short() says.
    }
  }

  /// Merges the buffers that need no space for it, and gives back the space that the log then no
  /// longer needs. Returns whether that was anything. Does nothing if the log has taken no segment
  /// since the last time, and too little was written for many more buffers to be merged now.
  template <BufferOwner Owner>
  bool give_space_back(Owner owner) noexcept {
    try {
      return log_ != nullptr && try_to_give_back(owner);
    } catch (const std::exception&) {
      return false;  // no memory, or damage, which the next call that reads there reports
    }
  }

 private:
  template <BufferOwner Owner>
  bool try_to_give_back(Owner& owner) {
    constexpr std::uint64_t kFew = 256;
    const std::lock_guard lock(upkeep_);
    const std::int64_t erased = given_back_.pairs - owner.pairs();
    const std::uint64_t before = log_->segments();
    const bool worthwhile = before > given_back_.segments ||
                            log_->appended() - given_back_.records >= kFew ||
                            erased >= static_cast<std::int64_t>(kFew);
    if (!worthwhile) return false;
    pool_.for_each_used([&](Buffer& buffer) {
      if (!buffer.empty_chain()) owner.clean(buffer, false);
    });
    pm::on_step("buffers: shrink the log");
    log_->shrink();
    // Free buffers are now left to the nodes that need them most; the log takes some at the next
    // look.
    is_full_.store(true, std::memory_order_relaxed);
    given_back_ = {log_->segments(), log_->appended(), owner.pairs()};
    return given_back_.segments < before;
  }

  /// A writer that looks at the log cleans up to this many chains for each record after which a
  /// look is due.
  static constexpr unsigned kChainsPerRecord = 2;

  /// Frees what no restart needs, and cares that this is enough.
  void shorten() {
    log_->reclaim();  // first: it needs no space, and a checkpoint may need what it frees
    if (!log_->checkpoint_due()) return;
    pm::on_step("buffers: make a checkpoint");
    log_->checkpoint();
    log_->reclaim();
  }

  Pool pool_;
  std::unique_ptr<wal::Log> log_;
  wal::Log::Limits limits_;
  std::mutex upkeep_;  // held by the thread that cleans the log
  struct {
    std::uint64_t segments = 0;
    std::uint64_t records = 0;
    std::int64_t pairs = 0;
  } given_back_;  // when give_space_back() had been there; guarded by upkeep_
  std::atomic<bool> is_full_{false};
};

}  // namespace perdix::detail::index
