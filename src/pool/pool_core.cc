#include "pool/pool_core.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/recovery.h"
#include "epoch/guard.h"
#include "pm/probe.h"
#include "pool/forks.h"
#include "pool/placement.h"
#include "util/cancellation.h"

namespace perdix::detail::pool {
namespace {

constexpr std::uint64_t kDefaultMaxSize = std::uint64_t{1} << 40;

constexpr std::uint64_t round_up(std::uint64_t size) {
  return (size + kGrowthUnit - 1) / kGrowthUnit * kGrowthUnit;
}

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

std::uint64_t checked_initial_size(const PoolOptions& options, const std::string& path) {
  if (options.initial_size > kMaxPoolSize) {
    throw Error(Errc::invalid_argument,
                fmt::format("initial_size {} of pool '{}' is above the limit of {}",
                            options.initial_size, path, kMaxPoolSize));
  }
  return round_up(std::max<std::uint64_t>(options.initial_size, 1));
}

[[noreturn]] void throw_needs_check(const std::string& path, const std::string& why) {
  throw Error(
      Errc::needs_check,
      fmt::format("{}; run `perdix check {}`: if it finds no problem the pool can be opened "
                  "again, else restore a backup",
                  why, path));
}

}  // namespace

/// No thread may fork between the opening of the file and the moment when children are kept out.
template <class MakeFile>
std::shared_ptr<PoolCore> PoolCore::lock_file(MakeFile file) {
  const auto give_up = [](PoolCore* core) {
    core->health().forked() ? leave_to_parent(core) : delete core;
  };
  prepare_for_forks();
  const BootId boot = current_boot_id();
  std::unique_ptr<PoolCore> core;
  {
    const pm::NoFork no_fork;
    core.reset(new PoolCore(boot, file()));
    // After all that may throw: its end needs the lock of NoFork, too.
    core->lock_.emplace(core->file_, no_fork);
  }
  return std::shared_ptr<PoolCore>(core.release(), give_up);
}

std::shared_ptr<PoolCore> PoolCore::create(const std::filesystem::path& path,
                                           const PoolOptions& options) {
  return format(lock_file([&] { return pm::File::create(path); }), options);
}

std::shared_ptr<PoolCore> PoolCore::create(pm::File file, const PoolOptions& options) {
  return format(lock_file([&] { return std::move(file); }), options);
}

std::shared_ptr<PoolCore> PoolCore::format(std::shared_ptr<PoolCore> core,
                                           const PoolOptions& options) {
  core->format(checked_initial_size(options, core->path().string()), options);
  return core;
}

std::shared_ptr<PoolCore> PoolCore::open(const std::filesystem::path& path,
                                         const PoolOptions& options, Purpose purpose) {
  std::shared_ptr<PoolCore> core = lock_file([&] { return pm::File::open(path); });
  try {
    core->recover(options, purpose);
  } catch (const Error&) {
    core->require_usable();  // what was found may come of a page that is lost
    throw;
  }
  return core;
}

void PoolCore::format(std::uint64_t size, const PoolOptions& options) {
  plugins_ = options.plugins;
  const std::string path = file_.path().string();
  requested_max_size_ = checked_max_size(options, kDefaultMaxSize, size, path);
  file_.allocate(kGrowthUnit);
  // Huge pages take seconds for a large pool: the rest gets them in the background, below.
  file_.allocate(size, false);
  const auto uuid = random_uuid();
  map(size, options, 0, address_seed(uuid));
  if (size > kGrowthUnit) mapping_->populate(0, kGrowthUnit);
  choose_domain(options.durability, options.domain);
  // The marker and all that follows may reach the device only in a file of full length.
  if (decision_.survives_power()) file_.sync();
  superblock_.emplace(base_, *pm_);
  directory_.emplace(area<DirectoryEntry>(kDirectoryOffset), *pm_, path);  // fresh space: all free
  pm_->use_journal(journal_place());
  reclaimer_ = std::make_unique<epoch::Reclaimer>(pm::background_reclamation());
  alloc::Calloc::format(*this);

  Superblock first{};
  first.size = size;
  std::copy(uuid.begin(), uuid.end(), first.uuid);
  set_opened(first);
  superblock_->update(first);  // the commit: it is a pool
  was_clean_ = true;           // there is nothing that a crash could have left
  start();
  // On a disk touching would write all of it.
  if (file_.in_memory() || mapping_->dax()) growth_->touch(kGrowthUnit, size);
  file_.publish();  // the last that may fail: what was created is open, or it is not there
  open_ = true;
}

void PoolCore::recover(const PoolOptions& options, Purpose purpose) {
  plugins_ = options.plugins;
  const FoundSuperblock found = read_superblock_on_device(options.durability);
  const Superblock& before = found.superblock;
  const std::string path = file_.path().string();
  require_complete(before, purpose);
  requested_max_size_ = checked_max_size(options, before.max_size, before.size, path);
  sparse_ = file_.has_holes();
  if (sparse_) {  // of what is read next: to read a hole of a full tmpfs would raise SIGBUS
    const pm::FileRange headers{0, alloc::kLanesEnd};
    file_.fill_holes({&headers, 1});
  }
  map(before.size, options, before.address * kAddressUnit, address_seed(before.uuid));
  choose_domain(durability_of(before, options.durability), options.domain);
  const std::unique_ptr<pm::Replay> replay = replay_journal(before);
  superblock_.emplace(base_, *pm_, found);
  directory_.emplace(area<DirectoryEntry>(kDirectoryOffset), *pm_, path);
  directory_->check();
  const std::vector<pm::FileRange> used = chunks_in_use();
  reclaimer_ = std::make_unique<epoch::Reclaimer>(pm::background_reclamation());
  // Here the file is changed for the first time: all that opening relies on has been found sound.
  finish_replay(replay.get());
  // A verification leaves the superblock as it is, which must then say that the journal counts.
  if (!needs_check_ || has_journal(before)) pm_->use_journal(journal_place());
  if (sparse_) file_.fill_holes(used);
  // Growth that a crash interrupted, or that was made ready and not taken: it was never used.
  if (file_.size() > before.size) file_.truncate(before.size);
  was_clean_ = !unclean(before);
  if (!needs_check_) mark_open();  // invariant 1
  start();
  if (sparse_) file_.fill_holes(chunks_in_use());  // what recovery has brought into use
  open_ = true;
}

/// A pool whose syncs failed, or may have, is opened as its device has it: what the kernel has
/// cached of it may be newer, marked as written, and gone after the next power failure. What is
/// cached may also lie in large folios, which syncs write as a whole (docs/durability/pool.md).
FoundSuperblock PoolCore::read_superblock_on_device(Durability asked) {
  FoundSuperblock found = read_superblock(file_);
  const bool may_be_newer = unclean(found.superblock) && on_page_cache(found.superblock);
  if (!may_be_newer && durability_of(found.superblock, asked) != Durability::power) return found;
  file_.forget_cached();
  return read_superblock(file_);
}

/// Throws the first problem of the allocator's structures.
std::vector<pm::FileRange> PoolCore::chunks_in_use() {
  try {
    return alloc::validate(*this);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("pool '{}': {}", path().string(), error.what()));
  }
}

