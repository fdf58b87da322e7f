// What happens on open: creation, recovery after a crash, and destruction.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "epoch/guard.h"
#include "index/common/retry.h"
#include "index/tips/core.h"
#include "index/tips/damage.h"
#include "index/tips/plugins.h"
#include "pool/origin.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

// By the share of pairs: an opening takes no longer for more of them. A caller that asks for more
// waits.
constexpr unsigned kMinCacheBits = 12, kMaxShareBits = 20, kMaxCacheBits = 30;

std::uint64_t address_of(const pool::PoolCore& pool) {
  return reinterpret_cast<std::uintptr_t>(pool.base());
}

/// The name of a plug-in as the header has it.
decltype(Header::plugin) name_of(const Plugin& plugin) {
  decltype(Header::plugin) name{};
  assert(plugin.name.size() <= name.size());
  std::copy(plugin.name.begin(), plugin.name.end(), name.begin());
  return name;
}

/// The plug-in whose object lies behind a header.
const Plugin& plugin_behind(pool::PoolCore& pool, const Header& header, Kind keys) {
  std::string_view name(header.plugin.data(), header.plugin.size());
  name = name.substr(0, name.find('\0'));
  const Plugin* plugin = look_up_plugin(pool, name, keys);
  if (plugin == nullptr && is_plugged(name)) throw_no_plugin(pool, name, keys);
  if (plugin == nullptr) throw_damaged_part(pool, "the name of the plug-in");
  return *plugin;
}

/// Of the block of header and object: whole lines, so that it begins with a line.
std::uint64_t bytes_with(const Plugin& plugin) {
  return (sizeof(Header) + plugin.object_bytes + pm::kLineSize - 1) / pm::kLineSize * pm::kLineSize;
}

/// Another build of a plug-in, or another class under its name.
[[noreturn]] void throw_other_object(const pool::PoolCore& pool, const Plugin& plugin,
                                     std::uint64_t bytes) {
  throw Error(Errc::wrong_engine,
              fmt::format("{}: a Tips index was made by a plug-in '{}' whose object has {} bytes, "
                          "and the one that opens it has {}; use the version that made it",
                          pool.path().string(), plugin.name, bytes, plugin.object_bytes));
}

unsigned bits_for(std::uint64_t buckets, unsigned least, unsigned most) {
  return std::clamp(static_cast<unsigned>(std::bit_width(buckets - 1)), least, most);
}

/// The budget has the room that was asked for, as chains of full length have it. There is a bucket
/// for each pair of that, and for each write that may wait in two full logs, as far as an opening
/// takes no longer for that: each entry of a chain that is walked is a miss of the CPU's caches.
Cache::Size cache_size(const TipsOptions& options, std::uint64_t pairs, std::uint64_t ring_bytes) {
  constexpr std::uint64_t kBytesPerEntry =
      128;  // of short keys and values; of others there are fewer
  const auto share = static_cast<std::uint64_t>(options.cache_share * static_cast<double>(pairs));
  const std::uint64_t most = std::uint64_t{options.chain} << kMaxShareBits;
  const std::uint64_t wanted = std::max(std::min(share, most), options.cached_pairs);
  const std::uint64_t chains = (wanted + options.chain - 1) / options.chain;
  const unsigned chain_bits =
      bits_for(std::max<std::uint64_t>(chains, 1), kMinCacheBits, kMaxCacheBits);
  const std::uint64_t waiting = 2 * ring_bytes / kRecordAlignment;
  const unsigned bits =
      bits_for(std::max(wanted, waiting), chain_bits, std::max(chain_bits, kMaxShareBits));
  return {bits, options.chain, (std::uint64_t{options.chain} << chain_bits) * kBytesPerEntry};
}

}  // namespace

