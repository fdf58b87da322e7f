// The DRAM side of one bucket: the pairs of its D-bucket, and the fingerprints of the pairs in its
// P-bucket. Both are one piece of memory, which is replaced as a whole when pairs move from one to
// the other. So a lookup that has loaded the pointer sees both at one moment.
//
// A pair that comes straight to the P-bucket takes the next slot there, and is *recent* until the
// bucket is replaced: it has a print of one byte in the first line. So an add costs no replacement
// but once in sixteen times, when the recent pairs get fingerprints in their groups.
//
// Layout, the first three or four in one line by default:
//   head | where each group of fingerprints begins | recent prints | D fingerprints |
//   fingerprints | D pairs | D references
//
// DRAM is scarce (ElimDa paper, Exp#7), and a D-bucket is half empty on average. So it has room for
// a few more pairs than it holds, up to the end of its lines, and is replaced by a larger one when
// it is full.
//
// Invariants:
//   1. Only the holder of the bucket's lock changes it, and only in three ways: adds a pair to the
//      D-bucket or a recent one, kills a pair of the D-bucket or the P-bucket, replaces the value
//      of a D pair. Each change becomes visible by one store, and what that store makes visible is
//      durable.
//   2. A D fingerprint or a recent print is 0 before its pair is there and after the pair was
//      killed. An erase kills the youngest pair of the key first and the oldest, which counts (E6),
//      last; here and in PM.
//   3. There is a fingerprint for each pair of the P-bucket whose live bit was set when the bucket
//      was made; those of pairs killed since are marked so. Recent pairs lie in the slots behind.
//
// Readers take no lock. They read a fingerprint again after they have read its pair: the pair, and
// with it the key, may have been erased in between.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "index/elimda/fingerprints.h"
#include "index/elimda/shape.h"
#include "util/arena.h"

namespace perdix::detail::index::elimda {

/// Names a pair of the backup log: unit * unit_pairs + slot.
using BackupRef = std::uint32_t;

/// A pair of a D-bucket, as it is added.
struct DPair {
  Pair pair;
  BackupRef ref = 0;
  Signature signature = 0;
};

/// A pair of a P-bucket that gets a fingerprint.
struct PSlot {
  std::uint16_t slot;
  Signature signature;
};

class Bucket {
 public:
  /// The contents of a new bucket. `slots` ascend, and come behind all of `before`.
  struct Contents {
    const Bucket* before = nullptr;  ///< its fingerprints are taken over, but for killed ones
    std::span<const PSlot> slots;    ///< further pairs of the P-bucket
    std::span<const DPair> d_pairs;  ///< at most `d_min`
    unsigned d_min = 1;              ///< room for at least this many D pairs
    unsigned d_max = 1;              ///< and for up to this many, where they cost no further line
    unsigned used = 0;               ///< slots of the P-bucket, from the first on, that are in use
    unsigned recent = 0;             ///< room for so many recent pairs
  };

  /// Room for a bucket that is made with `d_count` D pairs. `straight`: pairs come straight to the
  /// P-bucket, so that the D-bucket needs none until that is full.
  static Contents contents_for(const Shape& shape, unsigned d_count, bool straight);

  /// How much room a D-bucket gets that holds `d_count` pairs: for one more, and for as many as fit
  /// into the lines that this takes, up to the number of pairs at which Relocator::make_room()
  /// takes its next measure. From twice `d_pairs` on the room doubles.
  static Contents room_for(const Shape& shape, unsigned d_count);

  /// The most pairs that a D-bucket has room for.
  static constexpr unsigned kMaxDramPairs = 1u << 15;

  /// Returns a new bucket, which the caller owns: see release(). Throws bad_alloc.
  static Bucket* make(util::Arena& arena, const FingerprintCode& code, const Contents& contents);

