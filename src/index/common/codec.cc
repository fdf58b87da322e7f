#include "index/common/codec.h"

#include <cstring>

#include <fmt/format.h>

#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index {
namespace {

using Length = std::uint32_t;

[[noreturn]] void throw_outside(const pool::PoolCore& pool, Word word) {
  pool::throw_damaged(pool,
                      fmt::format("a string reference ({:#x}) points outside of the pool", word),
                      pool::kCheck);
}

Length length_at(const pool::PoolCore& pool, pm::Offset blob) {
  Length length;
  std::memcpy(&length, pool.at<char>(blob), sizeof length);
  return length;
}

Word make_word(pm::Offset offset, Hash16 tag) { return offset | Word{tag} << 48; }

/// Where the value's blob lies in a block of a pair.
std::size_t place_of_value(std::size_t key_size) {
  return (sizeof(Length) + key_size + alignof(Length) - 1) / alignof(Length) * alignof(Length);
}

/// Not flushed.
void write_blob(const pm::Persister& pm, char* blob, std::string_view value) {
  const auto length = static_cast<Length>(value.size());
  pm.copy(blob, &length, sizeof length);
  pm.copy(blob + sizeof length, value.data(), value.size());
}

}  // namespace

std::string_view Codec<std::string>::view(Word word) const {
  const pm::Offset offset = blob_offset(word);
  if (offset == pm::kNull) return {};
  if (offset % sizeof(Length) != 0 || !pool_->contains(offset, sizeof(Length)))
    throw_outside(*pool_, word);
  const Length length = length_at(*pool_, offset);
  if (!pool_->contains(offset, sizeof length + length)) throw_outside(*pool_, word);
  const char* blob = pool_->at<char>(offset);
  pm::on_read(blob, sizeof length + length);
  return {blob + sizeof length, length};
}

void Codec<std::string>::prefetch(Word word) const {
  const pm::Offset offset = blob_offset(word);
  if (pool_->contains(offset, 1)) __builtin_prefetch(pool_->at<char>(offset));
}

bool Codec<std::string>::sound(Word word) const {
  const pm::Offset offset = blob_offset(word);
  if (offset == pm::kNull) return word == 0;
  const alloc::Calloc& allocator = pool_->allocator();
  if (!allocator.validate_block(offset, sizeof(Length))) return false;
  return allocator.validate_block(offset, sizeof(Length) + length_at(*pool_, offset));
}

std::int64_t Codec<std::string>::footprint(Word word) const {
  if (blobs(word) == 0) return 0;
  return static_cast<std::int64_t>(pool_->allocator().block_size(blob_offset(word)));
}

Word Codec<std::string>::write(alloc::Session& session, std::string_view value, Hash16 tag) const {
  if (value.empty()) return 0;
  const std::size_t size = sizeof(Length) + value.size();
  const pm::Offset offset = session.reserve(size);
  char* blob = pool_->at<char>(offset);
  write_blob(pool_->pm(), blob, value);
  // Flushed only: the fence of the session's log() comes before the commit that links the blob.
  pool_->pm().flush(blob, size);
  return make_word(offset, tag);
}

PairWords Codec<std::string>::write_pair(alloc::Session& session, std::string_view key, Hash16 tag,
                                         std::string_view value) const {
  const std::size_t place = place_of_value(key.size());
  const std::size_t size = place + sizeof(Length) + value.size();
  if (key.empty() || value.empty() || size > kMaxPairBlock)
    return {write(session, key, tag), write(session, value)};
  const pm::Offset offset = session.reserve(size);
  char* block = pool_->at<char>(offset);
  write_blob(pool_->pm(), block, key);
  write_blob(pool_->pm(), block + place, value);
  pool_->pm().flush(block, size);  // as write() does
  return {make_word(offset, tag), make_word(offset + place, kInKeyBlock)};
}

bool Codec<std::string>::sound_in_key_block(Word key, Word value) const {
  if (blobs(key) == 0 || !sound(key)) return false;
  const pm::Offset block = blob_offset(key), blob = blob_offset(value);
  if (blob != block + place_of_value(view(key).size())) return false;
  const alloc::Calloc& allocator = pool_->allocator();
  const std::uint64_t head = blob + sizeof(Length) - block;
  return allocator.validate_block(block, head) &&
         allocator.validate_block(block, head + length_at(*pool_, blob));
}

}  // namespace perdix::detail::index
