// A write that waits to be replayed, or that lookups find first: an element of the cache.
//
// An entry belongs to the chain of its bucket, the queue of its log, or both; whoever takes it out
// of the last of them gives it up. Its bytes never change.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "index/tips/layout.h"

namespace perdix::detail::index::tips {

class Entry {
 public:
  static constexpr std::uint8_t kLinked = 1;  ///< in a chain
  static constexpr std::uint8_t kQueued = 2;  ///< to be replayed

  static Entry* make(Operation operation, std::uint64_t hash, std::string_view key,
                     std::string_view value) {
    void* const memory = std::malloc(sizeof(Entry) + key.size() + value.size());
    if (memory == nullptr) throw std::bad_alloc();
    return new (memory) Entry(operation, hash, key, value);
  }
  static void destroy(Entry* entry) noexcept { std::free(entry); }

  Operation operation() const { return operation_; }
  std::uint64_t hash() const { return hash_; }
  std::string_view key() const { return {bytes(), key_size_}; }
  std::string_view value() const { return {bytes() + key_size_, value_size_}; }
  std::size_t dram_bytes() const { return sizeof(Entry) + key_size_ + value_size_; }

  bool has(std::uint8_t flag) const { return (flags_.load(std::memory_order_acquire) & flag) != 0; }
  void set(std::uint8_t flag) { flags_.fetch_or(flag, std::memory_order_acq_rel); }
  /// Takes the entry out of one place. True if it is in the other one still.
  bool clear(std::uint8_t flag) {
    const std::uint8_t before =
        flags_.fetch_and(static_cast<std::uint8_t>(~flag), std::memory_order_acq_rel);
    return (before & ~flag) != 0;
  }

  /// A later write to the key is durable: the record of that number. Its ring is locked.
  void supersede(std::uint64_t by) { superseded_by_.store(by, std::memory_order_relaxed); }

  /// Whether one of the records up to a number has superseded it. All of them were appended, with
  /// their rings locked, before the caller had those locks.
  bool is_superseded(std::uint64_t up_to) const {
    const std::uint64_t by = superseded_by_.load(std::memory_order_relaxed);
    return by != 0 && by <= up_to;
  }

  /// Other bytes of the same size, while nobody else has the entry.
  void set_key(const void* key) { std::memcpy(reinterpret_cast<char*>(this + 1), key, key_size_); }

  std::atomic<Entry*> next{nullptr};  // in the chain; written with the bucket's lock
  std::uint64_t number = 0;           // of the record; set before the entry is in either place

 private:
  Entry(Operation operation, std::uint64_t hash, std::string_view key, std::string_view value)
      : hash_(hash),
        value_size_(static_cast<std::uint32_t>(value.size())),
        key_size_(static_cast<std::uint16_t>(key.size())),
        operation_(operation) {
    char* const to = reinterpret_cast<char*>(this + 1);
    if (!key.empty()) std::memcpy(to, key.data(), key.size());
    if (!value.empty()) std::memcpy(to + key.size(), value.data(), value.size());
  }

  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }

  const std::uint64_t hash_;
  const std::uint32_t value_size_;
  const std::uint16_t key_size_;
  const Operation operation_;
  std::atomic<std::uint8_t> flags_{0};
  std::atomic<std::uint64_t> superseded_by_{0};  // 0: it is the newest of its key
};

/// An entry that nobody else has yet.
struct DestroyEntry {
  void operator()(Entry* entry) const noexcept { Entry::destroy(entry); }
};

}  // namespace perdix::detail::index::tips