  /// Returns a copy of this bucket with room for more D pairs, which the caller owns. The caller
  /// holds the bucket's lock. Throws bad_alloc.
  Bucket* make_larger(util::Arena& arena, unsigned d_min, unsigned d_max) const;
  void release(util::Arena& arena) noexcept { arena.release(this, bytes()); }

  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  std::size_t bytes() const { return layout().bytes(); }

  // --- P-bucket ---
  /// The first slot behind those that have been in use.
  unsigned next_slot() const { return used_ + recent_count(); }
  unsigned entries() const { return entry_count_; }

  std::uint16_t entry(unsigned i) const {
    return std::atomic_ref(const_cast<std::uint16_t&>(entries_begin()[i]))
        .load(std::memory_order_acquire);
  }
  void kill_entry(const FingerprintCode& code, unsigned i) {
    std::atomic_ref(entries_begin()[i]).store(code.kill(entry(i)), std::memory_order_release);
    ++killed_;
  }

  /// Calls visit(i, entry) for entries that match, in the order of slots, until it returns true.
  template <class Visit>
  [[gnu::always_inline]] bool find_entry(const FingerprintCode& code, Signature signature,
                                         Visit visit) const {
    const unsigned group = code.group(signature);
    const unsigned end = group_end(code, group);
    const std::uint16_t value = code.value(signature);
    for (unsigned i = group_begin(group); i < end; i += 8) {
      unsigned matches = match_eight(entries_begin() + i, code.mask(), value);
      if (end - i < 8) matches &= (1u << (end - i)) - 1;
      for (; matches != 0; matches &= matches - 1) {
        const unsigned at = i + static_cast<unsigned>(__builtin_ctz(matches));
        if (visit(at, entry(at))) return true;
      }
    }
    return false;
  }
  void prefetch_group(const FingerprintCode& code, Signature signature) const {
    __builtin_prefetch(entries_begin() + group_begin(code.group(signature)));
  }

  /// Prefetches the head, and the line where the fingerprints of a signature probably lie, so that
  /// a lookup does not have to read the head before it can ask for them. A guess, for the default
  /// shape.
  void prefetch_for_lookup(const FingerprintCode& code, Signature signature) const {
    constexpr std::size_t kEntriesAt = 64, kBytesPerGroup = 10;
    __builtin_prefetch(this);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + kEntriesAt +
                       kBytesPerGroup * code.group(signature));
  }

  /// Prefetch the lines that d_add() writes. The second call reads the head, so it comes some time
  /// after the first one.
  void prefetch_head_for_add() const { __builtin_prefetch(this, 1); }
  void prefetch_pair_for_add() const {
    const unsigned i = d_count_.load(std::memory_order_relaxed);
    if (i == d_capacity_) return prefetch_all();  // make_larger() will copy all of it
    __builtin_prefetch(d_begin() + i, 1);
    __builtin_prefetch(refs_begin() + i, 1);
  }

  /// The number of updates that have stored a value in the P-bucket and not yet persisted it. While
  /// it is not 0, readers persist each value that they have read before they return it (ElimDa
  /// paper 3.7 leaves this case open).
  std::atomic<std::uint8_t>& unpersisted() { return unpersisted_; }
  bool has_unpersisted() const { return unpersisted_.load(std::memory_order_acquire) != 0; }

  // --- Recent pairs of the P-bucket ---
  unsigned recent_count() const { return recent_count_.load(std::memory_order_acquire); }
  bool recent_full() const { return recent_count() == recent_capacity_; }
  unsigned recent_slot(unsigned i) const { return used_ + i; }
  bool recent_live(unsigned i) const { return load_print(recent_begin()[i]) != 0; }

  /// Adds the pair in next_slot(), which becomes visible. The caller holds the lock, the pair and
  /// its live bit are durable, and there is room.
  void add_recent(Signature signature) {
    const unsigned i = recent_count_.load(std::memory_order_relaxed);
    assert(i < recent_capacity_);
    store_print(recent_begin()[i], print_of(signature));
    recent_count_.store(static_cast<std::uint8_t>(i + 1), std::memory_order_release);
  }
  void kill_recent(unsigned i) { store_print(recent_begin()[i], 0); }

