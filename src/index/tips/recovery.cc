#include "index/tips/recovery.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/tips/damage.h"
#include "index/tips/guest.h"
#include "index/tips/plugins.h"
#include "index/tips/settings.h"
#include "pool/origin.h"

namespace perdix::detail::index::tips {
namespace {

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

/// Closed by that release, the index has no such blocks.
[[noreturn]] void throw_older(const pool::PoolCore& pool) {
  throw Error(Errc::older_format,
              fmt::format("{}: a process of an earlier release has died while it had a Tips index "
                          "open: open the index by that release once more, and close the pool",
                          pool.path().string()));
}

/// The root word is the commit. The plug-in's object is made in place, before it is visible.
void create(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
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
  void* const object = object_behind(*pool.at<Header>(offset));
  Guest guest(plugin, object, {});
  guest.create();
  guest.report();
  // Durable before the root, by the commit's fence.
  persister.flush(object, plugin.object_bytes);
  Header header{};
  header.magic = kHeaderMagic;
  const auto random = pool::random_uuid();
  std::memcpy(&header.nonce, random.data(), sizeof header.nonce);
  header.base = address_of(pool);
  if (ring_bytes == 0) ring_bytes = default_log_bytes(pool.max_size());
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

}  // namespace

Header& header_at(pool::PoolCore& pool, pm::Offset offset) {
  if (!pool.allocator().validate_block(offset, sizeof(Header)))
    throw_damaged_part(pool, "the root");
  Header& header = *pool.at<Header>(offset);
  if (header.magic != kHeaderMagic) throw_damaged_part(pool, "the header");
  if (header.former_reserve != pm::kNull) throw_older(pool);
  return header;
}

Header& open_header(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
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

const Plugin& plugin_behind(pool::PoolCore& pool, const Header& header, Kind keys) {
  std::string_view name(header.plugin.data(), header.plugin.size());
  name = name.substr(0, name.find('\0'));
  const Plugin* plugin = look_up_plugin(pool, name, keys);
  if (plugin == nullptr && is_plugged(name)) throw_no_plugin(pool, name, keys);
  if (plugin == nullptr) throw_damaged_part(pool, "the name of the plug-in");
  return *plugin;
}

}  // namespace perdix::detail::index::tips
