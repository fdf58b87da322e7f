#include "catalogue.h"

#include <algorithm>
#include <map>

#include "bytes.h"

namespace perdix::valkey {
namespace {

constexpr std::string_view kSpaces = "spaces";
constexpr std::string_view kBatch = "batch";
constexpr std::uint32_t kGone = ~std::uint32_t{0};  // in place of a record's size

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
  complete_batch();
  load_spaces();
}

void Catalogue::complete_batch() {
  const auto batch = meta_->get(kBatch);
  if (!batch) return;
  apply_one_by_one(decode(*batch));
  meta_->erase(kBatch);
}

void Catalogue::load_spaces() {
  const auto stored = meta_->get(kSpaces);
  if (!stored) return;
  ByteReader reader(*stored);
  next_space_ = reader.number<std::uint32_t>();
  while (!reader.at_end()) spaces_.push_back(reader.number<std::uint32_t>());
}

void Catalogue::store_spaces(const std::vector<std::uint32_t>& spaces, std::uint32_t next) {
  std::string stored;
  append_number(stored, next);
  for (const std::uint32_t space : spaces) append_number(stored, space);
  meta_->put(kSpaces, stored);
  spaces_ = spaces;
  next_space_ = next;
}

std::uint32_t Catalogue::space_of(int database) {
  const auto place = static_cast<std::size_t>(database);
  if (place >= spaces_.size()) {
    std::vector<std::uint32_t> spaces = spaces_;
    std::uint32_t next = next_space_;
    while (spaces.size() <= place) spaces.push_back(next++);
    store_spaces(spaces, next);
  }
  return spaces_[place];
}

void Catalogue::key_in(int database, std::string_view name, std::string& key) {
  key.clear();
  append_space(key, space_of(database));
  key.append(name);
}

void Catalogue::apply_one_by_one(std::span<const KeyChange> changes) {
  for (const KeyChange& change : changes) {
    if (change.record) {
      keys_->put(change.key, *change.record);
    } else {
      keys_->erase(change.key);
    }
  }
}

void Catalogue::apply(std::span<const KeyChange> changes) {
  if (changes.size() > 1) meta_->put(kBatch, encode(changes));
  apply_one_by_one(changes);
  if (changes.size() > 1) meta_->erase(kBatch);
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

std::vector<std::uint32_t> Catalogue::flush(int database) {
  std::vector<std::uint32_t> spaces = spaces_;
  std::vector<std::uint32_t> left;
  std::uint32_t next = next_space_;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (database != kAllDatabases && static_cast<int>(i) != database) continue;
    left.push_back(spaces[i]);
    spaces[i] = next++;
  }
  if (!left.empty()) store_spaces(spaces, next);
  return left;
}

void Catalogue::swap(int first, int second) {
  space_of(std::max(first, second));
  std::vector<std::uint32_t> spaces = spaces_;
  std::swap(spaces[static_cast<std::size_t>(first)], spaces[static_cast<std::size_t>(second)]);
  store_spaces(spaces, next_space_);
}

std::vector<std::uint32_t> Catalogue::abandoned() const {
  std::vector<std::uint32_t> result;
  for (auto pair = keys_->first(); pair;) {
    const std::uint32_t space = space_in(pair->first);
    if (std::find(spaces_.begin(), spaces_.end(), space) == spaces_.end()) result.push_back(space);
    pair = keys_->lower_bound(key_of_space(space + 1));
  }
  return result;
}

void Catalogue::erase_space(std::uint32_t space) {
  keys_->erase_range(key_of_space(space), key_of_space(space + 1));
}

void Catalogue::close() {
  keys_.reset();
  meta_.reset();
}

}  // namespace perdix::valkey
