// A leaf's metadata in PM, behind the entries of its block, for the form that is not decoupled
// (Zhang et al. 2024, VI-E). Lookups read the copy in place of the leaf's side in DRAM, and each
// insert changes it and persists it, as an insert into a leaf of one layer would. As in the paper,
// updates and erases change no metadata. The side in DRAM stays what structure modifications and
// scans go by, and recovery reads the entries only: it writes the copies anew.
//
// Invariants:
//   1. A slot's fingerprint is in the copy before its entry can be pending. Its bit in `inserted`
//   is there before the insert returns, and is not cleared.
//   2. The copy of a cold leaf is written under the lock of ColdLeaves only.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/nbtree/layout.h"
#include "index/nbtree/leaf.h"
#include "pm/access.h"
#include "pm/persist.h"
#include "pm/probe.h"
#include "util/line.h"

namespace perdix::detail::index::nbtree {

/// A byte of a slot, in the word of the fingerprints that has it.
constexpr std::uint64_t byte_of(unsigned slot, std::uint8_t byte) {
  return std::uint64_t{byte} << (slot % 8 * 8);
}

template <class K>
MetadataCopy& copy_of(const Leaf<K>& leaf) {
  char* const block = reinterpret_cast<char*>(&leaf.block());
  return *reinterpret_cast<MetadataCopy*>(block + bytes_before_copy(leaf.capacity()));
}

/// Writes the copy of a leaf that no other thread uses. Flushed.
template <class K>
void write_copy(const pm::Persister& pm, const Leaf<K>& leaf) {
  MetadataCopy image{};
  image.inserted = leaf.visible_slots();
  for (unsigned slot = 0; slot < leaf.capacity(); ++slot)
    image.fingerprints[slot / 8] |= byte_of(slot, leaf.fingerprint(slot));
  MetadataCopy& copy = copy_of(leaf);
  pm.copy(&copy, &image, sizeof copy);
  pm.flush(&copy, sizeof copy);  // the caller fences
}

/// Slots that have a key with this fingerprint, as the copy says.
template <class K>
std::uint64_t inserted_for(const Leaf<K>& leaf, std::uint8_t fingerprint) {
  const MetadataCopy& copy = copy_of(leaf);
  const std::uint64_t inserted = pm::load(copy.inserted);  // before the fingerprints, as in DRAM
  const std::size_t bytes = leaf.capacity() + 1;
  pm::on_read(copy.fingerprints.data(), bytes);
  const util::Line line = util::load_part_of_line(copy.fingerprints.data(), bytes);
  return util::equal_bytes(line, fingerprint) & inserted;
}

inline void set_bits(const pm::Persister& pm, std::uint64_t& word, std::uint64_t bits) {
  std::uint64_t before = pm::load(word);
  while ((before & bits) != bits && !pm.compare_exchange(word, before, before | bits)) {
  }
}

/// Notes the fingerprint of a slot that the caller has taken. Flushed.
template <class K>
void note_taken(const pm::Persister& pm, const Leaf<K>& leaf, unsigned slot,
                std::uint8_t fingerprint) {
  std::uint64_t& word = copy_of(leaf).fingerprints[slot / 8];
  set_bits(pm, word, byte_of(slot, fingerprint));
  pm.flush(&word, sizeof word);  // the persist of the entry fences
}

/// Notes all entries that are visible. Persisted.
template <class K>
void note_shown(const pm::Persister& pm, const Leaf<K>& leaf) {
  std::uint64_t& inserted = copy_of(leaf).inserted;
  set_bits(pm, inserted, leaf.visible_slots());
  pm.persist(&inserted, sizeof inserted);  // as a leaf of one layer, before the insert returns
}

/// Whether the copy has all that lookups need.
template <class K>
bool copy_is_sound(const Leaf<K>& leaf) {
  const MetadataCopy& copy = copy_of(leaf);
  if ((leaf.visible_slots() & ~pm::load(copy.inserted)) != 0) return false;
  for (unsigned slot = 0; slot < leaf.capacity(); ++slot) {
    const std::uint64_t word = pm::load(copy.fingerprints[slot / 8]);
    if ((word & byte_of(slot, 0xff)) != byte_of(slot, leaf.fingerprint(slot))) return false;
  }
  return true;
}

}  // namespace perdix::detail::index::nbtree
