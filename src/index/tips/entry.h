// A write that waits to be replayed, or that lookups find first: an element of the cache.
//
// An entry belongs to the chain of its bucket, the writes that wait (waiting.h), or both. The
// thread that takes it out of the last of them retires it. The fields that lookups and scans read
// never change, except the link.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "epoch/reclaimer.h"
#include "index/tips/layout.h"

namespace perdix::detail::index::tips {

class Entry {
 public:
  static constexpr std::uint8_t kLinked = 1;    ///< in a chain
  static constexpr std::uint8_t kQueued = 2;    ///< to be replayed
  static constexpr std::uint8_t kDeferred = 4;  ///< a replay found no space for it

  static std::size_t bytes_for(std::string_view key, std::string_view value) {
    return sizeof(Entry) + key.size() + value.size();
  }

  /// In memory of bytes_for(key, value), aligned to words.
  Entry(Operation operation, std::uint64_t hash, std::string_view key, std::string_view value)
      : superseded_by_(0),
        hash_(hash),
        value_size_(static_cast<std::uint32_t>(value.size())),
        key_size_(static_cast<std::uint16_t>(key.size())),
        operation_(operation) {
    char* const to = reinterpret_cast<char*>(this + 1);
    if (!key.empty()) std::memcpy(to, key.data(), key.size());
    if (!value.empty()) std::memcpy(to + key.size(), value.data(), value.size());
  }

  Operation operation() const { return operation_; }
  std::uint64_t hash() const { return hash_; }
  std::string_view key() const { return {bytes(), key_size_}; }
  std::string_view value() const { return {bytes() + key_size_, value_size_}; }
  std::size_t dram_bytes() const { return sizeof(Entry) + key_size_ + value_size_; }

  bool has(std::uint8_t flag) const { return (flags_.load(std::memory_order_acquire) & flag) != 0; }
  void set(std::uint8_t flag) { flags_.fetch_or(flag, std::memory_order_acq_rel); }
  /// Clears a flag. True if the entry is in a place still.
  bool clear(std::uint8_t flag) {
    const std::uint8_t before =
        flags_.fetch_and(static_cast<std::uint8_t>(~flag), std::memory_order_acq_rel);
    return (before & ~flag & (kLinked | kQueued)) != 0;
  }

  /// A later write to the key is durable: the record of that number. Its ring is locked.
  void supersede(std::uint64_t by) { superseded_by_.store(by, std::memory_order_relaxed); }

  /// Whether one of the records up to a number has superseded it. All of them were appended, with
  /// their rings locked, before the caller had those locks.
  bool is_superseded(std::uint64_t up_to) const {
    const std::uint64_t by = superseded_by_.load(std::memory_order_relaxed);
    return by != 0 && by <= up_to;
  }

  /// Other bytes of the same size, while no other thread has the entry.
  void set_key(const void* key) { std::memcpy(reinterpret_cast<char*>(this + 1), key, key_size_); }

  /// The next one in the chain; written with the bucket's lock.
  std::atomic<Entry*>& next() { return next_; }
  const std::atomic<Entry*>& next() const { return next_; }

  /// Of the record; set before the entry is in either place.
  const std::uint64_t& number() const { return number_; }
  void set_number(std::uint64_t number) { number_ = number; }

  /// An entry that is in neither place, and that readers may still have, as what a Reclaimer gets.
  epoch::Retirable& as_retired() { return *new (&retired_) epoch::Retirable; }
  /// The entry that was that.
  static Entry& of(epoch::Retirable& retired) {
    return reinterpret_cast<Entry&>(retired);  // the first member
  }

 private:
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }

  union {
    std::atomic<std::uint64_t> superseded_by_;  // 0: it is the newest of its key
    epoch::Retirable retired_;                  // once the entry is in neither place
  };
  std::uint64_t number_ = 0;
  std::atomic<Entry*> next_{nullptr};
  const std::uint64_t hash_;
  const std::uint32_t value_size_;
  const std::uint16_t key_size_;
  const Operation operation_;
  std::atomic<std::uint8_t> flags_{0};
};
static_assert(sizeof(Entry) == 48 && std::is_standard_layout_v<Entry>);

}  // namespace perdix::detail::index::tips