/// Throws needs_check if stores of the last run may be missing; a verification only remembers it.
void PoolCore::require_complete(const Superblock& before, Purpose purpose) {
  if (!unclean(before)) return;
  const bool other_run = process_only(before) && !origin_.same_run(before);
  const bool other_file = !origin_.same_file(before);
  needs_check_ = other_run || other_file;
  if (!needs_check_ || purpose == Purpose::verification) return;
  const std::string name = path().string();
  if (other_run) {
    throw_needs_check(name, fmt::format("the machine went down while pool '{}' was open, and the "
                                        "pool was only meant to survive the end of a process",
                                        name));
  }
  throw_needs_check(name,
                    fmt::format("'{}' is a copy of a pool that was not closed, so it may hold "
                                "half of what was written while it was copied",
                                name));
}

/// A limit that the caller did not ask for is lowered where the process has not as many addresses,
/// in quarters, so that it keeps some for other uses.
void PoolCore::map(std::uint64_t size, const PoolOptions& options, std::uint64_t fixed,
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
  size_.store(size, std::memory_order_release);
}

void PoolCore::choose_domain(Durability requested, DomainChoice choice) {
  requested_ = requested;
  decision_ = decide_domain(requested, choice, mapping_->granularity());
  pm_.emplace(decision_.domain, decision_.survives_power(), [this] { stop_reaching_file(); });
  growth_.emplace(file_, *mapping_, *pm_, decision_.survives_power());
}

