#include "pool/pool_core.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "pm/probe.h"
#include "pool/boot_id.h"

namespace perdix::pool {
namespace {

constexpr std::uint64_t round_up(std::uint64_t size) {
  return (size + kGrowthUnit - 1) / kGrowthUnit * kGrowthUnit;
}

/// The limit of growth that the options ask for, in whole units.
std::uint64_t checked_max_size(const PoolOptions& options, std::uint64_t size,
                               const std::string& path) {
  if (options.max_size > kMaxPoolSize) {
    throw Error(Errc::invalid_argument,
                fmt::format("max_size {} of pool '{}' is above the limit of {}", options.max_size,
                            path, kMaxPoolSize));
  }
  const std::uint64_t limit = options.max_size / kGrowthUnit * kGrowthUnit;
  if (size > limit) {
    throw Error(Errc::invalid_argument,
                fmt::format("max_size {} of pool '{}' is smaller than its size, {}; ask for more",
                            options.max_size, path, size));
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

BootId boot_id_of(const Superblock& superblock) {
  BootId id;
  std::copy(std::begin(superblock.boot_id), std::end(superblock.boot_id), id.begin());
  return id;
}

bool unclean(const Superblock& superblock) {
  return superblock.cleanness == static_cast<std::uint8_t>(Cleanness::unclean);
}

bool process_only(const Superblock& superblock) {
  return superblock.durability == static_cast<std::uint8_t>(Durability::process);
}

/// Whether stores of the last run may be lost: they were only meant to survive the process, and the
/// machine went down with it.
bool may_have_lost_stores(const Superblock& superblock) {
  return unclean(superblock) && process_only(superblock) &&
         !same_boot(boot_id_of(superblock), current_boot_id());
}

std::string both(std::string_view engine, Kind key, Kind value) {
  return fmt::format("engine '{}' with {} keys and {} values", engine, to_string(key),
                     to_string(value));
}

void require_same(const IndexInfo& found, std::string_view engine, Kind key, Kind value,
                  const std::string& path) {
  const bool same_engine = found.engine == engine;
  if (same_engine && found.key_kind == key && found.value_kind == value) return;
  throw Error(same_engine ? Errc::wrong_kind : Errc::wrong_engine,
              fmt::format("index '{}' of pool '{}' has {}, but is opened as {}; open it as what it "
                          "is, or choose another name",
                          found.name, path, both(found.engine, found.key_kind, found.value_kind),
                          both(engine, key, value)));
}

}  // namespace

std::shared_ptr<PoolCore> PoolCore::create(const std::filesystem::path& path,
                                           const PoolOptions& options) {
  return create(pm::File::create(path), options);
}

std::shared_ptr<PoolCore> PoolCore::create(pm::File file, const PoolOptions& options) {
  std::shared_ptr<PoolCore> core(new PoolCore(std::move(file)));
  core->format(checked_initial_size(options, core->path().string()), options);
  return core;
}

std::shared_ptr<PoolCore> PoolCore::open(const std::filesystem::path& path,
                                         const PoolOptions& options, Purpose purpose) {
  std::shared_ptr<PoolCore> core(new PoolCore(pm::File::open(path)));
  core->recover(options, purpose);
  return core;
}

void PoolCore::format(std::uint64_t size, const PoolOptions& options) {
  const std::string path = file_.path().string();
  const std::uint64_t max_size = checked_max_size(options, size, path);
  file_.allocate(size);
  map(size, max_size);
  if (size > kGrowthUnit) mapping_->populate(0, kGrowthUnit);
  choose_domain(options.durability, options.domain);
  // The marker and all that follows may reach the device only in a file of full length.
  if (decision_.survives_power()) file_.sync();
  superblock_.emplace(base_, *pm_);
  directory_.emplace(area<DirectoryEntry>(kDirectoryOffset), *pm_, path);  // fresh space: all free
  reclaimer_ = std::make_unique<epoch::Reclaimer>(pm::background_reclamation());
  alloc::Calloc::format(*this);

  Superblock first{};
  first.size = size;
  const auto uuid = random_uuid();
  std::copy(uuid.begin(), uuid.end(), first.uuid);
  set_opened(first);
  superblock_->update(first);  // the commit: it is a pool
  require_healthy();
  file_.publish();
  was_clean_ = true;  // there is nothing that a crash could have left
  start();
  // On a disk touching would write all of it.
  if (file_.in_memory() || mapping_->dax()) growth_->touch(kGrowthUnit, size);
}

void PoolCore::recover(const PoolOptions& options, Purpose purpose) {
  const FoundSuperblock found = read_superblock(file_);
  const Superblock& before = found.superblock;
  const std::string path = file_.path().string();
  needs_check_ = may_have_lost_stores(before);
  if (needs_check_ && purpose != Purpose::verification) {
    throw Error(Errc::needs_check,
                fmt::format("the machine went down while pool '{}' was open, and the pool was only "
                            "meant to survive the end of a process; run `perdix check {}`: if it "
                            "finds no problem the pool can be opened again, else restore a backup",
                            path, path));
  }
  const std::uint64_t max_size = checked_max_size(options, before.size, path);
  // Growth that a crash interrupted, or that was made ready and not taken: nobody has used it.
  if (file_.size() > before.size) file_.truncate(before.size);
  file_.fill_holes();
  map(before.size, max_size);
  const auto remembered = static_cast<Durability>(before.requested_durability);
  choose_domain(options.durability == Durability::automatic ? remembered : options.durability,
                options.domain);
  superblock_.emplace(base_, *pm_, found);
  directory_.emplace(area<DirectoryEntry>(kDirectoryOffset), *pm_, path);
  directory_->check();
  was_clean_ = !unclean(before);
  if (!needs_check_) mark_open();  // invariant 1
  reclaimer_ = std::make_unique<epoch::Reclaimer>(pm::background_reclamation());
  start();
}

void PoolCore::map(std::uint64_t size, std::uint64_t max_size) {
  mapping_.emplace(file_, size, max_size);
  base_ = mapping_->base();
  max_size_ = max_size;
  size_.store(size, std::memory_order_release);
}

void PoolCore::choose_domain(Durability requested, DomainChoice choice) {
  requested_ = requested;
  decision_ = decide_domain(requested, choice, mapping_->granularity());
  pm_.emplace(decision_.domain, decision_.survives_power());
  growth_.emplace(file_, *mapping_, decision_.survives_power());
}

void PoolCore::set_opened(Superblock& superblock) const {
  superblock.max_size = max_size_;
  const BootId boot = current_boot_id();
  std::copy(boot.begin(), boot.end(), superblock.boot_id);
  superblock.domain = static_cast<std::uint8_t>(decision_.domain);
  superblock.durability = static_cast<std::uint8_t>(decision_.durability);
  superblock.requested_durability = static_cast<std::uint8_t>(requested_);
  superblock.cleanness = static_cast<std::uint8_t>(Cleanness::unclean);
}

void PoolCore::mark_open() {
  // What a `process` pool holds must be on the device before the pool claims to survive power.
  if (process_only(superblock_->current()) && decision_.survives_power()) file_.sync();
  change_cleanness([this](Superblock& next) { set_opened(next); });
}

void PoolCore::start() {
  allocator_ = std::make_unique<alloc::Calloc>(*this);  // repairs what a crash left
  in_use_.assign(kDirectoryEntries, false);
  // Not persisted: it matters only while this process lives.
  pm_->store(area<OwnerBlock>(kOwnerOffset)->pid, static_cast<std::uint64_t>(::getpid()));
  open_ = true;
}

PoolCore::~PoolCore() {
  if (!open_) return;
  try {
    shut_down();
  } catch (const Error&) {
    // The pool stays unclean, so the next opening repairs it, or refuses it if it must.
  }
}

void PoolCore::extend(std::uint64_t new_size) {
  const std::lock_guard guard(superblock_mutex_);
  require_healthy();
  if (new_size > max_size_) {  // a whole number of units, so rounding up doesn't exceed it
    throw Error(Errc::out_of_space,
                fmt::format("pool '{}' has {} bytes and can't grow to {}: its max_size is {}; open "
                            "it with a larger one",
                            path().string(), size(), new_size, max_size_));
  }
  Superblock next = superblock_->current();
  next.size = round_up(new_size);
  if (next.size <= size()) return;
  growth_->take(next.size);
  superblock_->update(next);  // invariant 2: the space is there, now it counts, then it is used
  require_healthy();
  size_.store(next.size, std::memory_order_release);
}

void PoolCore::prepare(pm::Offset offset, std::uint64_t bytes) {
  if (contains(offset, bytes)) growth_->touch(offset, offset + bytes);
}

bool PoolCore::reclaim_space() {
  if (epoch::Guard::held()) return false;
  const bool given_back = open_indexes_.reclaim_space();
  const bool freed = allocator_->reclaim();  // what was just given back has its own grace period
  return given_back || freed;
}

void PoolCore::throw_unhealthy() const {
  throw Error(Errc::io_error,
              fmt::format("pool '{}' could not be written to its device, so what the device holds "
                          "is unknown; close the pool, check the device and open it again",
                          path().string()));
}

void PoolCore::require_open() const {
  if (open_) return;
  throw Error(Errc::invalid_argument,
              fmt::format("pool '{}' has been closed; open it again", path().string()));
}

bool PoolCore::is_open() const {
  const std::lock_guard guard(mutex_);
  return open_;
}

IndexHandle PoolCore::open_index(std::string_view name, std::string_view engine, Kind key_kind,
                                 Kind value_kind) {
  require_index_name(name);
  const std::lock_guard guard(mutex_);
  require_open();
  require_healthy();
  if (const auto slot = directory_->find(name)) {
    require_same(directory_->info(*slot), engine, key_kind, value_kind, path().string());
    require_not_in_use(*slot);
    return handle(*slot, false);
  }
  const Directory::Slot slot =
      directory_->add({std::string(name), std::string(engine), key_kind, value_kind});
  require_healthy();
  return handle(slot, true);
}

std::optional<IndexHandle> PoolCore::open_existing_index(std::string_view name) {
  const std::lock_guard guard(mutex_);
  require_open();
  require_healthy();
  const auto slot = directory_->find(name);
  if (!slot) return std::nullopt;
  require_not_in_use(*slot);
  return handle(*slot, false);
}

std::vector<IndexInfo> PoolCore::indexes() const {
  const std::lock_guard guard(mutex_);
  require_open();
  std::vector<IndexInfo> result;
  for (const Directory::Slot slot : directory_->live()) result.push_back(directory_->info(slot));
  std::sort(result.begin(), result.end(),
            [](const IndexInfo& a, const IndexInfo& b) { return a.name < b.name; });
  return result;
}

IndexHandle PoolCore::begin_drop(std::string_view name) {
  const std::lock_guard guard(mutex_);
  require_open();
  require_healthy();
  const auto slot = directory_->find(name);
  if (!slot) {
    throw Error(Errc::not_found,
                fmt::format("pool '{}' has no index '{}' to drop", path().string(), name));
  }
  require_not_in_use(*slot);
  directory_->begin_drop(*slot);
  require_healthy();
  return handle(*slot, false);
}

std::vector<IndexHandle> PoolCore::dropping() {
  const std::lock_guard guard(mutex_);
  require_open();
  std::vector<IndexHandle> result;
  for (const Directory::Slot slot : directory_->dropping()) {
    if (!in_use_[slot]) result.push_back(handle(slot, false));
  }
  return result;
}

void PoolCore::finish_drop(IndexHandle index) {
  assert(&index.pool() == this);
  const std::lock_guard guard(mutex_);
  directory_->finish_drop(index.slot_);
  require_healthy();
}

IndexHandle PoolCore::handle(Directory::Slot slot, bool created) {
  in_use_[slot] = true;
  return IndexHandle(shared_from_this(), slot, directory_->root(slot), directory_->info(slot),
                     created);
}

void PoolCore::release(Directory::Slot slot) noexcept {
  const std::lock_guard guard(mutex_);
  in_use_[slot] = false;
}

void PoolCore::require_not_in_use(Directory::Slot slot) const {
  if (!in_use_[slot]) return;
  throw Error(
      Errc::in_use,
      fmt::format("index '{}' of pool '{}' is open; close it first (an index is open at most "
                  "once)",
                  directory_->info(slot).name, path().string()));
}

PoolInfo PoolCore::info() const {
  const std::lock_guard guard(mutex_);
  require_open();
  PoolInfo info;
  info.path = path();
  info.format_version = kFormatVersion;  // there is no other one that can be open
  info.size = size();
  info.allocated = allocator_->bytes_allocated();
  info.max_size = max_size_;
  info.durability = decision_.durability;
  info.domain = to_string(decision_.domain);
  info.dax = mapping_->dax();
  info.was_clean = was_clean_;
  return info;
}

bool PoolCore::huge_pages() const {
  const std::lock_guard guard(mutex_);
  require_open();
  return mapping_->huge_pages();
}

bool PoolCore::needs_check() const {
  const std::lock_guard guard(mutex_);
  return needs_check_;
}

void PoolCore::accept_after_check() {
  const std::lock_guard guard(mutex_);
  require_open();
  if (!needs_check_) return;
  mark_open();
  needs_check_ = false;
}

void PoolCore::close() {
  const std::lock_guard guard(mutex_);
  require_open();
  const auto used = std::find(in_use_.begin(), in_use_.end(), true);
  if (used != in_use_.end())
    require_not_in_use(static_cast<Directory::Slot>(used - in_use_.begin()));
  shut_down();
}

template <class Change>
void PoolCore::change_cleanness(Change change) {
  const std::lock_guard guard(superblock_mutex_);
  Superblock next = superblock_->current();
  change(next);
  superblock_->update(next);
  require_healthy();
  // After a power failure "clean" must be true of any pool. In a `process` pool persist() doesn't
  // reach the device, so this one word of it is synced explicitly.
  if (!decision_.survives_power()) mapping_->sync(0, 2 * kBlockSize);
}

void PoolCore::mark_clean() {
  require_healthy();
  if (needs_check_) return;  // opened for verification, and not accepted: it stays refused
  // All stores of a `process` pool go to the device before the pool is called clean.
  if (!decision_.survives_power()) file_.sync();
  change_cleanness(
      [](Superblock& next) { next.cleanness = static_cast<std::uint8_t>(Cleanness::clean); });
}

void PoolCore::shut_down() {
  open_ = false;
  std::exception_ptr failure;
  // What is retired may still free blocks. Disposing of it may retire more.
  while (reclaimer_->pending() > 0) reclaimer_->drain_for_good();
  allocator_.reset();
  reclaimer_.reset();
  growth_.reset();
  pm_->store(area<OwnerBlock>(kOwnerOffset)->pid, 0);
  try {
    mark_clean();
  } catch (const Error&) {
    failure = std::current_exception();
  }
  let_go();
  if (failure) std::rethrow_exception(failure);
}

void PoolCore::let_go() noexcept {
  const std::uint64_t used = size();
  directory_.reset();
  superblock_.reset();
  mapping_.reset();
  try {
    if (file_.size() > used) file_.truncate(used);  // made ready ahead of use, and not used
  } catch (const Error&) {
    // Then the next opening cuts it off.
  }
  lock_.reset();
  file_.close();
}

}  // namespace perdix::pool
