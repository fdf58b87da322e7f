// Tips (Krishnan et al., USENIX ATC 2021): makes a volatile index durable. Keys and values are
// bytes here; map.h has the types.
//
//   cache.h          the DRAM-cache: newest writes, found first
//   operation_log.h  the operational logs: a write is durable when its record is
//   uno.h            undo log and memory log: undoes an unfinished replay
//   reserve.h        space for the replay of what is logged
//   core.cc          lookups and writes
//   write_through.cc puts for which there is no reserve
//   workers.h        the threads that replay together, and scaling.h how many
//   guest.h          the calls of the plug-in
//   replay.cc        from the logs into the plug-in; reclamation of the logs
//   recovery.cc      what happens on open: creation, recovery; and on drop
//   inspection.cc    validation of the index after it was opened
//   check.cc         verification; statistics
//
// Locks, in their order: replaying_, a bucket's, a ring's, Uno's, the reserve's. A writer that has
// a bucket or a ring never waits for a replay. Lookups take none but those of the plug-in.
//
// Durability: see docs/durability/tips.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/hash_seed.h"
#include "index/common/resumption.h"
#include "index/tips/cache.h"
#include "index/tips/damage.h"
#include "index/tips/guest.h"
#include "index/tips/operation_log.h"
#include "index/tips/plugin.h"
#include "index/tips/reserve.h"
#include "index/tips/scaling.h"
#include "index/tips/settings.h"
#include "index/tips/uno.h"
#include "index/tips/workers.h"
#include "pool/background.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "util/seeded_hash.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::tips {

/// What keys and values of an index are.
struct Kinds {
  Kind key;
  Kind value;
};