/// The first failed sync of a pool ends here, before its thread or any other that relied on a sync
/// stores more (PageSync): what the file gets from now on would rest on what it may not have.
/// Operations that are going on end in memory of their own, and throw.
void PoolCore::stop_reaching_file() {
  health_->set_sync_failed();
  mapping_->make_private();
}

/// Before anything else of the pool is read, whatever domain it is opened in now. Null if there is
/// nothing to replay.
std::unique_ptr<pm::Replay> PoolCore::replay_journal(const Superblock& before) {
  if (!unclean(before) || !has_journal(before)) return nullptr;
  auto replay = std::make_unique<pm::Replay>(journal_place(), before.size, path().string());
  if (sparse_) file_.fill_holes(replay->pages());
  replay->apply();
  return replay;
}

void PoolCore::finish_replay(pm::Replay* replay) {
  pm::KernelSync device;
  if (replay != nullptr) replay->finish(device);
}

pm::JournalPlace PoolCore::journal_place() const {
  return {base_, kJournalOffset, kPoolAreaSize - kJournalOffset, kDirectoryOffset};
}

void PoolCore::set_opened(Superblock& superblock) const {
  superblock.max_size = requested_max_size_;
  origin_.store(superblock);
  superblock.domain = static_cast<std::uint8_t>(decision_.domain);
  superblock.durability = static_cast<std::uint8_t>(decision_.durability);
  superblock.requested_durability = static_cast<std::uint8_t>(requested_);
  superblock.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
  superblock.features &= kFixedAddress;
  if (pm_->commits_as_one()) superblock.features |= kHasJournal;
}

void PoolCore::mark_open() {
  // The content must be on the device before the pool claims to survive power failures. It may not
  // be: the last run may have been a `process` one, or the file was just copied or restored.
  if (decision_.survives_power()) file_.sync();
  change_cleanness([this](Superblock& next) { set_opened(next); });
}

void PoolCore::start() {
  allocator_ = std::make_unique<alloc::Calloc>(*this);  // repairs what a crash left
  handles_.assign(kDirectoryEntries, 0);
  // Not persisted: it matters only while this process lives.
  auto* const owner = area<OwnerBlock>(kOwnerOffset);
  pm_->store(owner->pid_namespace, pid_namespace());
  pm_->store(owner->pid, static_cast<std::uint64_t>(::getpid()));
  require_usable();
}

PoolCore::~PoolCore() {
  const util::NotCancelled not_cancelled;
  if (!open_) {  // closed, or never quite opened
    end_work();
    unmap();
    return;
  }
  try {
    shut_down();
  } catch (const std::exception&) {
    // The pool stays unclean, so the next opening repairs it, or refuses it if it must.
  }
}

/// Calls use(), which uses the file. If the program has closed it, the pool takes no more changes:
/// the space that they would need can't be had, and close() can't make them durable.
template <class Use>
void PoolCore::unless_file_is_lost(Use use) {
  try {
    file_.require_ours();
    use();
  } catch (const Error&) {
    if (!file_.is_ours()) health_->set_file_lost();
    throw;
  }
}

