// ElimDa, the engine: a hash index that writes PM in media units and looks up in DRAM (ElimDa
// paper).
//
// What it consists of, from the bottom up; a part knows only those above it in this list:
//
//   layout.h               what lies in PM
//   shape.{h,cc}           the numbers of an index, and its root block
//   bits.h                 changing bits of words in PM
//   words.h                the words of a pair: hashes, comparison, strings
//   fingerprints.h         how fingerprints are coded and compared
//   bucket.{h,cc}          D-bucket and fingerprints of a bucket
//   collecting_log.{h,cc}  where pairs come first, in persistent caches
//   chunk_lists.{h,cc}     lists of the backup log's chunks in PM, by ranges of hashes
//   backup_log.{h,cc}      where they are kept while they are in the DRAM table
//   cache_reservation.h    keeps collecting logs cached, with Intel CAT
//   pm_table.{h,cc}        directory and segments in PM
//   dram_table.{h,cc}      directory, segments and locks in DRAM
//   cold.h                 segments come back into DRAM after an opening
//   store.h                these layers, and lookups in them
//   key_count.h            how many keys there are
//   changes.h              update and erase, in all layers
//   smo.h                  segment split and join, directory doubling, removal of duplicates
//   relocate.h             from a full D-bucket to the P-bucket, or to a larger one
//   flush.h                from a full collecting log to the DRAM table
//   more_logs.h            more collecting logs, as the table grows
//   direct_units.h         places in the backup log for pairs that do not come from a log
//   recovery.h             what happens on open
//   for_each.h             all pairs
//   owned.h                who owns which blocks
//   check.h                verification of the invariants E1-E8; statistics
//
// What is left for the class is a new pair's way into the index (elimda.cc).
//
// Where the device writes in media units, a pair is first written to a collecting log (unless
// caches are volatile). From there it moves to the backup log and the DRAM table, and from there to
// the PM table. Pairs of one key keep their order on the way, and the first one counts. Elsewhere a
// pair comes straight to the PM table, and the other layers have what finds no room there.
//
// Concurrency: lookups take no lock and never wait, but for the first look at a segment after an
// opening (store.h). Writers take the lock of the key's
// log, then that of its bucket; with both, no other thread changes the pairs of the key. A split
// locks the buckets of its segment. Order of locks: log, bucket, structure, allocator.
//
// Durability: docs/durability/elimda.md.
#pragma once

#include <memory>
#include <string_view>

#include <perdix/papers/elimda.h>
#include <perdix/types.h>

#include "epoch/reclaimer.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/elimda/cache_reservation.h"
#include "index/elimda/changes.h"
#include "index/elimda/direct_units.h"
#include "index/elimda/flush.h"
#include "index/elimda/key_count.h"
#include "index/elimda/more_logs.h"
#include "index/elimda/relocate.h"
#include "index/elimda/shape.h"
#include "index/elimda/smo.h"
#include "index/elimda/store.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::elimda {

/// The index. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordMap : public WordEngine<WordMap<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle.
  explicit WordMap(pool::IndexHandle handle, const ElimDaOptions& options = {})
      : WordMap(std::move(handle), options, shape_from(options)) {}

  /// Like the other one, but an index that is created gets `shape`: tests want many splits of few
  /// keys.
  WordMap(pool::IndexHandle handle, const ElimDaOptions& options, const Shape& shape);
  ~WordMap() override;

  /// Frees all blocks of an index that is being dropped and clears its root. Restartable.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;
  void insert_ahead(Key key, NewValue value) final { write(key, value, Mode::ahead, nullptr); }
  using WordEngine<WordMap, K>::find;
  bool find(Key key, std::uint64_t& value) const final;

  // The caller holds a guard as long as it uses the strings that words refer to.
  std::optional<Word> find_word(Key key) const;
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
    store_.find_words(keys, out);
  }

  void for_each(const PairSink<K>& show) const final;

  /// Cost: counts all pairs until one call runs without concurrent writers. Later calls cost
  /// nothing, unless there were calls of insert_ahead.
  std::uint64_t size() const final;

  IndexStats stats() const override;
  CheckReport check() const override;
  void for_each_block(const pool::BlockVisitor& visit) const override;
  bool reclaim_space() noexcept override { return segmentation_.give_back(); }

  pool::PoolCore& pool() const final { return store_.pool; }
  const IndexInfo& info() const final { return handle_.info(); }
  const ValueCodec& values() const { return store_.words.values(); }

 private:
  friend class TestAccess;

  bool write_logged(Key key, KeyHash hash, NewValue value, Mode mode, const NewValue* expected);
  bool write_direct(Key key, KeyHash hash, NewValue value, Mode mode, const NewValue* expected);
  std::optional<bool> append(CollectingLog log, Key key, KeyHash hash, NewValue value, Mode mode,
                             std::uint32_t appends);
  void append_counted(CollectingLog log, Key key, KeyHash hash, NewValue value, Mode mode);
  void append_strings(Pair& pair, Key key, KeyHash hash, NewValue value, const pm::Change& commit);
  void append_pair(CollectingLog log, Key key, KeyHash hash, NewValue value);
  void add_to_p(const Locked& locked, Key key, KeyHash hash, NewValue value);
  void add_to_d(const Locked& locked, Key key, KeyHash hash, NewValue value);
  void store_pair(Pair& pair, Key key, KeyHash hash, NewValue value, const pm::Change& bit,
                  Shared shared);
  std::uint64_t count_keys() const;

  pool::IndexHandle handle_;                             // keeps the pool open
  std::unique_ptr<CacheReservation> cache_reservation_;  // null: none
  Store<K> store_;
  mutable KeyCount count_;  // a cache
  PairChanges<K> changes_;
  Segmentation<K> segmentation_;
  Relocator<K> relocator_;
  Flusher<K> flusher_;
  MoreLogs<K> more_logs_;
  DirectUnits direct_;
  double recovery_seconds_ = 0;
  epoch::DrainFirst drain_first_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordMap<std::uint64_t>;
extern template class WordMap<std::string>;

}  // namespace perdix::detail::index::elimda
