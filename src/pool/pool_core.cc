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
#include "pm/access.h"
#include "pm/change.h"
#include "pm/probe.h"
#include "pool/forks.h"
#include "pool/journal_area.h"
#include "pool/placement.h"
#include "util/cancellation.h"

namespace perdix::detail::pool {
namespace {

constexpr std::uint64_t round_up(std::uint64_t size) {
  return (size + kGrowthUnit - 1) / kGrowthUnit * kGrowthUnit;
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
    core->file_.lock(no_fork);
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
  const auto uuid = random_uuid();
  file_.format(size, options, address_seed(uuid));
  superblock_.emplace(base(), pm());
  // Fresh space: all entries are free.
  indexes_.emplace(file_.area<DirectoryEntry>(kDirectoryOffset), pm(), path().string());
  file_.use_journal();
  reclaimer_ = std::make_unique<epoch::Reclaimer>(pm::background_reclamation());
  alloc::Calloc::format(*this);

  Superblock first{};
  first.size = size;
  std::copy(uuid.begin(), uuid.end(), first.uuid);
  file_.set_opened(first);
  superblock_->update(first);  // the commit: it is a pool
  was_clean_ = true;           // there is nothing that a crash could have left
  start();
  fit_journal(options.journal_size);
  file_.publish();  // the last that may fail: what was created is open, or it is not there
  open_ = true;
}

void PoolCore::recover(const PoolOptions& options, Purpose purpose) {
  plugins_ = options.plugins;
  const FoundSuperblock found = file_.read_superblock_on_device(options.durability);
  const Superblock& before = found.superblock;
  require_complete(before, purpose);
  file_.map(before, options);
  const std::unique_ptr<pm::Replay> replay = file_.replay_journal(before);
  superblock_.emplace(base(), pm(), found);
  indexes_.emplace(file_.area<DirectoryEntry>(kDirectoryOffset), pm(), path().string());
  indexes_->check();
  const std::vector<pm::FileRange> used = chunks_in_use();
  reclaimer_ = std::make_unique<epoch::Reclaimer>(pm::background_reclamation());
  // Here the file is changed for the first time: all that opening relies on has been found sound.
  pm::KernelSync device;
  if (replay != nullptr) replay->finish(device);
  // A verification leaves the superblock as it is, which must then say how the journal counts.
  if (!needs_check_ || has_halves(before)) file_.use_journal();
  file_.fill(used);
  file_.cut_off_growth();
  was_clean_ = !unclean(before);
  if (!needs_check_) mark_open();  // invariant 1
  start();
  if (file_.has_holes()) file_.fill(chunks_in_use());  // what recovery has brought into use
  if (!needs_check_) fit_journal(options.journal_size);
  open_ = true;
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
  const bool other_run = process_only(before) && !file_.origin().same_run(before);
  const bool other_file = !file_.origin().same_file(before);
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

void PoolCore::mark_open() {
  // The content must be on the device before the pool claims to survive power failures. It may not
  // be: the last run may have been a `process` one, or the file was just copied or restored.
  file_.sync_for_power();
  change_cleanness([this](Superblock& next) { file_.set_opened(next); });
}

void PoolCore::start() {
  allocator_ = std::make_unique<alloc::Calloc>(*this);  // repairs what a crash left
  allocator_->restore_claims(std::min(indexes_->claimed(), size() / alloc::kSpanSize));
  // Not persisted: it matters only while this process lives.
  auto* const owner = file_.area<OwnerBlock>(kOwnerOffset);
  pm().store(owner->pid_namespace, pid_namespace());
  pm().store(owner->pid, static_cast<std::uint64_t>(::getpid()));
  require_usable();
}

pm::Offset PoolCore::journal_block() const {
  const pm::Offset block = pm::load(file_.area<JournalEntry>(kJournalEntryOffset)->block);
  return block != pm::kNull && allocator_->validate_block(block, kMinJournal) ? block : pm::kNull;
}

/// Gives the journal its size. Until here it lies in the first MiB, wherever it was before, so that
/// its block can be replaced.
void PoolCore::fit_journal(std::uint64_t asked) {
  if (!pm().commits_as_one()) return;
  auto& entry = *file_.area<JournalEntry>(kJournalEntryOffset);
  if (asked == 0) asked = pm::load(entry.asked);
  const pm::Offset old = journal_block();
  const std::uint64_t present = old != pm::kNull ? allocator_->block_size(old) : 0;
  const std::uint64_t wanted =
      journal_block_size(asked != 0 ? asked : default_journal(size(), max_size()));
  const std::uint64_t needed = wanted != 0 ? alloc::Calloc::size_for(wanted) : 0;
  // By default a journal only grows.
  const bool fits = needed == present || (asked == 0 && needed < present);
  if (!fits || asked != pm::load(entry.asked)) {
    try {
      alloc::Session session = allocator_->session();
      const pm::Offset block = fits ? old : needed != 0 ? session.reserve(needed) : pm::kNull;
      if (!fits && old != pm::kNull) session.free(old);
      pm::Changes changes;
      changes.set(entry.block, block);
      changes.set(entry.asked, asked);
      session.commit_as_one(changes.all());
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
    }
  }
  const pm::Offset block = journal_block();
  if (block == pm::kNull) return;
  file_.move_journal(journal_area(block, allocator_->block_size(block)), block != old);
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

void PoolCore::extend(std::uint64_t new_size) {
  const util::NotCancelled not_cancelled;
  const std::lock_guard guard(superblock_mutex_);
  require_writable();
  file_.require_limit(new_size);
  Superblock next = superblock_->current();
  next.size = round_up(new_size);
  if (next.size <= size()) return;
  file_.take(next.size);
  superblock_->update(next);  // invariant 2: the space is there, now it counts, then it is used
  require_usable();
  file_.set_size(next.size);
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
  next.address =
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(base()) / kAddressUnit);
  superblock_->update(next);
  require_usable();
}

bool PoolCore::provide(pm::Offset offset, std::uint64_t bytes) {
  if (!file_.has_holes()) return true;
  const util::NotCancelled not_cancelled;
  return file_.provide(offset, bytes);
}

void PoolCore::prepare(pm::Offset offset, std::uint64_t bytes) {
  if (contains(offset, bytes)) file_.prepare(offset, offset + bytes);
}

bool PoolCore::reclaim_space() {
  if (epoch::Guard::held()) return false;
  const util::NotCancelled not_cancelled;
  const bool given_back = open_indexes_.reclaim_space();
  const bool freed = allocator_->reclaim();  // what was just given back has its own grace period
  return given_back || freed;
}

void PoolCore::throw_unusable() const { health().throw_unusable(path().string()); }

void PoolCore::require_open() const {
  if (open_) return;
  throw Error(Errc::invalid_argument,
              fmt::format("pool '{}' has been closed; open it again", path().string()));
}

/// Each call begins with this, in this order: in a child the mutex may never be released.
PoolCore::Lock PoolCore::lock_open() const {
  if (health().forked()) throw_unusable();
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
  if (const auto slot = indexes_->find(wanted.name)) {
    indexes_->require_may_open(*slot, wanted);
    return handle(*slot, std::move(wanted), false);
  }
  require_writable();
  const IndexTable::Slot slot = indexes_->add(wanted);
  require_usable();
  return handle(slot, std::move(wanted), true);
}

IndexHandle PoolCore::open_index(std::string_view name, std::string_view engine, Kind key_kind,
                                 Kind value_kind) {
  return open_index({std::string(name), std::string(engine), key_kind, value_kind});
}

std::optional<IndexHandle> PoolCore::open_existing_index(std::string_view name) {
  const Lock lock = lock_open();
  const auto slot = indexes_->find(name);
  if (!slot) return std::nullopt;
  indexes_->require_closed(*slot);
  return handle(*slot, indexes_->info(*slot), false);
}

std::vector<IndexInfo> PoolCore::indexes() const {
  const Lock lock = lock_open();
  return indexes_->live();
}

IndexInfo PoolCore::index_info(std::string_view name) const {
  const Lock lock = lock_open();
  return indexes_->info(indexes_->slot_of(name));
}

IndexHandle PoolCore::begin_drop(std::string_view name) {
  const Lock lock = lock_open();
  const IndexTable::Slot slot = indexes_->slot_of(name);
  indexes_->require_closed(slot);
  IndexInfo info = indexes_->info(slot);
  require_writable();
  indexes_->begin_drop(slot);
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
  assert(&index.pool() == this && indexes_->handles(index.slot_) == 1);
  indexes_->begin_drop(index.slot_);
  require_usable();
}

std::vector<IndexHandle> PoolCore::dropping() {
  const Lock lock = lock_open();
  const std::vector<IndexTable::Slot> slots = indexes_->dropping();
  std::vector<IndexInfo> infos;
  for (const IndexTable::Slot slot : slots) infos.push_back(indexes_->info(slot));
  std::vector<IndexHandle> result;
  result.reserve(slots.size());
  // Nothing is allocated from here on: a handle that an exception destroys would take the lock.
  for (std::size_t i = 0; i < slots.size(); ++i)
    result.push_back(handle(slots[i], std::move(infos[i]), false));
  return result;
}

void PoolCore::finish_drop(IndexHandle&& index) {
  assert(&index.pool() == this);
  const std::shared_ptr<PoolCore> self = index.pool_;  // the pool doesn't end while it is locked
  const std::lock_guard guard(mutex_);
  indexes_->finish_drop(index.slot_);
  index.pool_.reset();
  require_usable();
}

void PoolCore::postpone_drop(IndexHandle index, std::string_view why) noexcept {
  assert(&index.pool() == this);
  const std::lock_guard guard(mutex_);
  indexes_->postpone_drop(index.slot_, why);
}

/// Allocates nothing: the caller's changes for the index are complete.
IndexHandle PoolCore::handle(IndexTable::Slot slot, IndexInfo info, bool created) noexcept {
  indexes_->add_handle(slot);
  return {shared_from_this(), slot, indexes_->root(slot), std::move(info), created};
}

void PoolCore::release(IndexTable::Slot slot) noexcept {
  const std::lock_guard guard(mutex_);
  indexes_->remove_handle(slot);
}

std::vector<UnfinishedDrop> PoolCore::unfinished_drops() const {
  const Lock lock = lock_open();
  return indexes_->unfinished_drops();
}

PoolInfo PoolCore::info() const {
  const Lock lock = lock_open();
  PoolInfo info;
  file_.describe(info);
  info.format_version = kFormatVersion;        // there is no other one that can be open
  const pm::Offset journal = journal_block();  // the pool's own, and no index's
  info.allocated =
      allocator_->bytes_allocated() - (journal != pm::kNull ? allocator_->block_size(journal) : 0);
  info.fixed_address = has_fixed_address();
  info.was_clean = was_clean_;
  info.unfinished_drops = indexes_->unfinished_drops();
  return info;
}

bool PoolCore::huge_pages() const {
  const Lock lock = lock_open();
  return file_.huge_pages();
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
  if (health().forked()) throw_unusable();
  const std::lock_guard guard(mutex_);
  require_open();
  require_unused();
  shut_down();
}

void PoolCore::require_unused() const {
  indexes_->require_all_closed();
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
  file_.sync_superblock();
}

void PoolCore::mark_clean() {
  require_usable();
  if (needs_check_) return;  // opened for verification, and not accepted: it stays refused
  file_.make_durable();      // before the pool is called clean, which has an empty journal
  require_usable();
  change_cleanness([](Superblock& next) {
    next.cleanness = static_cast<std::uint8_t>(Cleanness::clean);
    next.features &= ~kJournalFeatures;
  });
}

void PoolCore::shut_down() {
  open_ = false;
  std::exception_ptr failure;
  // Retired objects may still free blocks. Disposing of it may retire more.
  while (reclaimer_->pending() > 0) reclaimer_->drain_for_good();
  end_work();
  pm().store(file_.area<OwnerBlock>(kOwnerOffset)->pid, 0);
  try {
    mark_clean();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  unmap();
  file_.close();
  if (failure) std::rethrow_exception(failure);
}

/// Ends all that may still change the pool.
void PoolCore::end_work() noexcept {
  allocator_.reset();
  reclaimer_.reset();
  file_.end_threads();
}

void PoolCore::unmap() noexcept {
  indexes_.reset();
  superblock_.reset();
  file_.unmap();
}

}  // namespace perdix::detail::pool