  /// Calls visit(i) for recent pairs that match, until it returns true.
  template <class Visit>
  [[gnu::always_inline]] bool find_recent(Signature signature, Visit visit) const {
    return find_print(recent_begin(), recent_count(), signature, visit);
  }

  // --- D-bucket ---
  unsigned d_capacity() const { return d_capacity_; }
  unsigned d_count() const { return d_count_.load(std::memory_order_acquire); }
  bool d_full() const { return d_count() == d_capacity_; }
  bool d_live(unsigned i) const { return d_print(i) != 0; }
  unsigned d_live_count() const {
    unsigned live = 0;
    for (unsigned i = 0; i < d_count(); ++i) live += d_live(i);
    return live;
  }

  std::uint64_t d_key(unsigned i) const { return load(d_begin()[i].key); }
  std::uint64_t d_value(unsigned i) const { return load(d_begin()[i].value); }
  BackupRef d_ref(unsigned i) const { return refs_begin()[i]; }
  std::uint8_t d_print(unsigned i) const { return load_print(prints_begin()[i]); }

  /// Adds a pair, which becomes visible. The caller holds the lock, the pair is durable, and there
  /// is room.
  void d_add(const DPair& added) {
    const unsigned i = d_count_.load(std::memory_order_relaxed);
    assert(i < d_capacity_);
    set(i, added);
    d_count_.store(static_cast<std::uint16_t>(i + 1), std::memory_order_release);
  }
  void d_set_value(unsigned i, std::uint64_t value) {
    std::atomic_ref(d_begin()[i].value).store(value, std::memory_order_release);
  }
  void d_kill(unsigned i) { store_print(prints_begin()[i], 0); }

  /// Kills the D pair that was added with this `ref`, if there is one.
  void d_kill_ref(BackupRef ref) {
    for (unsigned i = 0; i < d_count(); ++i)
      if (d_ref(i) == ref) d_kill(i);
  }

  /// Calls visit(i) for D pairs that match, from the oldest on, until it returns true.
  template <class Visit>
  [[gnu::always_inline]] bool find_d(Signature signature, Visit visit) const {
    return find_print(prints_begin(), d_count(), signature, visit);
  }

  static std::uint8_t print_of(Signature signature) {
    const auto print = static_cast<std::uint8_t>(signature ^ signature >> 8);
    return print == 0 ? 1 : print;
  }

 private:
  static constexpr std::size_t kGranule = 16;  // of pairs, and of what find_d() reads in one step
  static constexpr std::size_t kHead = 16;
  /// The most entries of a bucket whose groups begin at a byte: see group_begin().
  static constexpr unsigned kMaxBytePositions = 256;

  Bucket() = default;

  static constexpr std::size_t granules(std::size_t bytes) {
    return (bytes + kGranule - 1) / kGranule * kGranule;
  }

  /// Where the parts of a bucket lie.
  struct Layout {
    unsigned groups, recent, d_capacity, entries;

    /// Whether groups begin at two bytes: then a P-bucket has more than 256 pairs.
    bool wide() const { return groups > kMaxBytePositions / 8; }
    std::size_t recent_at() const { return kHead + groups * (wide() ? 2u : 1u); }
    std::size_t prints_at() const { return recent_at() + granules(recent); }
    std::size_t entries_at() const { return prints_at() + granules(d_capacity); }
    std::size_t pairs_at() const {
      return granules(entries_at() + entries * sizeof(std::uint16_t));
    }
    std::size_t bytes() const;
    /// With room for as many D pairs as fit into the lines that `d_capacity` take, up to `most`.
    Layout filled(unsigned most) const;
  };
  Layout layout() const { return {1u << group_bits_, recent_capacity_, d_capacity_, entry_count_}; }
  static Bucket* make_empty(util::Arena& arena, const Layout& layout);