void PoolCore::extend(std::uint64_t new_size) {
  const util::NotCancelled not_cancelled;
  const std::lock_guard guard(superblock_mutex_);
  require_writable();
  if (new_size > max_size_) {  // a whole number of units, so rounding up doesn't exceed it
    const bool lowered = max_size_ < requested_max_size_;
    throw Error(
        Errc::out_of_space,
        fmt::format("pool '{}' has {} bytes and can't grow to {}: {} {}; {}", path().string(),
                    size(), new_size,
                    lowered ? "the process that opened it had addresses for" : "its max_size is",
                    max_size_,
                    lowered ? "raise the limit of address space (ulimit -v; of locked memory, "
                              "ulimit -l, after mlockall), or open fewer pools at once"
                            : "open it with a larger one"));
  }
  Superblock next = superblock_->current();
  next.size = round_up(new_size);
  if (next.size <= size()) return;
  unless_file_is_lost([&] { growth_->take(next.size); });
  superblock_->update(next);  // invariant 2: the space is there, now it counts, then it is used
  require_usable();
  size_.store(next.size, std::memory_order_release);
}

bool PoolCore::has_fixed_address() const {
  const std::lock_guard guard(superblock_mutex_);
  return (superblock_->current().features & kFixedAddress) != 0;
}

void PoolCore::fix_address() {
  if (has_fixed_address()) return;
  const std::lock_guard guard(superblock_mutex_);
  require_writable();
  Superblock next = superblock_->current();
  next.features |= kFixedAddress;
  next.address = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(base_) / kAddressUnit);
  superblock_->update(next);
  require_usable();
}

bool PoolCore::provide(pm::Offset offset, std::uint64_t bytes) {
  if (!sparse_) return true;
  const util::NotCancelled not_cancelled;
  try {
    const pm::FileRange range{offset, offset + bytes};
    unless_file_is_lost([&] { file_.fill_holes({&range, 1}); });
    return true;
  } catch (const Error&) {
    return false;
  }
}

void PoolCore::prepare(pm::Offset offset, std::uint64_t bytes) {
  if (contains(offset, bytes)) growth_->touch(offset, offset + bytes);
}

bool PoolCore::reclaim_space() {
  if (epoch::Guard::held()) return false;
  const util::NotCancelled not_cancelled;
  const bool given_back = open_indexes_.reclaim_space();
  const bool freed = allocator_->reclaim();  // what was just given back has its own grace period
  return given_back || freed;
}

void PoolCore::throw_unusable() const { health_->throw_unusable(path().string()); }

void PoolCore::require_open() const {
  if (open_) return;
  throw Error(Errc::invalid_argument,
              fmt::format("pool '{}' has been closed; open it again", path().string()));
}

/// Each call begins with this, in this order: in a child the mutex may never be released.
PoolCore::Lock PoolCore::lock_open() const {
  if (health_->forked()) throw_unusable();
  Lock lock(mutex_);
  require_open();
  require_usable();
  return lock;
}

bool PoolCore::is_open() const {
  const std::lock_guard guard(mutex_);
  return open_;
}

IndexHandle PoolCore::open_index(IndexInfo wanted) {
  require_index_name(wanted.name);
  const Lock lock = lock_open();
  if (const auto slot = directory_->find(wanted.name)) {
    directory_->require_same(*slot, wanted);
    require_not_in_use(*slot);
    return handle(*slot, std::move(wanted), false);
  }
  require_writable();
  const Directory::Slot slot = directory_->add(wanted);
  require_usable();
  return handle(slot, std::move(wanted), true);
}

IndexHandle PoolCore::open_index(std::string_view name, std::string_view engine, Kind key_kind,
                                 Kind value_kind) {
  return open_index({std::string(name), std::string(engine), key_kind, value_kind});
}

std::optional<IndexHandle> PoolCore::open_existing_index(std::string_view name) {
  const Lock lock = lock_open();
  const auto slot = directory_->find(name);
  if (!slot) return std::nullopt;
  require_not_in_use(*slot);
  return handle(*slot, directory_->info(*slot), false);
}

std::vector<IndexInfo> PoolCore::indexes() const {
  const Lock lock = lock_open();
  std::vector<IndexInfo> result;
  for (const Directory::Slot slot : directory_->live()) result.push_back(directory_->info(slot));
  std::sort(result.begin(), result.end(),
            [](const IndexInfo& a, const IndexInfo& b) { return a.name < b.name; });
  return result;
}

