// A leaf's metadata in PM, behind the entries of its block, for the form that is not decoupled
// (Zhang et al. 2024, VI-E). Lookups read the copy in place of the leaf's side in DRAM, and each
// insert changes it and persists it, as an insert into a leaf of one layer would. As in the paper,
// updates and erases change no metadata. The side in DRAM stays what structure modifications and
// scans go by, and recovery reads the entries only: it writes the copies anew.
//
// Invariants, where copies are kept:
//   1. Each block is longer than its entries by a Copy.
//   2. A slot's fingerprint is in the copy before its entry can be pending. Its bit in `inserted`
//   is there before the insert returns, and is not cleared.
//   3. The copy of a cold leaf is written under the lock only.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "index/nbtree/layout.h"
#include "index/nbtree/leaf.h"
#include "pm/access.h"
#include "pm/persist.h"
#include "util/line.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::nbtree {

class MetadataCopies {
 public:
  struct Copy {
    std::uint64_t inserted;
    std::array<std::uint64_t, 8> fingerprints;  ///< a byte for each slot
  };

  MetadataCopies(const pm::Persister& pm, bool kept) : pm_(pm), kept_(kept) {}

  /// Of a new block.
  std::size_t block_bytes(unsigned capacity) const {
    return nbtree::block_bytes(capacity) + (kept_ ? sizeof(Copy) : 0);
  }

  using Lock = std::unique_lock<util::SpinLock>;
  Lock lock() const { return kept_ ? Lock(lock_) : Lock(); }

  /// Writes the copy of a leaf that no other thread uses. Flushed.
  template <class K>
  void write(const Leaf<K>& leaf) const {
    if (!kept_) return;
    Copy image{};
    image.inserted = leaf.visible_slots();
    for (unsigned slot = 0; slot < leaf.capacity(); ++slot)
      image.fingerprints[word_of(slot)] |= byte_of(slot, leaf.fingerprint(slot));
    Copy& copy = copy_of(leaf);
    pm_.copy(&copy, &image, sizeof copy);
    pm_.flush(&copy, sizeof copy);  // the caller fences
  }

  // What follows is for the form that keeps copies.

  /// Slots that have a key with this fingerprint, as the copy says.
  template <class K>
  std::uint64_t inserted_for(const Leaf<K>& leaf, std::uint8_t fingerprint) const {
    const Copy& copy = copy_of(leaf);
    const std::uint64_t inserted = pm::load(copy.inserted);  // before the fingerprints, as in DRAM
    const std::size_t bytes = leaf.capacity() + 1;
    pm::on_read(copy.fingerprints.data(), bytes);
    const util::Line line = util::load_part_of_line(copy.fingerprints.data(), bytes);
    return util::equal_bytes(line, fingerprint) & inserted;
  }

  /// Notes the fingerprint of a slot that the caller has taken. Flushed.
  template <class K>
  void take(const Leaf<K>& leaf, unsigned slot, std::uint8_t fingerprint) const {
    std::uint64_t& word = copy_of(leaf).fingerprints[word_of(slot)];
    set_bits(word, byte_of(slot, fingerprint));
    pm_.flush(&word, sizeof word);  // the persist of the entry fences
  }

  /// Notes all entries that are visible. Persisted.
  template <class K>
  void show(const Leaf<K>& leaf) const {
    std::uint64_t& inserted = copy_of(leaf).inserted;
    set_bits(inserted, leaf.visible_slots());
    pm_.persist(&inserted, sizeof inserted);  // as a leaf of one layer, before the insert returns
  }

  /// Whether the copy has all that lookups need.
  template <class K>
  bool sound(const Leaf<K>& leaf) const {
    const Copy& copy = copy_of(leaf);
    if ((leaf.visible_slots() & ~pm::load(copy.inserted)) != 0) return false;
    for (unsigned slot = 0; slot < leaf.capacity(); ++slot) {
      const std::uint64_t word = pm::load(copy.fingerprints[word_of(slot)]);
      if ((word & byte_of(slot, 0xff)) != byte_of(slot, leaf.fingerprint(slot))) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned word_of(unsigned slot) { return slot / 8; }
  static constexpr std::uint64_t byte_of(unsigned slot, std::uint8_t byte) {
    return std::uint64_t{byte} << (slot % 8 * 8);
  }

  template <class K>
  static Copy& copy_of(const Leaf<K>& leaf) {
    char* const block = reinterpret_cast<char*>(&leaf.block());
    return *reinterpret_cast<Copy*>(block + nbtree::block_bytes(leaf.capacity()));
  }

  void set_bits(std::uint64_t& word, std::uint64_t bits) const {
    std::uint64_t before = pm::load(word);
    while ((before & bits) != bits && !pm_.compare_exchange(word, before, before | bits)) {
    }
  }

  const pm::Persister& pm_;
  const bool kept_;
  mutable util::SpinLock lock_;
};

static_assert(sizeof(MetadataCopies::Copy) == 72);

}  // namespace perdix::detail::index::nbtree