/// The root word is the commit. The plug-in's object is made in place, before it is visible.
void Core::create(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
                  std::uint64_t ring_bytes) {
  pool.fix_address();
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(bytes_with(plugin));
  const pm::Offset undo = session.reserve(kUndoBytes), memory = session.reserve(kMemoryBytes);
  const pm::Persister& persister = pool.pm();
  const LogBlock first_undo{pm::kNull, kUndoBytes};
  persister.copy(pool.at<LogBlock>(undo), &first_undo, sizeof first_undo);
  // Durable before the root, by the commit's fence.
  persister.flush(pool.at<LogBlock>(undo), sizeof first_undo);
  persister.zero(pool.at<LogBlock>(memory), kMemoryBytes);
  persister.store(pool.at<LogBlock>(memory)->bytes, kMemoryBytes);
  // Durable before the root, by the commit's fence.
  persister.flush(pool.at<LogBlock>(memory), kMemoryBytes);
  void* const object = pool.at<Header>(offset) + 1;
  Guest(plugin).create(object);
  pm::before_write(object, plugin.object_bytes);
  pm::on_write(object, plugin.object_bytes);
  // Durable before the root, by the commit's fence.
  persister.flush(object, plugin.object_bytes);
  Header header{};
  header.magic = kHeaderMagic;
  const auto random = pool::random_uuid();
  std::memcpy(&header.nonce, random.data(), sizeof header.nonce);
  header.base = address_of(pool);
  header.ring_bytes =
      kRecordAlignment * pm::limit("tips: lines of a new ring", ring_bytes / kRecordAlignment);
  header.undo = undo, header.memory = memory;
  header.object_bytes = plugin.object_bytes;
  header.plugin = name_of(plugin);
  header.epoch = 1;
  persister.copy(pool.at<Header>(offset), &header, sizeof header);
  // Durable before the root, by the commit's fence.
  persister.flush(pool.at<Header>(offset), sizeof header);
  session.commit(pm::set_word(root, offset));  // fences all of it before
}

Header& Core::header_at(pool::PoolCore& pool, pm::Offset offset) {
  if (!pool.allocator().validate_block(offset, sizeof(Header)))
    throw_damaged_part(pool, "the root");
  Header& header = *pool.at<Header>(offset);
  if (header.magic != kHeaderMagic) throw_damaged_part(pool, "the header");
  return header;
}

Header& Core::checked_header(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
                             std::uint64_t ring_bytes) {
  if (pm::load(root) == pm::kNull)
    retry_when_full(pool, [&] { create(pool, root, plugin, ring_bytes); });
  Header& header = header_at(pool, pm::load(root));
  if (header.plugin != name_of(plugin)) throw_damaged_part(pool, "the name of the plug-in");
  if (header.object_bytes != plugin.object_bytes)
    throw_other_object(pool, plugin, header.object_bytes);
  const bool sound = header.ring_bytes >= 8 * kRecordAlignment &&
                     header.ring_bytes % kRecordAlignment == 0 && header.flushed <= header.epoch &&
                     pool.allocator().validate_block(pm::load(root), bytes_with(plugin));
  if (!sound) throw_damaged_part(pool, "the header");
  if (header.base != address_of(pool) || !pool.has_fixed_address())
    throw_damaged_part(pool, "the address");
  return header;
}

Core::Core(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin, Kinds kinds,
           const Settings& settings)
    : pool_(pool),
      header_(checked_header(pool, root, plugin, settings.options.log_bytes)),
      plugin_(plugin),
      kinds_(kinds),
      settings_(settings),
      index_(&header_ + 1),
      uno_(pool, header_),
      logs_(pool, header_),
      reserve_(pool, header_) {
  const auto start = std::chrono::steady_clock::now();
  try {
    retry_when_full(pool_, [&] { roll_back_or_finish(); });
    recover();
    recovery_seconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    job_.emplace(pool.background(), [this] { replay_in_background(); });
    if (is_inspected() && backlog_.load(std::memory_order_relaxed) > 0) job_->request();
    start_inspection();
  } catch (...) {
    job_.reset();
    give_entries_up();
    throw;
  }
}

/// Nothing of the index is read before.
void Core::roll_back_or_finish() {
  if (uno_.is_flushed()) {
    logs_.recover([](const LoggedWrite&) {});  // finds the rings
    finish_reclamation();
  } else {
    uno_.roll_back();
  }
}

void Core::recover() {
  pm::before_write(index_, plugin_.facts().object_bytes);
  plugin_.renew_locks(index_);
  report_index();
  inspect_if_small();
  cache_.emplace(pool_.reclaimer(),
                 cache_size(settings_.options, plugin_.size(index_), pm::load(header_.ring_bytes)));
  logs_.recover([this](const LoggedWrite& write) { recover_entry(write); });
  if (settings_.writes) retry_when_full(pool_, [&] { logs_.make_first_ring(); });
  replayed_to_ = pm::load(header_.reclaimed);
}