Directory::Slot PoolCore::slot_of(std::string_view name) const {
  if (const auto slot = directory_->find(name)) return *slot;
  throw Error(Errc::not_found, fmt::format("pool '{}' has no index '{}'", path().string(), name));
}

IndexInfo PoolCore::index_info(std::string_view name) const {
  const Lock lock = lock_open();
  return directory_->info(slot_of(name));
}

IndexHandle PoolCore::begin_drop(std::string_view name) {
  const Lock lock = lock_open();
  const Directory::Slot slot = slot_of(name);
  require_not_in_use(slot);
  IndexInfo info = directory_->info(slot);
  require_writable();
  directory_->begin_drop(slot);
  require_usable();
  return handle(slot, std::move(info), false);
}

IndexHandle PoolCore::another(const IndexHandle& index) noexcept {
  assert(&index.pool() == this);
  const std::lock_guard guard(mutex_);
  return handle(index.slot_, {}, false);
}

void PoolCore::begin_drop(const IndexHandle& index) {
  const Lock lock = lock_open();
  require_writable();
  assert(&index.pool() == this && handles_[index.slot_] == 1);
  directory_->begin_drop(index.slot_);
  require_usable();
}

std::vector<IndexHandle> PoolCore::dropping() {
  const Lock lock = lock_open();
  const std::vector<Directory::Slot> slots = directory_->dropping();
  std::vector<IndexInfo> infos;
  for (const Directory::Slot slot : slots) infos.push_back(directory_->info(slot));
  std::vector<IndexHandle> result;
  result.reserve(slots.size());
  // Nothing is allocated from here on: a handle that an exception destroys would take the lock.
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (handles_[slots[i]] == 0) result.push_back(handle(slots[i], std::move(infos[i]), false));
  }
  return result;
}

void PoolCore::finish_drop(IndexHandle&& index) {
  assert(&index.pool() == this);
  const std::shared_ptr<PoolCore> self = index.pool_;  // the pool doesn't end while it is locked
  const std::lock_guard guard(mutex_);
  directory_->finish_drop(index.slot_);
  why_postponed_.erase(index.slot_);
  // Under the same lock: the next index may take the slot immediately, and would count as open.
  --handles_[index.slot_];
  index.pool_.reset();
  require_usable();
}

void PoolCore::postpone_drop(IndexHandle index, std::string_view why) noexcept {
  assert(&index.pool() == this);
  const std::lock_guard guard(mutex_);
  try {
    why_postponed_.insert_or_assign(index.slot_, std::string(why));
  } catch (const std::bad_alloc&) {
    // Then it is listed without a reason.
  }
}

/// Allocates nothing: the caller's changes for the index are complete.
IndexHandle PoolCore::handle(Directory::Slot slot, IndexInfo info, bool created) noexcept {
  ++handles_[slot];
  return {shared_from_this(), slot, directory_->root(slot), std::move(info), created};
}

void PoolCore::release(Directory::Slot slot) noexcept {
  const std::lock_guard guard(mutex_);
  --handles_[slot];
}

void PoolCore::require_not_in_use(Directory::Slot slot) const {
  if (handles_[slot] == 0) return;
  throw Error(
      Errc::in_use,
      fmt::format("index '{}' of pool '{}' is open; close it first (an index is open at most "
                  "once)",
                  directory_->info(slot).name, path().string()));
}

std::vector<UnfinishedDrop> PoolCore::list_unfinished_drops() const {
  std::vector<UnfinishedDrop> drops;
  for (const Directory::Slot slot : directory_->dropping()) {
    if (handles_[slot] != 0) continue;  // is being dropped
    const auto why = why_postponed_.find(slot);
    drops.push_back({directory_->info(slot),
                     why != why_postponed_.end() ? why->second : "the process had no memory"});
  }
  return drops;
}

std::vector<UnfinishedDrop> PoolCore::unfinished_drops() const {
  const Lock lock = lock_open();
  return list_unfinished_drops();
}

