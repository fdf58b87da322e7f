#include "catalogue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bytes.h"
#include "refusal.h"

namespace perdix::valkey {
namespace {

constexpr std::string_view kSpaces = "spaces";
constexpr std::string_view kBatch = "batch";
constexpr std::string_view kPartial = "partial";
constexpr std::uint32_t kGone = ~std::uint32_t{0};  // in place of a record's size

// Bytes of a batch from which on it may not fit into the reserve of Refusal, twice and in pieces.
constexpr std::size_t kLargeBatch = std::size_t{256} << 10;

IndexInfo info_of(std::string name) {
  return {.name = std::move(name),
          .engine = "sptree",
          .key_kind = Kind::bytes,
          .value_kind = Kind::bytes};
}

/// Big-endian, so that the records of a space lie together.
void append_space(std::string& key, std::uint32_t space) {
  for (int shift = 24; shift >= 0; shift -= 8) key.push_back(static_cast<char>(space >> shift));
}

std::string key_of_space(std::uint32_t space) {
  std::string key;
  append_space(key, space);
  return key;
}

/// The first key behind those of a space; none behind the last space.
std::optional<std::string> end_of_space(std::uint32_t space) {
  return end_of_prefix(key_of_space(space));
}

std::uint32_t space_in(std::string_view key) {
  std::uint32_t space = 0;
  for (std::size_t i = 0; i < Catalogue::kSpaceSize; ++i)
    space = space << 8 | static_cast<unsigned char>(key.at(i));
  return space;
}

std::string encode(std::span<const KeyChange> changes) {
  std::string batch;
  for (const KeyChange& change : changes) {
    append_number<std::uint32_t>(batch, static_cast<std::uint32_t>(change.key.size()));
    append_number<std::uint32_t>(
        batch, change.record ? static_cast<std::uint32_t>(change.record->size()) : kGone);
    batch.append(change.key);
    if (change.record) batch.append(*change.record);
  }
  return batch;
}

std::vector<KeyChange> decode(std::string_view batch) {
  std::vector<KeyChange> changes;
  ByteReader reader(batch);
  while (!reader.at_end()) {
    const auto key_size = reader.number<std::uint32_t>();
    const auto record_size = reader.number<std::uint32_t>();
    KeyChange change{std::string(reader.bytes(key_size)), std::nullopt};
    if (record_size != kGone) change.record = std::string(reader.bytes(record_size));
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

Catalogue::Catalogue(const Pool& pool)
    : keys_(Index::open_or_create(pool, info_of("perdix:keys"))),
      meta_(Index::open_or_create(pool, info_of("perdix:meta"))) {
  complete_batch(pool);
  load_spaces();
  partial_ = marked_partial_ = meta_->get(kPartial).has_value();
}

void Catalogue::complete_batch(const Pool& pool) {
  const auto batch = meta_->get(kBatch);
  if (!batch) return;
  try {
    apply_one_by_one(decode(*batch));
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    Refusal::drop_reserve(pool);
    apply_one_by_one(decode(*batch));
  }
  meta_->erase(kBatch);
}

void Catalogue::load_spaces() {
  const auto stored = meta_->get(kSpaces);
  if (!stored) return;
  ByteReader reader(*stored);
  next_space_ = reader.number<std::uint32_t>();
  while (!reader.at_end()) spaces_.push_back(reader.number<std::uint32_t>());
}

std::string Catalogue::stored_spaces() const {
  std::string stored;
  append_number(stored, next_space_);
  for (const std::uint32_t space : spaces_) append_number(stored, space);
  return stored;
}

/// A number that no database has. After four billion flushes numbers begin again: the records of
/// the spaces that had them then were erased long ago.
std::uint32_t Catalogue::new_space() {
  const auto has = [this](std::uint32_t space) {
    return std::find(spaces_.begin(), spaces_.end(), space) != spaces_.end();
  };
  while (has(next_space_)) ++next_space_;
  return next_space_++;
}

std::uint32_t Catalogue::space_of(int database) {
  const auto place = static_cast<std::size_t>(database);
  while (spaces_.size() <= place) {
    spaces_.push_back(new_space());
    spaces_changed_ = true;
  }
  return spaces_[place];
}

void Catalogue::key_in(int database, std::string_view name, std::string& key) {
  key.clear();
  append_space(key, space_of(database));
  key.append(name);
}

void Catalogue::apply_one(const KeyChange& change) {
  if (change.key.empty()) {
    meta_->put(kSpaces, change.record.value());
  } else if (change.record) {
    keys_->put(change.key, *change.record);
  } else {
    keys_->erase(change.key);
  }
}

void Catalogue::apply_one_by_one(std::span<const KeyChange> changes) {
  for (const KeyChange& change : changes) apply_one(change);
}

void Catalogue::apply(std::vector<KeyChange> changes) {
  mark_partial();
  if (spaces_changed_) changes.insert(changes.begin(), {std::string(), stored_spaces()});
  if (changes.size() == 1) {
    apply_one(changes.front());
  } else if (!changes.empty()) {
    apply_batch(changes);
  }
  spaces_changed_ = false;
  mark_whole();
}

void Catalogue::mark_partial() {
  if (!partial_ || marked_partial_) return;
  meta_->put(kPartial, "1");
  marked_partial_ = true;
}

void Catalogue::mark_whole() {
  if (partial_ || !marked_partial_) return;
  meta_->erase(kPartial);
  marked_partial_ = false;
}

void Catalogue::apply_batch(std::span<const KeyChange> changes) {
  const std::string batch = encode(changes);
  const bool can_undo = batch.size() > kLargeBatch;
  const std::vector<KeyChange> undo = can_undo ? undo_of(changes) : std::vector<KeyChange>();
  meta_->put(kBatch, batch);
  batch_left_ = true;
  try {
    apply_one_by_one(changes);
  } catch (const Error&) {
    apply_one_by_one(undo);
    if (can_undo) give_up_batch();
    throw;
  }
  meta_->erase(kBatch);
  batch_left_ = false;
}

std::optional<std::string> Catalogue::record(const std::string& key) const {
  return key.empty() ? meta_->get(kSpaces) : keys_->get(key);
}

/// What brings the present records back: first what frees space. The list of spaces may have been
/// absent, which an empty list says too.
std::vector<KeyChange> Catalogue::undo_of(std::span<const KeyChange> changes) const {
  std::vector<KeyChange> undo;
  for (const KeyChange& change : changes) {
    undo.push_back({change.key, record(change.key)});
    if (change.key.empty() && !undo.back().record)
      undo.back().record = std::string(sizeof next_space_, '\0');
  }
  std::stable_partition(undo.begin(), undo.end(),
                        [](const KeyChange& change) { return !change.record; });
  return undo;
}

void Catalogue::give_up_batch() noexcept {
  if (!batch_left_) return;
  try {
    meta_->erase(kBatch);
    batch_left_ = false;
  } catch (const std::exception&) {
    // The device has failed: nothing that is stored from now on reaches the pool.
  }
}

void Catalogue::for_each(
    const std::function<void(int, std::string_view, std::string_view)>& visit) const {
  std::map<std::uint32_t, int> databases;
  for (std::size_t i = 0; i < spaces_.size(); ++i) databases[spaces_[i]] = static_cast<int>(i);
  keys_->scan("", [&](std::string_view key, std::string_view record) {
    const auto found = databases.find(space_in(key));
    if (found != databases.end()) visit(found->second, key.substr(kSpaceSize), record);
    return true;
  });
}

std::size_t Catalogue::record_size(int database, std::string_view name) const {
  if (database >= databases() || name.size() > kMaxName) return 0;
  std::string key = key_of_space(spaces_[static_cast<std::size_t>(database)]);
  key.append(name);
  std::string bytes;
  return keys_->get(key, bytes) ? bytes.size() : 0;
}

void Catalogue::flush(int database) {
  for (std::size_t i = 0; i < spaces_.size(); ++i) {
    if (database != kAllDatabases && static_cast<int>(i) != database) continue;
    left_.push_back(spaces_[i]);
    spaces_[i] = new_space();
    spaces_changed_ = true;
  }
}

std::vector<std::uint32_t> Catalogue::take_left_spaces() {
  return spaces_changed_ ? std::vector<std::uint32_t>() : std::exchange(left_, {});
}

void Catalogue::swap(int first, int second) {
  space_of(std::max(first, second));
  std::swap(spaces_[static_cast<std::size_t>(first)], spaces_[static_cast<std::size_t>(second)]);
  spaces_changed_ = true;
}

std::vector<std::uint32_t> Catalogue::abandoned() const {
  std::vector<std::uint32_t> result;
  for (auto pair = keys_->first(); pair;) {
    const std::uint32_t space = space_in(pair->first);
    if (std::find(spaces_.begin(), spaces_.end(), space) == spaces_.end()) result.push_back(space);
    const std::optional<std::string> next = end_of_space(space);
    if (!next) break;
    pair = keys_->lower_bound(*next);
  }
  return result;
}

void Catalogue::erase_space(std::uint32_t space) {
  const std::string from = key_of_space(space);
  const std::optional<std::string> to = end_of_space(space);
  to ? keys_->erase_range(from, *to) : keys_->erase_range(from);
}

void Catalogue::close() {
  keys_.reset();
  meta_.reset();
}

}  // namespace perdix::valkey