  static std::uint8_t load_print(const std::uint8_t& print) {
    return std::atomic_ref(const_cast<std::uint8_t&>(print)).load(std::memory_order_acquire);
  }
  static void store_print(std::uint8_t& place, std::uint8_t print) {
    std::atomic_ref(place).store(print, std::memory_order_release);
  }
  template <class Visit>
  [[gnu::always_inline]] static bool find_print(const std::uint8_t* prints, unsigned count,
                                                Signature signature, Visit visit) {
    const std::uint8_t print = print_of(signature);
    for (unsigned i = 0; i < count; i += 16) {
      unsigned matches = match_sixteen(prints + i, print);
      if (count - i < 16) matches &= (1u << (count - i)) - 1;
      for (; matches != 0; matches &= matches - 1) {
        if (visit(i + static_cast<unsigned>(__builtin_ctz(matches)))) return true;
      }
    }
    return false;
  }

  static std::uint64_t load(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
  }

  std::byte* memory() { return reinterpret_cast<std::byte*>(this); }
  const std::byte* memory() const { return reinterpret_cast<const std::byte*>(this); }
  template <class T>
  T* at(std::size_t place) const {
    return reinterpret_cast<T*>(const_cast<std::byte*>(memory()) + place);
  }
  std::uint8_t* starts() const { return at<std::uint8_t>(kHead); }
  std::uint8_t* recent_begin() const { return at<std::uint8_t>(layout().recent_at()); }
  std::uint8_t* prints_begin() const { return at<std::uint8_t>(layout().prints_at()); }
  std::uint16_t* entries_begin() const { return at<std::uint16_t>(layout().entries_at()); }
  Pair* d_begin() const { return at<Pair>(layout().pairs_at()); }
  BackupRef* refs_begin() const { return reinterpret_cast<BackupRef*>(d_begin() + d_capacity_); }

  /// The index of a group's first entry. It is stored in a byte, in which 0 stands for 256 if the
  /// group lies behind the first one that has entries; or in two bytes, if a P-bucket has more than
  /// 256 pairs.
  unsigned group_begin(unsigned group) const {
    if (layout().wide()) return at<std::uint16_t>(kHead)[group];
    const unsigned start = starts()[group];
    return start == 0 && group > first_group_ ? kMaxBytePositions : start;
  }
  unsigned group_end(const FingerprintCode& code, unsigned group) const {
    return group + 1 == code.groups() ? entry_count_ : group_begin(group + 1);
  }

  void set(unsigned i, const DPair& added) {
    Pair& pair = d_begin()[i];
    std::atomic_ref(pair.key).store(added.pair.key, std::memory_order_relaxed);
    std::atomic_ref(pair.value).store(added.pair.value, std::memory_order_relaxed);
    refs_begin()[i] = added.ref;
    store_print(prints_begin()[i], print_of(added.signature));
  }
  std::uint16_t* copy_group(const FingerprintCode& code, unsigned group, std::uint16_t* to) const;
  void set_group_begin(unsigned group, unsigned start);
  void fill_groups(const FingerprintCode& code, const Contents& contents);
  void prefetch_all() const {
    for (std::size_t i = 0; i < bytes(); i += pm::kLineSize) __builtin_prefetch(memory() + i);
  }

  std::atomic<std::uint16_t> d_count_{0};
  std::uint16_t d_capacity_ = 0;
  std::uint16_t entry_count_ = 0;
  std::uint16_t first_group_ = 0;  // the first group that has entries
  std::uint16_t used_ = 0;         // slots of the P-bucket; recent pairs lie behind
  std::uint16_t killed_ = 0;       // entries that were killed; guarded by the bucket's lock
  std::atomic<std::uint8_t> unpersisted_{0};
  std::atomic<std::uint8_t> recent_count_{0};
  std::uint8_t recent_capacity_ = 0;
  std::uint8_t group_bits_ = 0;  // there are 2^this groups
};

}  // namespace perdix::detail::index::elimda