PoolInfo PoolCore::info() const {
  const Lock lock = lock_open();
  PoolInfo info;
  info.path = path();
  info.format_version = kFormatVersion;  // there is no other one that can be open
  info.size = size();
  info.allocated = allocator_->bytes_allocated();
  info.max_size = max_size_;
  info.address = reinterpret_cast<std::uintptr_t>(base_);
  info.fixed_address = has_fixed_address();
  info.durability = decision_.durability;
  info.domain = to_string(decision_.domain);
  info.dax = mapping_->dax();
  info.was_clean = was_clean_;
  info.in_memory = file_.is_ours() && file_.in_memory();
  info.may_copy_on_write = file_.is_ours() && file_.may_copy_on_write();
  info.unfinished_drops = list_unfinished_drops();
  return info;
}

bool PoolCore::huge_pages() const {
  const Lock lock = lock_open();
  return mapping_->huge_pages();
}

bool PoolCore::needs_check() const {
  const std::lock_guard guard(mutex_);
  return needs_check_;
}

void PoolCore::accept_after_check() {
  const Lock lock = lock_open();
  if (!needs_check_) return;
  mark_open();
  needs_check_ = false;
}

void PoolCore::close() {
  if (health_->forked()) throw_unusable();
  const std::lock_guard guard(mutex_);
  require_open();
  require_unused();
  shut_down();
}

void PoolCore::require_unused() const {
  for (Directory::Slot slot = 0; slot < handles_.size(); ++slot) require_not_in_use(slot);
  if (checks_ == 0) return;
  throw Error(Errc::in_use,
              fmt::format("pool '{}' is being checked; close it after that", path().string()));
}

PoolCore::Checking::Checking(PoolCore& core) : core_(core) {
  const Lock lock = core.lock_open();
  ++core.checks_;
}

PoolCore::Checking::~Checking() {
  const std::lock_guard guard(core_.mutex_);
  --core_.checks_;
}

template <class Change>
void PoolCore::change_cleanness(Change change) {
  const std::lock_guard guard(superblock_mutex_);
  Superblock next = superblock_->current();
  change(next);
  superblock_->update(next);
  require_usable();
  file_.set_times();  // on tmpfs and DAX no store through the mapping does
  // After a power failure "clean" must be true of any pool. In a `process` pool persist() doesn't
  // reach the device, so this one word of it is synced explicitly.
  if (!decision_.survives_power()) mapping_->sync(0, 2 * kBlockSize);
}

void PoolCore::mark_clean() {
  require_usable();
  if (needs_check_) return;  // opened for verification, and not accepted: it stays refused
  // All stores of a `process` pool go to the device before the pool is called clean.
  unless_file_is_lost([&] {
    if (!decision_.survives_power()) file_.sync();
  });
  pm_->checkpoint();  // a clean pool's journal is empty
  require_usable();
  change_cleanness([](Superblock& next) {
    next.cleanness = static_cast<std::uint8_t>(Cleanness::clean);
    next.features &= kFixedAddress;
  });
}

void PoolCore::shut_down() {
  open_ = false;
  std::exception_ptr failure;
  // Retired objects may still free blocks. Disposing of it may retire more.
  while (reclaimer_->pending() > 0) reclaimer_->drain_for_good();
  end_work();
  pm_->store(area<OwnerBlock>(kOwnerOffset)->pid, 0);
  try {
    mark_clean();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  let_go();
  if (failure) std::rethrow_exception(failure);
}

/// Ends all that may still change the pool.
void PoolCore::end_work() noexcept {
  allocator_.reset();
  reclaimer_.reset();
  growth_.reset();
}

void PoolCore::unmap() noexcept {
  directory_.reset();
  superblock_.reset();
  lost_pages_.reset();
  mapping_.reset();
}

void PoolCore::let_go() noexcept {
  const std::uint64_t used = size();
  unmap();
  try {
    // Made ready ahead of use, and not used. A file whose sync has failed is left as it is.
    if (health_->usable() && file_.size() > used) file_.truncate(used);
  } catch (const std::exception&) {
    // Then the next opening cuts it off.
  }
  lock_.reset();
  file_.close();
}

}  // namespace perdix::detail::pool