/// A write that was not replayed durably: found in the cache from now on, and replayed again.
void Core::recover_entry(const LoggedWrite& write) {
  const std::uint64_t hash = hash_of(write.key);
  NewEntry made = cache_->make_entry(write.operation, hash, write.key, write.value);
  deferred_.push_back(made.get());
  Entry& entry = *made.release();
  entry.set_number(write.number);
  Cache::Bucket& bucket = cache_->bucket(hash);
  Entry* const old = Cache::find(bucket, hash, write.key);
  if (old != nullptr) old->supersede(write.number);
  entry.set(Entry::kQueued);
  reserve_.admit_logged(need_of(entry));
  cache_->add(bucket, entry, old);
  backlog_.fetch_add(1, std::memory_order_relaxed);
}

Core::~Core() {
  resumption_.stop();
  job_.reset();  // runs it, if it was requested
  if (destroyed_) return;
  try {
    // Once settled, it leaves the allocated blocks as for_each_block() has shown them.
    if (is_inspected() && !is_settled()) settle();
  } catch (const std::exception&) {  // the records stay, and the next opening replays them
  }
  give_entries_up();
}

void Core::give_entries_up() noexcept {
  if (!cache_) return;
  for (Entry* entry : deferred_) cache_->dequeue(*entry);
  deferred_.clear();
  logs_.take_queued([this](Entry& entry) { cache_->dequeue(entry); });
}

/// Removes all pairs by the plug-in's own erase, which leaves a sound index at each crash.
void Core::erase_everything() {
  constexpr std::size_t kAtOnce = 64;
  struct Some {
    std::vector<Word> keys;
    bool ordered;
    static bool add(void* context, Word key, Word) {
      auto& some = *static_cast<Some*>(context);
      some.keys.push_back(key);
      return !some.ordered || some.keys.size() < kAtOnce;
    }
  };
  std::uint64_t position = 0;
  for (Some some{{}, plugin_.facts().ordered};; some.keys.clear()) {
    if (plugin_.facts().ordered) {
      plugin_.scan(index_, nullptr, &some, Some::add);
    } else {
      position = plugin_.walk(index_, position, &some, Some::add);
    }
    for (const Word wanted : some.keys) {
      // A full pool has no more for the logs.
      if (is_reclamation_due() || !uno_.has_room()) reclaim();
      erase_word(wanted);
    }
    reclaim();
    if (plugin_.facts().ordered ? some.keys.empty() : position == 0) return;
  }
}

void Core::erase_word(Word wanted) {
  const Uno::Scope scope(uno_);
  Word key = 0, value = 0;
  if (plugin_.erase(index_, wanted, &key, &value)) {
    free_word(key, kinds_.key);
    free_word(value, kinds_.value);
  }
  report_index();
}

/// The nodes of an index without pairs. It is made anew in the same epoch, so it never leads to one
/// that is free.
void Core::free_nodes() {
  struct Nodes final : Inspector {
    std::vector<void*> all;
    bool node(const void* node, std::size_t) override {
      all.push_back(const_cast<void*>(node));
      return true;
    }
    bool pair(Word, Word) override { return true; }
  } nodes;
  if (!plugin_.inspect(index_, nodes)) throw_damaged_part(pool_, "the plugged-in index");
  {
    const Uno::Scope scope(uno_);
    uno_.add(index_, plugin_.facts().object_bytes);
    plugin_.create(index_);
    for (void* node : nodes.all) tips::free(node);
  }
  report_index();
  reclaim();
}

/// Every commit leaves less; the last one, of the root, frees what all others need.
void Core::free_framework(std::uint64_t& root) {
  reserve_.release();
  logs_.free_rings();
  uno_.shrink(1);
  alloc::Session session = pool_.allocator().session();
  for (const pm::Offset block : {header_.undo, header_.memory, pm::load(root)}) session.free(block);
  session.commit(pm::set_word(root, pm::kNull));
}

void Core::destroy(pool::PoolCore& pool, std::uint64_t& root, Kinds kinds) {
  if (pm::load(root) == pm::kNull) return;
  const Header& header = header_at(pool, pm::load(root));
  Core core(pool, root, plugin_behind(pool, header, kinds.key), kinds, settings_for_the_end());
  core.job_.reset();
  core.inspect({});
  core.replayed_to_ = core.logs_.last_number();  // no record matters any more
  core.give_entries_up();
  core.erase_everything();
  core.free_nodes();
  core.free_framework(root);
  core.destroyed_ = true;
}

}  // namespace perdix::detail::index::tips
