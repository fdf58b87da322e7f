// ElimDa, the engine: a hash index that writes PM in media units and looks up in DRAM (ElimDa
// paper).
//
//   collecting_log.{h,cc}  where pairs come first, in persistent caches
//   backup_log.{h,cc}      where they are kept while they are in the DRAM table
//   cache_reservation.h    keeps collecting logs cached, with Intel CAT
//   bucket.{h,cc}          D-bucket and fingerprints of a bucket
//   fingerprints.h         how fingerprints are coded and compared
//   dram_table.{h,cc}      directory, segments and locks in DRAM
//   pm_table.{h,cc}        directory and segments in PM
//   search.h               point lookups
//   get_many.h             batches of lookups
//   insert.h               insert_ahead, insert, put: to a collecting log, or to the backup log
//   modify.h               update and erase, in all layers
//   relocate.h             from the collecting logs to the DRAM table, from there to the PM table
//   more_logs.h            more collecting logs, as the table grows
//   smo.h                  segment split, directory doubling, removal of duplicates
//   for_each.h             all pairs
//   recovery.{h,cc}        what happens on open: creation
//   resumer.h              segments come back into DRAM
//   destroy.h              frees all of an index that is dropped
//   check.h                verification of the invariants of layout.h (E1-E8); statistics
//
// The headers after pm_table.h define members of WordIndex; elimda.cc includes them and
// instantiates it.
//
// A pair is first written to a collecting log (unless caches are volatile). From there it moves to
// the backup log and the DRAM table, and from there to the PM table. Pairs of one key keep their
// order on the way, and the first one counts.
//
// Concurrency: lookups take no lock and never wait (search.h). Writers take the lock of the key's
// log, then that of its bucket; with both, no other thread changes the pairs of the key. A split
// locks the buckets of its segment. Order of locks: log, bucket, structure, allocator.
//
// Durability: docs/durability/elimda.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/papers/elimda.h>
#include <perdix/types.h>

#include "alloc/session.h"
#include "epoch/guard.h"
#include "index/common/codec.h"
#include "index/common/limits.h"
#include "index/common/resumption.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/elimda/backup_log.h"
#include "index/elimda/bucket.h"
#include "index/elimda/cache_reservation.h"
#include "index/elimda/collecting_log.h"
#include "index/elimda/dram_table.h"
#include "index/elimda/pm_table.h"
#include "index/elimda/shape.h"
#include "pool/index_handle.h"
#include "util/arena.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::elimda {

inline constexpr std::string_view kEngineName = "elimda";

using pool::BlockVisitor;

/// What an index is created with. Throws invalid_argument.
Shape shape_from(const ElimDaOptions& options);

/// The root block of an index, which is created if there is none. Throws corrupt, out_of_space.
Root& open_root(pool::PoolCore& pool, std::uint64_t& root, const Shape& shape);
Shape shape_of(const pool::PoolCore& pool, const Root& root);

template <class K>
struct Hashed;  // for_each.h

