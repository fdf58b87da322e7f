#include "pool/superblock.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/pool.h>

#include "pm/domain.h"
#include "util/checksum.h"

namespace perdix::detail::pool {
namespace {

struct Copies {
  std::array<std::uint8_t, 2 * kBlockSize> bytes{};
  std::size_t present = 0;  // bytes that the file has of them; the rest reads as zero

  bool whole(int i) const { return kSuperblockOffset[i] + kSuperblockSize <= present; }

  Superblock copy(int i) const {
    Superblock superblock;
    std::memcpy(&superblock, bytes.data() + kSuperblockOffset[i], sizeof(superblock));
    return superblock;
  }
};

bool valid(const Superblock& s) { return s.magic == kMagic && s.checksum == checksum_of(s); }

std::optional<FoundSuperblock> newest_valid(const Copies& copies) {
  std::optional<FoundSuperblock> best;
  for (int i : {0, 1}) {
    const Superblock candidate = copies.copy(i);
    if (!copies.whole(i) || !valid(candidate)) continue;
    if (!best || candidate.generation > best->superblock.generation)
      best = FoundSuperblock{candidate, i};
  }
  return best;
}

[[noreturn]] void throw_newer(const std::string& path, std::uint32_t version) {
  throw Error(
      Errc::newer_format,
      fmt::format("'{}' was written by a later release of perdix (format {}, this one knows "
                  "up to {}); open it with that release",
                  path, version, kFormatVersion));
}

[[noreturn]] void throw_older(const std::string& path, std::uint32_t version) {
  throw Error(
      Errc::older_format,
      fmt::format("'{}' has the format {}, which no release of perdix has had (this one has "
                  "{}); dump its indexes with the version that wrote it, and load them into "
                  "a new pool",
                  path, version, kFormatVersion));
}

[[noreturn]] void throw_not_a_pool(const std::string& path, const Copies& copies) {
  const Superblock first = copies.copy(0), second = copies.copy(1);
  for (const Superblock& s : {first, second}) {
    if (s.magic == kMagic && s.format_version > kFormatVersion) throw_newer(path, s.format_version);
  }
  if (first.magic == kCreationMagic) {
    throw Error(
        Errc::not_a_pool,
        fmt::format("the creation of pool '{}' was interrupted, so it holds nothing; remove "
                    "the file and create the pool again",
                    path));
  }
  if (first.magic == kMagic || second.magic == kMagic) {
    throw Error(
        Errc::not_a_pool,
        fmt::format("both superblocks of pool '{}' are damaged; restore it from a backup", path));
  }
  const bool blank = std::all_of(copies.bytes.begin(), copies.bytes.end(),
                                 [](std::uint8_t byte) { return byte == 0; });
  throw Error(Errc::not_a_pool,
              blank
                  ? fmt::format("'{}' is empty: it is not a pool, or its creation was interrupted "
                                "before it held anything; remove the file and create the pool",
                                path)
                  : fmt::format("'{}' is not a pool of perdix; check the path", path));
}

bool known_domain(std::uint8_t domain) {
  return domain >= static_cast<std::uint8_t>(pm::Domain::cpu_cache) &&
         domain <= static_cast<std::uint8_t>(pm::Domain::page_cache);
}

bool sound(const Superblock& s) {
  const bool sizes = s.size >= kGrowthUnit && s.size % kGrowthUnit == 0 && s.size <= s.max_size &&
                     s.max_size <= kMaxPoolSize;
  const bool durable = s.durability == static_cast<std::uint8_t>(Durability::process) ||
                       s.durability == static_cast<std::uint8_t>(Durability::power);
  const bool requested = s.requested_durability <= static_cast<std::uint8_t>(Durability::power);
  const bool cleanness = s.cleanness == static_cast<std::uint8_t>(Cleanness::clean) ||
                         s.cleanness == static_cast<std::uint8_t>(Cleanness::unclean);
  const bool fixed = (s.features & kFixedAddress) != 0;
  const bool address = fixed == (s.address != 0) &&
                       s.address * kAddressUnit + s.size <= std::uint64_t{1} << kAddressBits;
  return sizes && address && known_domain(s.domain) && durable && requested && cleanness;
}

}  // namespace

std::uint64_t checksum_of(const Superblock& superblock) noexcept {
  return util::checksum(&superblock, offsetof(Superblock, checksum));
}

FoundSuperblock read_superblock(const pm::File& file) {
  const std::string path = file.path().string();
  Copies copies;
  copies.present = file.read(0, copies.bytes.data(), copies.bytes.size());
  const std::optional<FoundSuperblock> found = newest_valid(copies);
  if (!found) throw_not_a_pool(path, copies);
  const Superblock& s = found->superblock;
  if (s.format_version > kFormatVersion) throw_newer(path, s.format_version);
  if ((s.features & ~kKnownFeatures) != 0) {
    throw Error(Errc::newer_format,
                fmt::format("'{}' uses features that this release of perdix doesn't know (bits "
                            "{:#x}); open it with the release that wrote it",
                            path, s.features & ~kKnownFeatures));
  }
  if (s.format_version > 0 && s.format_version < kFormatVersion)
    throw_older(path, s.format_version);
  if (s.format_version == 0 || !sound(s)) {
    throw Error(Errc::corrupt,
                fmt::format("the superblock of pool '{}' contradicts itself; restore "
                            "it from a backup",
                            path));
  }
  const std::uint64_t present = file.size();
  if (present < s.size) {
    throw Error(Errc::truncated, fmt::format("pool '{}' has {} bytes of the {} that it was given: "
                                             "it was cut off; restore it from a backup",
                                             path, present, s.size));
  }
  return *found;
}

SuperblockStore::SuperblockStore(std::byte* base, const pm::Persister& persister)
    : base_(base), pm_(persister) {
  auto* first = reinterpret_cast<Superblock*>(base_ + kSuperblockOffset[0]);
  // This is written first: from now on a process that opens the file knows what it is.
  pm_.publish(first->magic, kCreationMagic);
}

void SuperblockStore::update(Superblock next) {
  next.magic = kMagic;
  next.format_version = kFormatVersion;
  next.generation = current_.generation + 1;
  next.checksum = checksum_of(next);
  const int older = 1 - newest_;
  write(older, next);    // invariant 2: from here on the new state counts
  write(newest_, next);  // so that damage to one copy never brings an old state back
  current_ = next;
}

void SuperblockStore::write(int copy, const Superblock& superblock) {
  std::byte* to = base_ + kSuperblockOffset[copy];
  pm_.copy(to, &superblock, sizeof(superblock));
  // A copy must be durable before the next one is touched, or both could be torn together. No order
  // is needed inside of it: the checksum tells a torn one.
  pm_.persist_in_place(to, sizeof(superblock));  // openings read it before the journal
}

}  // namespace perdix::detail::pool
