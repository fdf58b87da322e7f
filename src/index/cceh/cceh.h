// CCEH, the engine: extendible hashing in PM with segments of 16 KiB and buckets of a line (Nam et
// al., FAST 2019). Nothing is rebuilt on open, so opening takes the same time however large the
// table is.
//
//   directory.{h,cc}  which segment is responsible for a hash; directory_copy.h: its copy in DRAM
//   search.h          the way to a segment; point lookups
//   get_many.h        batches of lookups
//   cceh.cc           put, insert, update, erase; instantiates all
//   smo.h             segment split, overflow, joining of empty segments
//   buffers.h         segments with write buffers (index/common/buffered.h), and their merging
//   for_each.h        all pairs
//   recovery.{h,cc}   what happens on open: creation
//   destroy.h         frees all of an index that is dropped
//   check.h           verification of the invariants of layout.h (H1-H9); statistics
//
// Concurrency: segments have latches in DRAM (index/common/latches.h). Writers hold that of the
// segment that they change; readers take none, but validate its version. A lookup takes the version
// of a segment and then reads the directory again. So the segment is the one of the key as long as
// its version is the same.
//
// Durability: an operation's linearization point and its commit are the same 8-byte store,
// persisted before the latch is released; so no other thread sees an effect that a crash could
// undo. docs/durability/cceh.md has the cases.
#pragma once

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

#include <perdix/cceh.h>
#include <perdix/types.h>

#include "alloc/session.h"
#include "epoch/guard.h"
#include "index/cceh/buffer_shape.h"
#include "index/cceh/directory.h"
#include "index/cceh/layout.h"
#include "index/cceh/shape.h"
#include "index/common/buffered.h"
#include "index/common/codec.h"
#include "index/common/latches.h"
#include "index/common/pair_count.h"
#include "index/common/path_budget.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "pool/index_handle.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::cceh {

inline constexpr std::string_view kEngineName = "cceh";

using pool::BlockVisitor;

/// What an index is created with. Throws invalid_argument.
Shape shape_from(const CcehOptions& options);

/// The root block of an index, which is created if there is none. Throws corrupt, out_of_space.
Root& open_root(pool::PoolCore& pool, std::uint64_t& root, const Shape& shape);
/// The root block at an offset. Throws corrupt.
Root& checked_root(pool::PoolCore& pool, pm::Offset offset);
Shape shape_of(const pool::PoolCore& pool, const Root& root);

/// The overflow of a segment. Throws corrupt.
std::span<Pair> checked_overflow(const pool::PoolCore& pool, Reference overflow);

/// The part of a key's hash that its word alone tells.
template <class K>
struct KnownHash {
  static constexpr unsigned kBits = 64;
  static KeyHash of(Word word, const util::SeededHash& hash) { return {hash(word)}; }
};
template <>
struct KnownHash<std::string> {
  static constexpr unsigned kBits = 16;
  static KeyHash of(Word word, const util::SeededHash&) {
    return {std::uint64_t{word_tag(word)} << 48};
  }
};

