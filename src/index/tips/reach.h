// Follows a plugged-in index through a pool whose bytes may be anything: a node or a string is read
// only if a block of the pool holds it.
#pragma once

#include <cstdint>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "alloc/layout.h"
#include "index/tips/plugin.h"
#include "index/tips/words.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Whether the memory that a word leads to is a block of the pool. Thread-safe.
class Blocks {
 public:
  explicit Blocks(pool::PoolCore& pool) : pool_(pool) {}

  static constexpr std::uint64_t kUnit = 16;  // blocks begin at multiples of it

  pm::Offset offset_of(std::uintptr_t address) const {
    return address - reinterpret_cast<std::uintptr_t>(pool_.base());
  }

  bool holds(std::uintptr_t address, std::uint64_t bytes) const {
    const pm::Offset offset = offset_of(address);
    return offset % kUnit == 0 && pool_.contains(offset, bytes) &&
           pool_.allocator().validate_block(offset, bytes);
  }

  /// At most this many bytes.
  bool holds_string(Word word, std::uint64_t most) const {
    if (!holds(word, sizeof(Bytes))) return false;
    const std::uint64_t size = reinterpret_cast<const Bytes*>(word)->size;
    return size <= most && holds(word, sizeof(Bytes) + size);
  }

  bool holds_key(Word word, Kind kind) const {
    return kind == Kind::u64 || holds_string(word, kMaxKeySize);
  }
  bool holds_value(Word word, Kind kind) const {
    return kind == Kind::u64 || holds_string(word, kMaxValueSize);
  }

 private:
  pool::PoolCore& pool_;
};

/// All of an index: each block is reached once.
class Reach final : public Inspector {
 public:
  /// `visit`, if any, is shown each block. A stop ends the inspection.
  Reach(pool::PoolCore& pool, Kinds kinds, const pool::BlockVisitor* visit = nullptr,
        std::stop_token stop = {})
      : blocks_of_(pool), kinds_(kinds), visit_(visit), stop_(std::move(stop)) {}

  bool node(const void* node, std::size_t bytes) override {
    const auto address = reinterpret_cast<std::uintptr_t>(node);
    return !stop_.stop_requested() && blocks_of_.holds(address, bytes) && reach(address);
  }

  bool pair(Word key, Word value) override {
    ++pairs_;
    return blocks_of_.holds_key(key, kinds_.key) && blocks_of_.holds_value(value, kinds_.value) &&
           (kinds_.key == Kind::u64 || reach(key)) && (kinds_.value == Kind::u64 || reach(value));
  }

  bool readable(const void* node, std::size_t bytes) override {
    return blocks_of_.holds(reinterpret_cast<std::uintptr_t>(node), bytes);
  }

  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t pairs() const { return pairs_; }

 private:
  static constexpr std::uint64_t kUnitsPerChunk = alloc::kChunkSize / Blocks::kUnit;

  bool reach(std::uintptr_t address) {
    const pm::Offset offset = blocks_of_.offset_of(address);
    if (!first_time(offset)) return false;
    ++blocks_;
    if (visit_ != nullptr) (*visit_)(offset);
    return true;
  }

  bool first_time(pm::Offset offset) {
    std::vector<bool>& seen = seen_[offset / alloc::kChunkSize];
    if (seen.empty()) seen.resize(kUnitsPerChunk);
    const std::uint64_t unit = offset % alloc::kChunkSize / Blocks::kUnit;
    if (seen[unit]) return false;
    seen[unit] = true;
    return true;
  }

  const Blocks blocks_of_;
  const Kinds kinds_;
  const pool::BlockVisitor* visit_;
  const std::stop_token stop_;
  std::unordered_map<std::uint64_t, std::vector<bool>> seen_;  // by chunk, a bit for each unit
  std::uint64_t blocks_ = 0, pairs_ = 0;
};

/// Where a lookup has been. A damaged index may lead round in circles.
class Trail {
 public:
  /// Whether a long way has come here before. A short one remembers nothing.
  bool comes_again(std::uintptr_t address) {
    constexpr unsigned kLong = 1000;
    return ++steps_ > kLong && !seen_.insert(address).second;
  }

 private:
  unsigned steps_ = 0;
  std::unordered_set<std::uintptr_t> seen_;
};

/// The way of one lookup through an index that was not inspected yet.
class Way final : public Doubting {
 public:
  Way(pool::PoolCore& pool, Kinds kinds, Trail& trail)
      : blocks_(pool), kinds_(kinds), trail_(trail) {}

  bool readable(const void* node, std::size_t bytes) const override {
    const auto address = reinterpret_cast<std::uintptr_t>(node);
    return blocks_.holds(address, bytes) && !trail_.comes_again(address);
  }
  bool holds(const void* block, std::size_t bytes) const override {
    return blocks_.holds(reinterpret_cast<std::uintptr_t>(block), bytes);
  }
  bool key(Word key) const override { return blocks_.holds_key(key, kinds_.key); }
  bool value(Word value) const { return blocks_.holds_value(value, kinds_.value); }

 private:
  const Blocks blocks_;
  const Kinds kinds_;
  Trail& trail_;
};

}  // namespace perdix::detail::index::tips
