#include "pool/directory.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pm/access.h"
#include "util/checksum.h"

namespace perdix::detail::pool {
namespace {

constexpr std::size_t kImmutableSize = offsetof(DirectoryEntry, state);

bool known_kind(std::uint8_t kind) {
  return kind == static_cast<std::uint8_t>(Kind::u64) ||
         kind == static_cast<std::uint8_t>(Kind::bytes);
}

bool known_model(std::uint8_t model) {
  return model == static_cast<std::uint8_t>(DataModel::pairs) ||
         model == static_cast<std::uint8_t>(DataModel::points) ||
         model == static_cast<std::uint8_t>(DataModel::container);
}

std::string_view text(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool sound(const DirectoryEntry& entry) {
  return entry.checksum == checksum_of(entry) && entry.name_size >= 1 &&
         entry.name_size <= kMaxNameSize && entry.engine_size >= 1 &&
         entry.engine_size <= kMaxEngineSize && known_kind(entry.key_kind) &&
         known_kind(entry.value_kind) && known_model(entry.model);
}

std::string kinds_of(const IndexInfo& info) {
  if (info.model != DataModel::pairs)
    return fmt::format("engine '{}' with {}", info.engine, to_string(info.model));
  return fmt::format("engine '{}' with {} keys and {} values", info.engine,
                     to_string(info.key_kind), to_string(info.value_kind));
}

DirectoryEntry make_entry(const IndexInfo& info) {
  assert(!info.engine.empty() && info.engine.size() <= kMaxEngineSize);
  assert(!info.name.empty() && info.name.size() <= kMaxNameSize);
  DirectoryEntry entry{};
  entry.name_size = static_cast<std::uint8_t>(info.name.size());
  std::memcpy(entry.name, info.name.data(), info.name.size());
  entry.engine_size = static_cast<std::uint8_t>(info.engine.size());
  std::memcpy(entry.engine, info.engine.data(), info.engine.size());
  entry.key_kind = static_cast<std::uint8_t>(info.key_kind);
  entry.value_kind = static_cast<std::uint8_t>(info.value_kind);
  entry.model = static_cast<std::uint8_t>(info.model);
  entry.checksum = checksum_of(entry);
  return entry;
}

}  // namespace

std::uint64_t checksum_of(const DirectoryEntry& entry) noexcept {
  return util::checksum(&entry, offsetof(DirectoryEntry, checksum));
}

void require_index_name(std::string_view name) {
  if (name.empty()) throw Error(Errc::invalid_argument, "an index needs a name; give it one");
  if (name.size() > kMaxNameSize) {
    throw Error(Errc::too_large, fmt::format("the index name '{}...' has {} bytes; at most {} fit",
                                             name.substr(0, 16), name.size(), kMaxNameSize));
  }
  if (std::any_of(name.begin(), name.end(), is_control)) {
    throw Error(Errc::invalid_argument,
                "an index name may not hold control characters, such as line breaks");
  }
}

DirectoryEntry Directory::read(Slot slot) const {
  DirectoryEntry entry;
  pm::on_read(&entries_[slot], kImmutableSize);
  std::memcpy(&entry, &entries_[slot], kImmutableSize);  // never changes while the entry is in use
  entry.state = pm::load(entries_[slot].state);
  return entry;
}

void Directory::check_entry(Slot slot) const {
  const std::uint64_t state = pm::load(entries_[slot].state);
  if (state == kEntryFree) return;
  const bool known = state == kEntryLive || state == kEntryDropping;
  const bool possible = pm::load(entries_[slot].claim) <= kMaxPoolSize / alloc::kSpanSize;
  if (known && possible && sound(read(slot))) return;
  throw Error(Errc::corrupt,
              fmt::format("entry {} of the index directory of pool '{}' is damaged; restore the "
                          "pool from a backup",
                          slot, pool_name_));
}

void Directory::check() const {
  std::unordered_set<std::string> names;
  for (Slot slot = 0; slot < kDirectoryEntries; ++slot) {
    check_entry(slot);
    if (pm::load(entries_[slot].state) != kEntryLive) continue;
    const std::string name = info(slot).name;
    if (!names.insert(name).second) {
      throw Error(Errc::corrupt,
                  fmt::format("pool '{}' has two indexes named '{}'; restore it from "
                              "a backup",
                              pool_name_, name));
    }
  }
}

std::optional<Directory::Slot> Directory::find(std::string_view name) const {
  for (const Slot slot : live()) {
    const DirectoryEntry entry = read(slot);
    if (text(entry.name, entry.name_size) == name) return slot;
  }
  return std::nullopt;
}

Directory::Slot Directory::add(const IndexInfo& info) {
  const std::vector<Slot> free = in_state(kEntryFree);
  if (free.empty()) {
    throw Error(Errc::out_of_space, fmt::format("pool '{}' has its {} indexes; drop one first",
                                                pool_name_, kDirectoryEntries));
  }
  DirectoryEntry& entry = entries_[free.front()];
  const DirectoryEntry made = make_entry(info);
  pm_.copy(&entry, &made, kImmutableSize);
  // An earlier index may have left these two. Not flushed: they lie in the line of the state, and a
  // line is written back with a prefix of the stores made to it.
  pm_.store(entry.root, 0);
  pm_.store(entry.claim, 0);
  pm_.persist(&entry, kImmutableSize);   // all of this must be durable before the entry counts
  pm_.publish(entry.state, kEntryLive);  // the commit: the index exists
  return free.front();
}

void Directory::begin_drop(Slot slot) {
  assert(pm::load(entries_[slot].state) == kEntryLive);
  pm_.publish(entries_[slot].state, kEntryDropping);  // the commit: the index is gone for users
}

void Directory::finish_drop(Slot slot) {
  assert(pm::load(entries_[slot].state) == kEntryDropping);
  // Nothing else is cleared: a free entry may hold anything, and add() rewrites it before it
  // counts.
  pm_.publish(entries_[slot].state, kEntryFree);
}

IndexInfo Directory::info(Slot slot) const {
  const DirectoryEntry entry = read(slot);
  return {std::string(text(entry.name, entry.name_size)),
          std::string(text(entry.engine, entry.engine_size)), static_cast<Kind>(entry.key_kind),
          static_cast<Kind>(entry.value_kind), static_cast<DataModel>(entry.model)};
}

std::uint64_t& Directory::claim_of(const std::uint64_t& root) const {
  constexpr std::size_t kBefore = offsetof(DirectoryEntry, root);
  const std::size_t place = reinterpret_cast<const std::byte*>(&root) -
                            reinterpret_cast<const std::byte*>(entries_) - kBefore;
  assert(place % sizeof(DirectoryEntry) == 0 && place / sizeof(DirectoryEntry) < kDirectoryEntries);
  return entries_[place / sizeof(DirectoryEntry)].claim;
}

std::uint64_t Directory::claimed() const {
  std::uint64_t spans = 0;
  for (const std::uint64_t state : {kEntryLive, kEntryDropping})
    for (const Slot slot : in_state(state)) spans += pm::load(entries_[slot].claim);
  return spans;
}

void Directory::require_same(Slot slot, const IndexInfo& wanted) const {
  const IndexInfo found = info(slot);
  const bool same_engine = found.engine == wanted.engine && found.model == wanted.model;
  const bool same_kinds =
      found.key_kind == wanted.key_kind && found.value_kind == wanted.value_kind;
  if (same_engine && same_kinds) return;
  throw Error(same_engine ? Errc::wrong_kind : Errc::wrong_engine,
              fmt::format("index '{}' of pool '{}' has {}, but is opened as {}; open it as what it "
                          "is, or choose another name",
                          found.name, pool_name_, kinds_of(found), kinds_of(wanted)));
}

std::vector<Directory::Slot> Directory::in_state(std::uint64_t state) const {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < kDirectoryEntries; ++slot) {
    if (pm::load(entries_[slot].state) == state) slots.push_back(slot);
  }
  return slots;
}

}  // namespace perdix::detail::pool
