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

}  // namespace

std::string_view Codec<std::string>::view(Word word) const {
  const pm::Offset offset = blob_offset(word);
  if (offset == pm::kNull) return {};
  if (offset % sizeof(Length) != 0 || !pool_->contains(offset, sizeof(Length)))
    throw_outside(*pool_, word);
  const char* blob = pool_->at<char>(offset);
  Length length;
  std::memcpy(&length, blob, sizeof length);
  if (!pool_->contains(offset, sizeof length + length)) throw_outside(*pool_, word);
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
  Length length;
  std::memcpy(&length, pool_->at<char>(offset), sizeof length);
  return allocator.validate_block(offset, sizeof length + length);
}

std::int64_t Codec<std::string>::footprint(Word word) const {
  if (blobs(word) == 0) return 0;
  return static_cast<std::int64_t>(pool_->allocator().block_size(blob_offset(word)));
}

Word Codec<std::string>::write(alloc::Session& session, std::string_view value, Hash16 tag) const {
  if (value.empty()) return 0;
  const auto length = static_cast<Length>(value.size());
  const pm::Offset offset = session.reserve(sizeof length + value.size());
  char* blob = pool_->at<char>(offset);
  pool_->pm().copy(blob, &length, sizeof length);
  pool_->pm().copy(blob + sizeof length, value.data(), value.size());
  // Flushed only: the fence of the session's log() comes before the commit that links the blob.
  pool_->pm().flush(blob, sizeof length + value.size());
  return offset | (std::uint64_t{tag} << 48);
}

}  // namespace perdix::detail::index
