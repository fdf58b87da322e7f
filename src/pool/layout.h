// What the first MiB of a pool holds. Offsets are from the start of the file; numbers are
// little-endian; docs/format/pool.md shows the same as tables.
//
//        0  superblock, copy 0          (4 KiB, first kSuperblockSize bytes used)
//    4 KiB  superblock, copy 1
//    8 KiB  owner block                 (pid of the process that has the pool open; a hint)
//   64 KiB  directory                   (kDirectoryEntries entries of 256 bytes)
//  320 KiB  journal entry               (64 bytes)
//  384 KiB  journal                     (640 KiB, pm/journal.h; used in the page_cache domain)
//    1 MiB  the allocator's header, then its chunks (alloc/layout.h)
//
// What is not named here is zero and reserved.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "alloc/layout.h"
#include "pm/offset.h"

namespace perdix::detail::pool {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

inline constexpr std::uint64_t kBlockSize = 4096;
inline constexpr pm::Offset kSuperblockOffset[2] = {0, kBlockSize};
inline constexpr pm::Offset kOwnerOffset = 2 * kBlockSize;
inline constexpr pm::Offset kDirectoryOffset = 64 * 1024;
inline constexpr std::size_t kDirectoryEntries = 1024;
inline constexpr pm::Offset kJournalEntryOffset = 320 * 1024;
inline constexpr pm::Offset kJournalOffset = 384 * 1024;
/// Names the area of the journal (pool/journal_area.h): the second word of the first one, of which
/// journals use only the first word of that page.
inline constexpr pm::Offset kJournalRootOffset = kJournalOffset + 8;
inline constexpr pm::Offset kPoolAreaSize = std::uint64_t{1} << 20;
static_assert(kPoolAreaSize == alloc::kPoolArea);

/// A pool's size is a multiple of this, and it grows by at least this.
inline constexpr std::uint64_t kGrowthUnit = alloc::kChunkSize;

/// References have 48 bits for an offset.
inline constexpr std::uint64_t kMaxPoolSize = std::uint64_t{1} << alloc::kOffsetBits;

inline constexpr std::uint32_t kFormatVersion = 2;
/// The journal may hold what the rest of the pool lacks: open, or not closed, in the page_cache
/// domain.
inline constexpr std::uint64_t kHasJournal = 1;
/// The pool holds addresses of memory inside it, so it is mapped at `address` and nowhere else.
inline constexpr std::uint64_t kFixedAddress = 2;
/// A value may lie in the block of its key (index/common/codec.h). From the first opening on by a
/// release that writes such blocks: one that does not know them would free a value by itself.
inline constexpr std::uint64_t kPairBlocks = 4;
/// The journal has two halves, with kHasJournal only. Without it the journal is one area, as
/// earlier releases write it.
inline constexpr std::uint64_t kJournalHalves = 8;
inline constexpr std::uint64_t kJournalFeatures = kHasJournal | kJournalHalves;
inline constexpr std::uint64_t kKnownFeatures = kJournalFeatures | kFixedAddress | kPairBlocks;

/// The unit of Superblock::address.
inline constexpr std::uint64_t kAddressUnit = std::uint64_t{2} << 20;
inline constexpr unsigned kAddressBits = 47;  // of a process

inline constexpr std::uint64_t kMagic = 0x004c4f4f50524450;          // "PDRPOOL\0"
inline constexpr std::uint64_t kCreationMagic = 0x0057454e50524450;  // "PDRPNEW\0"

/// Whether a pool was closed. Numbers that differ in many bits are not needed: the checksum covers
/// the field.
enum class Cleanness : std::uint8_t { clean = 1, unclean = 2 };
static_assert(sizeof(Cleanness) == 1);

/// Written whole, never in place of the newest copy: first into the other copy with the next
/// generation, then into this one. A copy counts if its checksum is right; the higher generation
/// wins. `magic`, `format_version`, `features`, `generation` and `checksum` keep their places in
/// every later format.
struct Superblock {
  std::uint64_t magic;           // kMagic; kCreationMagic (copy 0 only) until creation is complete
  std::uint32_t format_version;  // another one than kFormatVersion is refused
  std::uint32_t file_system;     // hash of the id of the file's file system; 0: unknown
  std::uint64_t features;        // bits; one that is not in kKnownFeatures is refused
  std::uint64_t generation;      // counts updates, from 1
  std::uint64_t size;            // bytes that the allocator may use; the file is never shorter
  std::uint64_t max_size;        // limit of `size` that was asked for last
  std::uint8_t uuid[16];         // random, from creation on
  std::uint8_t boot_id[16];      // of the machine's run in which the pool was opened last
  std::uint8_t domain;           // pm::Domain of the last opening
  std::uint8_t durability;       // perdix::Durability of the last opening, never automatic
  std::uint8_t requested_durability;  // as asked for, automatic included; the default for openings
  std::uint8_t cleanness;             // Cleanness
  std::uint32_t address;      // in kAddressUnits, where the pool is mapped; 0 without kFixedAddress
  std::uint64_t file_device;  // st_dev and st_ino of the file in which the pool was opened last
  std::uint64_t file_inode;   // 0: unknown
  std::uint64_t file_birth;   // nanoseconds; 0: unknown
  std::uint64_t boot_witness;  // of the run of the machine (origin.h); 0: there was none
  std::uint64_t checksum;      // XXH3 of the bytes before it
};

inline constexpr std::size_t kSuperblockSize = 128;
static_assert(sizeof(Superblock) == kSuperblockSize);
static_assert(std::is_trivially_copyable_v<Superblock>);
static_assert(std::has_unique_object_representations_v<Superblock>, "no padding");
static_assert(offsetof(Superblock, format_version) == 8);
static_assert(offsetof(Superblock, file_system) == 12);
static_assert(offsetof(Superblock, features) == 16);
static_assert(offsetof(Superblock, generation) == 24);
static_assert(offsetof(Superblock, size) == 32);
static_assert(offsetof(Superblock, max_size) == 40);
static_assert(offsetof(Superblock, uuid) == 48);
static_assert(offsetof(Superblock, boot_id) == 64);
static_assert(offsetof(Superblock, domain) == 80);
static_assert(offsetof(Superblock, durability) == 81);
static_assert(offsetof(Superblock, requested_durability) == 82);
static_assert(offsetof(Superblock, cleanness) == 83);
static_assert(offsetof(Superblock, address) == 84);
static_assert(offsetof(Superblock, file_device) == 88);
static_assert(offsetof(Superblock, file_inode) == 96);
static_assert(offsetof(Superblock, file_birth) == 104);
static_assert(offsetof(Superblock, boot_witness) == 112);
static_assert(offsetof(Superblock, checksum) == 120);

/// At kOwnerOffset. Not covered by a checksum: only the text of an error depends on it.
struct OwnerBlock {
  std::uint64_t pid;            // 0: none
  std::uint64_t pid_namespace;  // in which that is its pid (file_lock.h); 0: unknown
};
static_assert(sizeof(OwnerBlock) == 16);

/// At kJournalEntryOffset: the block that the journal has if it has one. A commit of the allocator
/// changes both words. Not read before the journal is replayed, which may hold it: an opening finds
/// the journal by the word at kJournalRootOffset.
struct JournalEntry {
  std::uint64_t block;  // 0: none, the journal lies at kJournalOffset
  std::uint64_t asked;  // PoolOptions::journal_size that was asked for last
  std::uint64_t reserved[6];
};
static_assert(sizeof(JournalEntry) == pm::kLineSize);

/// States of a directory entry. They differ in many bits, so that damage doesn't turn one into
/// another.
inline constexpr std::uint64_t kEntryFree = 0;
inline constexpr std::uint64_t kEntryLive = 0x3a96d2e4c75b810f;
inline constexpr std::uint64_t kEntryDropping = 0xc5692d1b38a47ef0;

/// One index. The first three lines are written once, while the entry is free, and persisted before
/// `state` says that it is live; only the last line changes afterwards. Free entries may hold
/// anything but in `state`.
struct DirectoryEntry {
  std::uint8_t name_size;    // 1..127
  std::uint8_t name[127];    // padded with zeros
  std::uint8_t engine_size;  // 1..31
  std::uint8_t engine[31];   // padded with zeros
  std::uint8_t key_kind;     // perdix::Kind
  std::uint8_t value_kind;   // perdix::Kind
  std::uint8_t model;        // perdix::DataModel
  std::uint8_t reserved0[21];
  std::uint64_t checksum;  // XXH3 of the bytes before it
  // The line that changes.
  std::uint64_t state;  // kEntryFree -> kEntryLive -> kEntryDropping -> kEntryFree
  std::uint64_t root;   // the engine's; 0: the index is new and empty
  std::uint64_t claim;  // free spans that are kept for the index (alloc/claim.h); the index has it
  std::uint8_t reserved1[40];
};

inline constexpr std::size_t kMaxEngineSize = 31;
static_assert(sizeof(DirectoryEntry) == 256);
static_assert(std::is_trivially_copyable_v<DirectoryEntry>);
static_assert(std::has_unique_object_representations_v<DirectoryEntry>, "no padding");
static_assert(offsetof(DirectoryEntry, name) == 1);
static_assert(offsetof(DirectoryEntry, engine_size) == 128);
static_assert(offsetof(DirectoryEntry, key_kind) == 160);
static_assert(offsetof(DirectoryEntry, value_kind) == 161);
static_assert(offsetof(DirectoryEntry, model) == 162);
static_assert(offsetof(DirectoryEntry, checksum) == 184);
static_assert(offsetof(DirectoryEntry, state) == 192);
static_assert(offsetof(DirectoryEntry, root) == 200);
static_assert(offsetof(DirectoryEntry, claim) == 208);
static_assert(offsetof(DirectoryEntry, state) / pm::kLineSize ==
                  offsetof(DirectoryEntry, root) / pm::kLineSize,
              "one line, so that the order of their stores is enough");
static_assert(offsetof(DirectoryEntry, state) % pm::kLineSize == 0, "nothing else is on the line");

static_assert(kDirectoryOffset + kDirectoryEntries * sizeof(DirectoryEntry) <= kJournalEntryOffset);
static_assert(kJournalEntryOffset + sizeof(JournalEntry) <= kJournalOffset);

}  // namespace perdix::detail::pool