class Core {
 public:
  /// Opens or creates the index below the root.
  Core(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin, Kinds kinds,
       const Settings& settings);
  ~Core();  ///< replays what is left, if it can
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Frees all blocks of an index that is being dropped and clears its root. Restartable.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kinds kinds);

  /// Checks what an index has besides the plugged-in one, of which this process has no plug-in, and
  /// shows its blocks. Changes nothing. Throws corrupt.
  static void check_logs(pool::PoolCore& pool, pm::Offset root, CheckReport& report,
                         const pool::BlockVisitor& visit);

  /// The value that a key has, or none.
  using Found = std::optional<std::string_view>;

  /// Decides on a write when it sees the value that the key has.
  using Decide = bool (*)(void* context, Found found);

  /// Sets or removes the value of a key if decide(found) says so, and removes none where there is
  /// none; a null `decide` does not look. Returns whether it did.
  bool write(Operation operation, std::string_view key, std::string_view value, Decide decide,
             void* context);

  /// Calls use(value) in a Guard if the key is there.
  template <class Use>
  bool get(std::string_view key, const Use& use) const {
    const epoch::Guard guard;
    const std::uint64_t hash = hash_of(key);
    if (const Entry* entry = Cache::look_up(cache_->bucket(hash), hash, key)) {
      hits_.add(1);
      if (entry->operation() == Operation::erase) return false;
      use(entry->value());
      return true;
    }
    misses_.add(1);
    const bool found = find_in_index(key, [&](Word value) { use(value_view(value)); });
    report_index();
    return found;
  }

  /// Brings the index up to date: replays the writes made before the call. After it pending() shows
  /// what there was no space for.
  void catch_up() const;

  /// Writes that catch_up() could not replay, in no order: in a full pool.
  void for_each_pending(const std::function<void(const Entry&)>& show) const;

  std::uint64_t size() const;

  /// As OpenIndex has it.
  bool reclaim_space() noexcept;

  IndexStats stats() const;
  CheckReport check() const;
  void for_each_block(const pool::BlockVisitor& visit) const;

  const Guest& plugin() const { return plugin_; }
  const void* index() const { return index_; }

  /// The bytes that a word stands for; a view into `word` itself for integers.
  std::string_view key_view(const Word& word) const { return view(word, kinds_.key); }
  std::string_view value_view(const Word& word) const { return view(word, kinds_.value); }

  /// The word of a key that is looked for.
  class KeyWord {
   public:
    KeyWord(std::string_view key, Kind kind);
    KeyWord(const KeyWord&) = delete;
    KeyWord& operator=(const KeyWord&) = delete;
    Word word() const { return word_; }

   private:
    static constexpr std::size_t kSmall = 128;
    alignas(Bytes) char small_[kSmall];
    std::unique_ptr<char[]> large_;
    Word word_ = 0;
  };

  KeyWord key_word(std::string_view key) const { return KeyWord(key, kinds_.key); }

  /// After an inspection of the index: throws if half of a change may have been there.
  void require_whole() const {
    if (uno_.is_broken()) [[unlikely]]
      throw_broken(pool_, uno_.met_foreign_memory());
  }

  /// Shows the probe what locks a lookup has changed.
  void report_index() const {
    pm::before_write(index_, plugin_.facts().object_bytes);
    pm::on_write(index_, plugin_.facts().object_bytes);
  }

 private:
  enum class Attempt {
    done,
    refused,
    no_room,     ///< in the log, until it is replayed
    no_reserve,  ///< it has to go into the index immediately
    no_space,
  };

  static std::string_view view(const Word& word, Kind kind) {
    if (kind == Kind::u64) return {reinterpret_cast<const char*>(&word), sizeof word};
    return reinterpret_cast<const Bytes*>(word)->view();
  }
  std::uint64_t hash_of(std::string_view key) const { return hash_(key); }

  // core.cc
  template <class Use>
  bool find_in_index(std::string_view key, const Use& use) const {
    const KeyWord wanted(key, kinds_.key);
    Word value = 0;
    const bool found = is_inspected() ? plugin_.find(index_, wanted.word(), &value)
                                      : find_doubting(wanted.word(), value);
    require_whole();
    if (found) use(value);
    return found;
  }
  Attempt try_write(Entry& entry, Decide decide, void* context);
  Attempt log_write(Entry& entry, Decide decide, void* context);
  Need need_of(const Entry& entry) const;
  bool allows(const Entry& entry, const Entry* old, Decide decide, void* context) const;
  void after_write() noexcept;

  // inspection.cc
  bool is_inspected() const { return inspected_.load(std::memory_order_acquire); }
  bool inspect(const std::stop_token& stop) const;
  void inspect_if_small() const;
  void start_inspection();
  bool find_doubting(Word key, Word& value) const;

  // check.cc
  template <class Use>
  void for_each_shown(const Use& use) const;
  void check_lookups(std::uint64_t size, Problems& problems) const;
  std::int64_t pending_pairs() const;
  TipsStats tips_stats() const;

  // write_through.cc
  Attempt write_through(Entry& entry, Decide decide, void* context);
  Attempt log_and_apply(Entry& entry, Decide decide, void* context);
  void make_durable() noexcept;
  void show_and_queue(Cache::Bucket& bucket, OperationLogs::Ring& ring, Entry& entry, Entry* old);
  Attempt apply_and_show(Cache::Bucket& bucket, Entry& entry, Entry* old);

  // replay.cc
  void replay() const;
  bool is_caught_up() const;
  /// The entries of a worker: all at first, then those that it leaves.
  struct Share {
    std::vector<Entry*> entries;
    std::exception_ptr failure;
  };
  bool replay_entry(Entry& entry) const;
  bool is_reclamation_due() const { return uno_.is_due(settings_.options.undo_records); }
  bool replay_with_reserve(Entry& entry) const;
  void forget(Entry& entry) const;
  void replay_alone(std::span<Entry* const> entries) const;
  void replay_together(std::span<Entry* const> entries, unsigned workers) const;
  static std::vector<Share> share_out(std::span<Entry* const> entries, unsigned workers);
  void work(Share& share) const noexcept;
  void replay_queued(const std::vector<Entry*>& entries) const;
  void replay_all() const;
  void settle() const;
  bool is_settled() const;
  bool apply(const Entry& entry) const;
  void apply_put(const Entry& entry) const;
  void apply_erase(const Entry& entry) const;
  Word new_word(std::string_view bytes, Kind kind) const;
  void free_word(Word word, Kind kind) const;
  void reclaim() const;
  void finish_reclamation() const;
  void replay_in_background() noexcept;

  // recovery.cc
  static void create(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
                     std::uint64_t ring_bytes);
  static Header& header_at(pool::PoolCore& pool, pm::Offset offset);
  static Header& checked_header(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
                                std::uint64_t ring_bytes);
  void roll_back_or_finish();
  void recover();
  void recover_entry(const LoggedWrite& write);
  void give_entries_up() noexcept;
  void erase_everything();
  void erase_word(Word wanted);
  void free_nodes();
  void free_framework(std::uint64_t& root);

  pool::PoolCore& pool_;
  Header& header_;
  const Guest plugin_;
  const Kinds kinds_;
  const Settings settings_;
  void* index_;                                    // the plug-in's object
  const util::SeededHash hash_{draw_hash_seed()};  // of keys in the cache

  mutable Uno uno_;
  mutable OperationLogs logs_;
  mutable Reserve reserve_;
  mutable std::optional<Cache> cache_;  // from the recovery on

  mutable std::mutex replaying_;          // guards what follows
  mutable std::vector<Entry*> deferred_;  // there was no space for them; oldest first
  mutable Scaling scaling_{settings_.options.min_workers, max_workers(settings_.options)};
  mutable Workers workers_;
  mutable std::uint64_t replays_ = 0, workers_used_ = 0;
  mutable std::uint64_t reclamations_ = 0, max_waiting_ = 0;
  mutable std::uint64_t cut_to_ = 0;       // what is replayed: records up to this number
  mutable std::uint64_t replayed_to_ = 0;  // records up to this number are in the index
  mutable std::uint64_t settled_to_ = 0;   // last_number() after settle()
  mutable std::atomic<std::uint64_t> caught_up_to_{0};  // the same when none was deferred
  mutable std::atomic<bool> out_of_space_{false};       // while deferred_ has something

  mutable std::atomic<std::uint64_t> backlog_{0};  // writes since the last replay, about
  std::atomic<bool> requested_{false};             // of the job
  mutable std::atomic<std::uint64_t> replayed_{0};
  mutable util::StripedCounter hits_, misses_;
  double recovery_seconds_ = 0;
  bool destroyed_ = false;
  mutable std::atomic<bool> inspected_{false};
  std::optional<pool::Background::Job> job_;  // it uses all of the above
  mutable Resumption resumption_;             // and so does this, which ends first
};

}  // namespace perdix::detail::index::tips
