#include "pool/mapped_file.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/layout.h"
#include "pool/journal_area.h"
#include "pool/placement.h"

namespace perdix::detail::pool {
namespace {

constexpr std::uint64_t kDefaultMaxSize = std::uint64_t{1} << 40;

/// The limit of growth, in whole units: what the options ask for, else what the pool remembers.
std::uint64_t checked_max_size(const PoolOptions& options, std::uint64_t remembered,
                               std::uint64_t size, const std::string& path) {
  const std::uint64_t wanted = options.max_size != 0 ? options.max_size : remembered;
  if (wanted > kMaxPoolSize) {
    throw Error(Errc::invalid_argument,
                fmt::format("max_size {} of pool '{}' is above the limit of {}", wanted, path,
                            kMaxPoolSize));
  }
  const std::uint64_t limit = wanted / kGrowthUnit * kGrowthUnit;
  if (size > limit) {
    throw Error(Errc::invalid_argument,
                fmt::format("max_size {} of pool '{}' is smaller than its size, {}; ask for more",
                            wanted, path, size));
  }
  return limit;
}

}  // namespace

void MappedFile::format(std::uint64_t size, const PoolOptions& options, std::uint64_t seed) {
  requested_max_size_ = checked_max_size(options, kDefaultMaxSize, size, path().string());
  file_.allocate(kGrowthUnit);
  // Huge pages take seconds for a large pool: the rest gets them in the background (publish()).
  file_.allocate(size, false);
  map(size, options, 0, seed);
  if (size > kGrowthUnit) mapping_->populate(0, kGrowthUnit);
  choose_domain(options.durability, options.domain);
  // The marker and all that follows may reach the device only in a file of full length.
  sync_for_power();
}

FoundSuperblock MappedFile::read_superblock_on_device(Durability asked) {
  FoundSuperblock found = read_superblock(file_);
  const bool may_be_newer = unclean(found.superblock) && on_page_cache(found.superblock);
  if (!may_be_newer && durability_of(found.superblock, asked) != Durability::power) return found;
  file_.forget_cached();
  return read_superblock(file_);
}

void MappedFile::map(const Superblock& before, const PoolOptions& options) {
  requested_max_size_ = checked_max_size(options, before.max_size, before.size, path().string());
  sparse_ = file_.has_holes();
  const pm::FileRange headers{0, alloc::kLanesEnd};  // what is read next
  fill({&headers, 1});
  map(before.size, options, before.address * kAddressUnit, address_seed(before.uuid));
  choose_domain(durability_of(before, options.durability), options.domain);
}

/// A limit that the caller did not ask for is lowered where the process has not as many addresses,
/// in quarters, so that it keeps some for other uses.
void MappedFile::map(std::uint64_t size, const PoolOptions& options, std::uint64_t fixed,
                     std::uint64_t seed) {
  const std::uint64_t address = checked_address(options, fixed, path().string());
  max_size_ = requested_max_size_;
  while (!mapping_) {
    try {
      map_pool(mapping_, file_, {size, max_size_, address, seed});
    } catch (const Error& error) {
      const bool lower =
          error.code() == Errc::out_of_space && options.max_size == 0 && max_size_ > size;
      if (!lower) throw;
      max_size_ = std::max(size, max_size_ / 4 / kGrowthUnit * kGrowthUnit);
    }
  }
  lost_pages_.emplace(*mapping_, *health_);
  base_ = mapping_->base();
  set_size(size);
}

void MappedFile::choose_domain(Durability requested, DomainChoice choice) {
  requested_ = requested;
  decision_ = decide_domain(requested, choice, mapping_->granularity());
  pm_.emplace(decision_.domain, survives_power(), [this] { stop_reaching_file(); });
  growth_.emplace(file_, *mapping_, *pm_, survives_power());
}

/// The first failed sync of a pool ends here, before its thread or any other that relied on a sync
/// stores more (PageSync): what the file gets from now on would rest on what it may not have.
/// Operations that are going on end in memory of their own, and throw.
void MappedFile::stop_reaching_file() {
  health_->set_sync_failed();
  mapping_->make_private();
}

std::unique_ptr<pm::Replay> MappedFile::replay_journal(const Superblock& before) {
  if (!unclean(before) || !has_journal(before)) return nullptr;
  pm::JournalPlace place = journal_place(kFirstJournal, 1);
  if (has_halves(before)) {
    const auto named = named_journal(*area<std::uint64_t>(kJournalRootOffset));
    if (!named || named->end > before.size) {
      throw Error(Errc::corrupt, fmt::format("pool '{}' does not say where its journal is; restore "
                                             "the pool from a backup",
                                             path().string()));
    }
    fill({&*named, 1});
    place = journal_place(*named, 2);
  }
  auto replay = std::make_unique<pm::Replay>(place, before.size, path().string());
  if (sparse_) file_.fill_holes(replay->pages());
  replay->apply();
  return replay;
}

pm::JournalPlace MappedFile::journal_place(pm::FileRange area, unsigned halves) const {
  return {base_,  area.begin,         area.end - area.begin, kDirectoryOffset,
          halves, kJournalRootOffset, journal_name(area)};
}

void MappedFile::use_journal() {
  if (pm_->domain() == pm::Domain::page_cache)
    second_mapping_ = pm::SecondMapping::create(file_, base_);
  pm_->use_journal(journal_place(kFirstJournal, 2), second_mapping_.get());
  if (pm_->commits_as_one()) journal_size_ = kMinJournal;
}

void MappedFile::move_journal(pm::FileRange area, bool fresh) {
  const std::uint64_t bytes = area.end - area.begin;
  if (fresh) {
    // All of it at once: a batch in space that was never written would cost its sync a change of
    // the file system's own data.
    std::memset(base_ + area.begin, 0, bytes);
    pm_->sync_file(file_);
  }
  pm_->move_journal(journal_place(area, 2));
  journal_size_ = bytes;
}

void MappedFile::fill(std::span<const pm::FileRange> used) {
  if (sparse_) file_.fill_holes(used);
}

void MappedFile::cut_off_growth() {
  if (file_.size() > size()) file_.truncate(size());
}

void MappedFile::publish() {
  if (file_.in_memory() || mapping_->dax()) growth_->touch(kGrowthUnit, size());
  file_.publish();  // last: all that a new pool has is there
}

/// Calls use(), which uses the file. If the program has closed it, the pool takes no more changes:
/// the space that they would need can't be had, and close() can't make them durable.
template <class Use>
void MappedFile::unless_file_is_lost(Use use) {
  try {
    file_.require_ours();
    use();
  } catch (const Error&) {
    if (!file_.is_ours()) health_->set_file_lost();
    throw;
  }
}

void MappedFile::set_opened(Superblock& superblock) const {
  superblock.max_size = requested_max_size_;
  origin_.store(superblock);
  superblock.domain = static_cast<std::uint8_t>(decision_.domain);
  superblock.durability = static_cast<std::uint8_t>(decision_.durability);
  superblock.requested_durability = static_cast<std::uint8_t>(requested_);
  superblock.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
  superblock.features &= ~kJournalFeatures;
  superblock.features |= kPairBlocks;
  if (pm_->commits_as_one()) superblock.features |= kJournalFeatures;
}

void MappedFile::describe(PoolInfo& info) const {
  info.path = path();
  info.size = size();
  info.max_size = max_size_;
  info.address = reinterpret_cast<std::uintptr_t>(base_);
  info.durability = decision_.durability;
  info.domain = to_string(decision_.domain);
  info.journal_size = journal_size_;
  info.dax = mapping_->dax();
  info.in_memory = file_.is_ours() && file_.in_memory();
  info.may_copy_on_write = file_.is_ours() && file_.may_copy_on_write();
}

void MappedFile::require_limit(std::uint64_t size) const {
  if (size <= max_size_) return;  // a whole number of units, so rounding up doesn't exceed it
  const bool lowered = max_size_ < requested_max_size_;
  throw Error(
      Errc::out_of_space,
      fmt::format("pool '{}' has {} bytes and can't grow to {}: {} {}; {}", path().string(),
                  this->size(), size,
                  lowered ? "the process that opened it had addresses for" : "its max_size is",
                  max_size_,
                  lowered ? "raise the limit of address space (ulimit -v; of locked memory, "
                            "ulimit -l, after mlockall), or open fewer pools at once"
                          : "open it with a larger one"));
}

void MappedFile::take(std::uint64_t size) {
  unless_file_is_lost([&] { growth_->take(size); });
}

bool MappedFile::provide(pm::Offset offset, std::uint64_t bytes) {
  try {
    const pm::FileRange range{offset, offset + bytes};
    unless_file_is_lost([&] { file_.fill_holes({&range, 1}); });
    return true;
  } catch (const Error&) {
    return false;
  }
}

void MappedFile::sync_for_power() {
  if (survives_power()) file_.sync();
}

void MappedFile::sync_superblock() {
  file_.set_times();  // on tmpfs and DAX no store through the mapping does
  // After a power failure "clean" must be true of any pool. In a `process` pool persist() doesn't
  // reach the device, so this one word of it is synced explicitly.
  if (!survives_power()) mapping_->sync(0, 2 * kBlockSize);
}

void MappedFile::end_threads() noexcept {
  growth_.reset();
  if (pm_) pm_->end_background();
}

void MappedFile::make_durable() {
  unless_file_is_lost([&] {
    if (!survives_power()) file_.sync();
  });
  pm_->checkpoint();
}

void MappedFile::unmap() noexcept {
  second_mapping_.reset();
  lost_pages_.reset();
  mapping_.reset();
}

void MappedFile::close() noexcept {
  unmap();
  try {
    if (health_->usable()) cut_off_growth();  // a file whose sync has failed is left as it is
  } catch (const std::exception&) {
    // Then the next opening cuts it off.
  }
  lock_.reset();
  file_.close();
}

}  // namespace perdix::detail::pool
