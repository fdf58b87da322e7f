// Follows a plugged-in index through a pool whose bytes may be anything: a node or a string is read
// only if a block of the pool holds it, and each block is reached once.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <perdix/types.h>

#include "alloc/layout.h"
#include "index/tips/core.h"
#include "index/tips/plugin.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Reach final : public Inspector {
 public:
  /// `visit`, if any, is shown each block.
  Reach(pool::PoolCore& pool, Kinds kinds, const pool::BlockVisitor* visit = nullptr)
      : pool_(pool), kinds_(kinds), visit_(visit) {}

  bool node(const void* node, std::size_t bytes) override {
    return block(reinterpret_cast<std::uintptr_t>(node), bytes);
  }

  bool pair(Word key, Word value) override {
    ++pairs_;
    return string(key, kinds_.key, kMaxKeySize) && string(value, kinds_.value, kMaxValueSize);
  }

  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t pairs() const { return pairs_; }

 private:
  static constexpr std::uint64_t kUnit = 16;  // blocks begin at multiples of it
  static constexpr std::uint64_t kUnitsPerChunk = alloc::kChunkSize / kUnit;

  bool block(std::uintptr_t address, std::uint64_t bytes) {
    const auto offset = address - reinterpret_cast<std::uintptr_t>(pool_.base());
    if (offset % kUnit != 0 || !pool_.contains(offset, bytes)) return false;
    if (!pool_.allocator().validate_block(offset, bytes) || !first_time(offset)) return false;
    ++blocks_;
    if (visit_ != nullptr) (*visit_)(offset);
    return true;
  }

  bool string(Word word, Kind kind, std::uint64_t most) {
    if (kind == Kind::u64) return true;
    if (!block(word, sizeof(Bytes))) return false;
    const std::uint64_t size = reinterpret_cast<const Bytes*>(word)->size;
    const auto offset = word - reinterpret_cast<std::uintptr_t>(pool_.base());
    return size <= most && pool_.allocator().validate_block(offset, sizeof(Bytes) + size);
  }

  bool first_time(pm::Offset offset) {
    std::vector<bool>& seen = seen_[offset / alloc::kChunkSize];
    if (seen.empty()) seen.resize(kUnitsPerChunk);
    const std::uint64_t unit = offset % alloc::kChunkSize / kUnit;
    if (seen[unit]) return false;
    seen[unit] = true;
    return true;
  }

  pool::PoolCore& pool_;
  const Kinds kinds_;
  const pool::BlockVisitor* visit_;
  std::unordered_map<std::uint64_t, std::vector<bool>> seen_;  // by chunk, a bit for each unit
  std::uint64_t blocks_ = 0, pairs_ = 0;
};

}  // namespace perdix::detail::index::tips