/// The table. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordTable : public WordEngine<WordTable<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle.
  explicit WordTable(pool::IndexHandle handle, const CcehOptions& options = {})
      : WordTable(std::move(handle), shape_from(options), options) {}

  /// If it is created, with any shape: tests want many splits of few keys.
  WordTable(pool::IndexHandle handle, const Shape& shape, const CcehOptions& options = {});

  /// Frees all blocks of a table that is being dropped and clears its root. Restartable: after a
  /// crash it goes on where it was. No other thread uses the table.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;

  // The caller holds a guard as long as it uses the strings that words refer to.
  std::optional<Word> find_word(Key key) const;
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;

  void for_each(const PairSink<K>& show) const final;

  /// Cost: the first call that runs without concurrent writers counts the whole table; later calls
  /// cost nothing.
  std::uint64_t size() const final;

  /// Cost: visits the whole table.
  IndexStats stats() const override;
  CheckReport check() const override;

  void for_each_block(const BlockVisitor& visit) const override;
  bool reclaim_space() noexcept override;

  pool::PoolCore& pool() const final { return pool_; }
  const IndexInfo& info() const final { return handle_.info(); }
  const ValueCodec& values() const { return codec_; }

 private:
  using Keys = Codec<K>;

  /// A write of a pair. `expected`: the value that it may replace, null if it may be any.
  struct Write {
    Key key;
    NewValue value;
    Mode mode;
    const NewValue* expected;
  };

  /// A segment with its latch's version, from before anything was read of it. Without an offset it
  /// is the root block, whose pair has no segment (H7).
  struct Seen {
    Entry entry;
    HashRange range;
    Latch* latch = nullptr;
    std::uint64_t version = 0;

    bool valid() const { return latch->read_validate(version); }
  };

  /// The segment, or the root block, whose latch is held.
  using Locked = LockedHome<Seen>;

  /// The slot that has a key, or else one where the key can be added. All null: there is no room.
  struct Slots {
    Pair* found = nullptr;
    Pair* free = nullptr;              ///< one of its buckets
    Pair* free_in_overflow = nullptr;  ///< looked for only if no bucket has one
  };

  /// What segments are to their write buffers (index/common/buffered.h).
  struct Homes {
    using KeyType = K;
    using Shape = BufferShape;
    using Seen = typename WordTable::Seen;
    using Pair = cceh::Pair;
    static constexpr const char* kLogName = "the log of a segment";
    static constexpr bool kMoves = true;
    static constexpr bool kMergeTakesSpace = false;

    const WordTable& table;

    unsigned capacity() const { return buffered_pairs(table.shape_); }
    pm::Offset place(const Seen& segment) const { return segment.entry.offset; }
    std::uint64_t& number_word(const Seen& segment) const {
      return table.head_of(segment.entry).number;
    }
    wal::Owner number(const Seen& segment) const { return pm::load(number_word(segment)); }
    std::uint64_t note(const Seen& segment) const { return segment.range.first().bits; }
    Hash16 tag(Word key) const { return KnownHash<K>::of(key, table.hash_).tag(); }
    Seen at(pm::Offset place, std::uint64_t hash) const;
    Seen route(wal::Owner, std::uint64_t hash) const { return table.look({hash}); }
    bool owns(const Seen& segment, wal::Owner owner) const { return number(segment) == owner; }
    bool has_word(const Seen& segment, Word key) const;
    template <class End>
    bool merge_in_place(const Seen& segment, const WriteBuffer<Shape>& buffer, End end) const;
    void rewrite(Locked& segment, WriteBuffer<Shape>& buffer, bool full) const;
  };
  using Buffers = Buffered<Homes>;
  using Buffer = typename Buffers::Buffer;

  KeyHash hash_of(Key key) const { return {hash_(key)}; }

  // for_each.h
  struct Cursor;
  struct EachBatch;
  /// The pairs of a segment that count, and whose hash is not below `from`; as they were at one
  /// moment, if it is still valid.
  void collect(const Seen& seen, KeyHash from, std::vector<Pair>& pairs) const;
  bool read_batch(Cursor& cursor, EachBatch& batch) const;

  // search.h
  Seen locate(KeyHash hash) const;
  /// The pair of the key whose word is 0.
  std::optional<Word> find_zero() const;
  static bool is_zero(Key key) { return key == Key{}; }
  Pair* slots_of(const Entry& entry) const {
    return pool_.template at<Pair>(entry.offset + sizeof(SegmentHead));
  }
  SegmentHead& head_of(const Entry& entry) const {
    return *pool_.template at<SegmentHead>(entry.offset);
  }
  Reference overflow_reference(const Entry& entry) const {
    return entry.crowded ? Reference::unpack(pm::load(head_of(entry).overflow)) : Reference{};
  }
  std::span<Pair> overflow_of(const Entry& entry) const {
    const Reference overflow = overflow_reference(entry);
    if (overflow.offset == pm::kNull) return {};
    return checked_overflow(pool_, overflow);
  }
  template <class Visit>
  bool for_each_near(const Entry& entry, KeyHash hash, Visit visit) const;
  template <class Visit>
  bool for_each_slot(const Entry& entry, Visit visit) const;
  bool counts(Word key, HashRange range) const {
    return key != 0 && range.may_hold(KnownHash<K>::of(key, hash_), lazy_depth_);
  }
  KeyHash hash_of_word(Word key) const { return hash_of(keys_.view(key)); }
  Seen look(KeyHash hash) const;
  Seen see_root() const;
  Seen see(Key key, KeyHash hash) const { return is_zero(key) ? see_root() : locate(hash); }
  Pair* find_in(const Seen& seen, Key key, KeyHash hash) const;
  std::optional<Word> find_from(Seen seen, Key key, KeyHash hash) const;
  void lock(Locked& locked, Key key, KeyHash hash) const;
  Slots search(const Locked& locked, Key key, KeyHash hash) const;

  // cceh.cc
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || codec_.equal(value, *expected);
  }
  bool try_write(const Write& write);
  std::optional<bool> write_segment(const Write& write, KeyHash hash);
  std::optional<bool> write_new(Locked& locked, const Write& write, KeyHash hash,
                                const Slots& slots);
  bool all_inline() const { return Keys::kInline && codec_.is_inline(); }
  void add(Pair& pair, const Write& write, KeyHash hash);
  void replace(Pair& pair, NewValue value);
  void remove(Pair& pair);

  // smo.h
  Pair* make_room(Locked& locked, KeyHash hash, Pair* free_in_overflow);
  bool split_helps(const Locked& locked, KeyHash hash) const;
  unsigned bit_of(Word key, unsigned depth) const;
  bool in_part(Word key, HashRange range, HashRange part) const;
  int place(std::span<Pair> slots, const Pair& pair) const;
  std::vector<Pair> slots_of_part(const Seen& seen, HashRange part) const;
  Entry make_part(alloc::Session& session, const Seen& locked, HashRange part,
                  const Buffer* buffer) const;
  void split(const Locked& locked);
  Reference make_overflow(alloc::Session& session, std::span<const Pair> pairs) const;
  void grow_overflow(const Locked& locked);
  bool holds_pairs(const Seen& seen) const;
  bool join_empty_segments();
  bool join_below(HashRange parent);
  void clear_moved(const Seen& kept);

  // buffers.h
  Buffer* buffer_of(const Seen& seen) const {
    return buffers_ == nullptr ? nullptr : buffers_->of(seen.entry.offset);
  }
  typename Buffers::Found find_buffered(const Seen& seen, Key key, KeyHash hash) const {
    if (buffers_ == nullptr) return {};
    return buffers_->find(seen.entry.offset, key, hash.tag());
  }
  /// A copy of a segment's slots, and the numbers of those that pairs of a buffer have filled.
  struct Filled {
    std::vector<Pair> slots;
    std::vector<unsigned> numbers;
  };
  std::optional<Filled> place_all(const Seen& segment, const Buffer& buffer) const;
  void fill(Pair* slots, const Filled& filled) const;
  void write_anew(const Seen& segment, Buffer& buffer, bool in_halves) const;
  void require_resumed() const {
    if (buffers_ != nullptr) buffers_->require_resumed();
  }
  void open_buffers(const CcehOptions& options);

  // check.h
  struct Checked;
  void check_buffer(const Seen& seen, std::vector<Word>& found, Checked& checked) const;
  void check_directory(Checked& checked) const;
  void check_numbers(std::vector<std::uint64_t> numbers, Checked& checked) const;
  void check_segment(const Seen& seen, Checked& checked) const;
  void check_pair(const Seen& seen, const Pair& pair, Checked& checked) const;
  void check_keys(std::vector<Word> found, Checked& checked) const;
  template <class Visit>
  void for_each_segment(Visit visit) const;

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::IndexHandle handle_;  // keeps the pool open
  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  const util::SeededHash hash_;
  const unsigned lazy_depth_;  // at most as many bits as a key's word tells
  Keys keys_;
  ValueCodec codec_;
  Latches latches_;
  mutable Directory directory_;
  double recovery_seconds_ = 0;

  PairCount pairs_;

  // Null if the index never had any. Behind all that its thread uses.
  std::unique_ptr<Buffers> buffers_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTable<std::uint64_t>;
extern template class WordTable<std::string>;

}  // namespace perdix::detail::index::cceh