/// The index. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordIndex : public WordEngine<WordIndex<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle.
  explicit WordIndex(pool::IndexHandle handle, const ElimDaOptions& options = {})
      : WordIndex(std::move(handle), options, shape_from(options)) {}

  /// Like the other one, but an index that is created gets `shape`: tests want many splits of few
  /// keys.
  WordIndex(pool::IndexHandle handle, const ElimDaOptions& options, const Shape& shape);
  ~WordIndex() override;

  /// Frees all blocks of an index that is being dropped and clears its root. Restartable.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;
  void insert_ahead(Key key, NewValue value) final { write(key, value, Mode::ahead, nullptr); }
  using WordEngine<WordIndex, K>::find;
  bool find(Key key, std::uint64_t& value) const final;

  // The caller holds a guard as long as it uses the strings that words refer to.
  std::optional<Word> find_word(Key key) const;
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;

  void for_each(const PairSink<K>& show) const final;

  /// Cost: counts all pairs until one call runs without concurrent writers. Later calls cost
  /// nothing, unless there were calls of insert_ahead.
  std::uint64_t size() const final;

  IndexStats stats() const override;
  CheckReport check() const override;
  void for_each_block(const BlockVisitor& visit) const override;
  bool reclaim_space() noexcept override;

  pool::PoolCore& pool() const final { return pool_; }
  const IndexInfo& info() const final { return handle_.info(); }
  const ValueCodec& values() const { return codec_; }

 private:
  friend class TestAccess;

  using Keys = Codec<K>;
  using Unit = BackupLog::Unit;

  enum class Replaced { yes, absent, differs };
  enum class Where { nowhere, p_bucket, d_bucket, in_flight, log };

  /// The first pair of a key.
  struct Found {
    Where where = Where::nowhere;
    unsigned at = 0;                ///< entry, D pair, slot of the unit or slot of the log
    std::uint64_t* word = nullptr;  ///< its value in PM
    Word value = 0;

    explicit operator bool() const { return where != Where::nowhere; }
  };

  /// A bucket, as a reader or its lock's holder sees it.
  struct Place {
    Segment* segment = nullptr;
    unsigned at = 0;
    Bucket* bucket = nullptr;
  };
  struct Locked : Place {
    std::unique_lock<Slot> lock;
  };

  /// A collecting log that this thread has copied and must bring into the DRAM table.
  struct Flush {
    LogLine* line = nullptr;
    Unit unit = 0;
  };

  /// A pair on its way to another segment.
  struct Item {
    Pair pair;
    KeyHash hash;
    BackupRef ref = 0;
    unsigned slot = 0;  ///< in its P-bucket, or D-bucket
    bool in_d = false;
  };
  using Items = std::vector<Item>;

  /// A write that adds or removes a key: it is counted before it is visible, and again afterwards,
  /// so that count() knows whether one is on its way.
  class CountedWrite {
   public:
    explicit CountedWrite(util::StripedCounter& begun) : begun_(&begun) { begun.add(1); }
    CountedWrite(const CountedWrite&) = delete;
    CountedWrite& operator=(const CountedWrite&) = delete;
    ~CountedWrite() {
      if (begun_ != nullptr) begun_->add(-1);
    }
    void done(util::StripedCounter& count) {
      count.add(1);
      begun_ = nullptr;
    }

   private:
    util::StripedCounter* begun_;
  };

  /// The result of splitting one segment.
  struct Half;

  // search.h
  Place place_of(KeyHash hash) const;
  bool current(const Place& place, KeyHash hash) const;
  Bucket& bucket_of(Segment& segment, unsigned at) const;
  Found find_in_p(const Place& place, Key key, KeyHash hash) const;
  Found find_in_d(const Place& place, Key key, KeyHash hash) const;
  Found find_in_bucket(const Place& place, Key key, KeyHash hash) const;
  Found find_in_flight(const LogLine& line, Key key, KeyHash hash) const;
  Found find_in_log(CollectingLog log, Key key, KeyHash hash) const;
  Found find_in_logs(CollectingLog log, Key key, KeyHash hash) const;
  Found find(Key key, KeyHash hash) const;
  Found find_from(Place place, Key key, KeyHash hash) const;
  Locked lock_bucket(KeyHash hash) const;
  Pair& p_pair(const Place& place, unsigned slot) const {
    return table_.pairs(place.segment->offset, place.at)[slot];
  }
  Signature signature_of(Word key) const;
  KeyHash hash_of(Key key) const { return hash_(key); }
  KeyHash hash_of_word(Word key) const { return hash_of(keys_.view(key)); }

  // get_many.h
  void prefetch_pair(const Place& place, KeyHash hash) const;

  // insert.h
  bool all_inline() const { return Keys::kInline && codec_.is_inline(); }
  bool write_logged(Key key, KeyHash hash, NewValue value, Mode mode, const NewValue* expected);
  bool write_direct(Key key, KeyHash hash, NewValue value, Mode mode, const NewValue* expected);
  std::optional<bool> append(CollectingLog log, Key key, KeyHash hash, NewValue value, Mode mode,
                             std::uint32_t appends);
  void append_counted(CollectingLog log, Key key, KeyHash hash, NewValue value, Mode mode);
  void store_integers(Pair& pair, Key key, NewValue value) const;
  void append_strings(Pair& pair, Key key, KeyHash hash, NewValue value, const pm::Change& commit);
  void append_pair(CollectingLog log, Key key, KeyHash hash, NewValue value);
  void add_direct(const Locked& locked, Key key, KeyHash hash, NewValue value);
  BackupRef reserve_direct();
  template <class Unlink>
  void commit(alloc::Session& session, const pm::Change& change, Unlink unlink);
  void commit(const pm::Change& change);

  // modify.h
  bool value_is(const Found& found, const NewValue* expected) const {
    return expected == nullptr || codec_.equal(found.value, *expected);
  }
  Replaced replace(Key key, KeyHash hash, NewValue value, const NewValue* expected);
  Replaced replace_in_bucket(const Locked& locked, Key key, KeyHash hash, NewValue value,
                             const NewValue* expected);
  Replaced replace_in_logs(CollectingLog log, Key key, KeyHash hash, NewValue value,
                           const NewValue* expected);
  void set_value_in_p(Bucket& bucket, std::uint64_t& word, NewValue value);
  template <class Show>
  void set_value(std::uint64_t& word, NewValue value, Show show);
  std::optional<CollectingLog> lock_log(std::unique_lock<util::SpinLock>& lock, KeyHash hash) const;
  Found find_locked(std::optional<CollectingLog> log, const Locked& locked, Key key,
                    KeyHash hash) const;
  bool erase_locked(std::optional<CollectingLog> log, const Locked& locked, Key key, KeyHash hash);
  bool kill_in_log(CollectingLog log, Key key, KeyHash hash);
  bool kill_in_flight(const LogLine& line, const Place& place, Key key, KeyHash hash);
  bool kill_in_d(const Place& place, Key key, KeyHash hash);
  bool kill_in_p(const Place& place, Key key, KeyHash hash);
  void kill_p_entry(const Place& place, unsigned entry);
  void kill_d_pair(const Place& place, unsigned i);
  template <class Unlink>
  void kill(const pm::Change& change, const Pair& pair, Unlink unlink);

  // relocate.h
  bool begin_flush(std::optional<Flush>& flush, std::unique_lock<util::SpinLock>& lock,
                   CollectingLog log);
  std::optional<Flush> copy_to_backup(CollectingLog log);
  void finish_flush(const Flush& flush) noexcept;
  void add_all_to_dram(const Flush& flush);
  void prefetch_buckets(const Flush& flush) const;
  void add_to_dram(BackupRef ref);
  void make_room(Locked locked, KeyHash hash);
  void replace_dead(const Locked& locked);
  bool relocate(const Locked& locked);
  void write_to_p(const Place& place, unsigned first, std::span<const DPair> pairs);
  void grow(const Locked& locked);
  Bucket::Contents room_for(unsigned d_count) const;
  Bucket* new_bucket(const Bucket* before, std::span<const PSlot> slots,
                     std::span<const DPair> d_pairs, unsigned units) const;
  void put_in_place(const Locked& locked, Bucket& made);
  std::vector<DPair> live_d_pairs(const Bucket& bucket) const;
  void clear_in_backup(std::span<const DPair> pairs);
  void clear_some_in_backup(std::span<const DPair> pairs);
  void drain_logs();

  // more_logs.h
  void grow_logs() noexcept;
  void move_to_more_logs(const LogSet& from, unsigned depth);
  void copy_pairs(const LogSet& from, const LogSet& to) const;

  // smo.h
  bool split(Segment& segment, unsigned full);
  bool may_split(const Segment& segment);
  bool has_room(const Bucket& bucket) const;
  std::vector<Items> gather(Segment& segment);
  void gather_p(const Place& place, Items& items) const;
  void gather_d(const Place& place, Items& items) const;
  void remove_duplicates(const Place& place, Items& items);
  void kill_duplicate(const Place& place, const Item& item);
  void split_into(Segment& segment, std::vector<Items>& items, bool in_two);
  void fill(Half& half, unsigned at, std::span<const Item> items);
  bool is_empty(Segment& segment) const;
  bool join_empty_segments();
  bool join(Segment& empty);
  void join_locked(Segment& left, Segment& kept, Segment& freed);

  // for_each.h
  struct Cursor;
  struct EachBatch;
  void begin_segment(Cursor& cursor) const;
  static bool within(const Cursor& cursor, KeyHash hash);
  bool advance(Cursor& cursor, const LogSet* logs, const Segment& segment) const;
  template <class Values>
  bool read_batch(Cursor& cursor, EachBatch& batch, const Values& values) const;
  template <class Values>
  void show_all(const PairSink<K>& show, const Values& values) const;
  std::vector<Hashed<K>> pairs_of_log(CollectingLog log, const Cursor& cursor) const;
  std::vector<Hashed<K>> pairs_of_bucket(const Place& place) const;

  // recovery.h
  void open(const ElimDaOptions& options);
  void load_segments();
  void finish_copied_logs();
  unsigned words_with(Unit unit, unsigned log, std::uint32_t number) const;
  void empty(Unit unit);
  void use_logs();

  // resumer.h
  struct Cold;
  struct ColdEntry;
  using ColdSorted = std::vector<ColdEntry>;
  void make_cold();
  void add_cold_unit(Cold& cold, Unit unit);
  void warm(Segment& segment) const;
  struct ColdPair;
  std::vector<ColdPair> cold_pairs(const Segment& segment) const;
  void add_cold_pairs(std::vector<ColdPair>& pairs, const Segment& segment,
                      const ColdSorted& sorted) const;
  void add_cold_logs(std::vector<ColdPair>& pairs, const Segment& segment, const Cold& cold,
                     unsigned depth) const;
  const ColdSorted& sorted_pairs(const Cold& cold, unsigned log) const;
  void add_sorted(ColdSorted& pairs, Unit unit, std::uint64_t copy) const;
  void add_cold_pair(std::vector<ColdPair>& pairs, const Segment& segment, BackupRef ref,
                     std::uint64_t copy) const;
  Bucket* make_bucket(const Place& place, std::span<const ColdPair> pairs) const;
  bool is_in_p(const Place& place, const DPair& pair) const;
  bool drop_copy(const Place& place, const ColdPair& pair) const;
  void resume(const std::stop_token& stop) const;
  void require_resumed() const;
  void start_resuming(bool in_background);

  // check.h
  struct Checked;
  void check_bucket(const Place& place, Checked& checked) const;
  void check_logs(Checked& checked) const;
  bool check_pair(const Pair& pair, Checked& checked) const;
  template <class Visit>
  void for_each_warm_pair(Visit visit) const;
  template <class Visit>
  void for_each_log(Visit visit) const;
  template <class Visit>
  void for_each_in_flight(Visit visit) const;
  template <class Visit>
  void for_each_own_block(Visit visit) const;
  std::uint64_t count() const;
  std::uint64_t count_keys() const;

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::IndexHandle handle_;  // keeps the pool open
  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  const Hasher hash_;
  const FingerprintCode code_;
  Keys keys_;
  ValueCodec codec_;
  const bool volatile_caches_;
  std::unique_ptr<CacheReservation> cache_reservation_;  // null: none
  mutable util::Arena arena_;
  mutable BackupLog backup_;
  CollectingLogs logs_;
  PmTable table_;
  mutable DramTable dram_;
  double recovery_seconds_ = 0;

  std::mutex growing_logs_;
  unsigned no_room_below_ = 0;  // segments: with fewer no more logs are tried, since they failed

  /// Where a thread's next pair goes if there are no collecting logs.
  struct alignas(util::kCacheLine) OpenUnit {
    util::SpinLock lock;
    bool open = false;
    Unit unit = 0;
    unsigned next = 0;
  };
  static constexpr unsigned kOpenUnits = 16;
  std::array<OpenUnit, kOpenUnits> open_units_;
  std::atomic<std::uint32_t> next_number_{0};  // of units of no log

  /// Goes with the index, also if its constructor throws.
  struct OwnCold : std::atomic<Cold*> {
    OwnCold() : std::atomic<Cold*>(nullptr) {}
    OwnCold(const OwnCold&) = delete;
    OwnCold& operator=(const OwnCold&) = delete;
    ~OwnCold();
  };
  mutable OwnCold cold_;
  std::atomic<unsigned> segments_{0};
  util::StripedCounter begun_;  // writes that are about to add or remove a key, or have
  util::StripedCounter added_;
  util::StripedCounter removed_;
  util::StripedCounter relocations_;

  /// Whether pairs_at_count_ is right. insert_ahead() does not know whether it adds a key, so the
  /// next size() after it counts.
  enum class CountState : std::uint8_t { unknown, counting, known };
  mutable std::mutex counting_;
  mutable std::atomic<CountState> count_state_{CountState::unknown};
  mutable std::atomic<std::int64_t> pairs_at_count_{0};

  mutable Resumption resumption_;
  epoch::DrainFirst drain_first_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordIndex<std::uint64_t>;
extern template class WordIndex<std::string>;

}  // namespace perdix::detail::index::elimda
