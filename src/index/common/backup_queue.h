// Leaves on their way to a tree in PM that leads to leaves by their low bounds (backup.h): a
// structure modification puts a leaf here, and the pool's background thread backs it up.
//
// An entry states what was true when it was pushed. Since then the leaf may have been merged away,
// and its block may have become another leaf. So back_up() must check that the leaf still exists.
// For this the entry has the low bound, and not what DRAM has of the leaf, which may be gone.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "pm/offset.h"
#include "pool/background.h"
#include "util/spin_lock.h"

namespace perdix::detail::index {

template <Storable K>
class BackupQueue {
 public:
  using BackUp = std::function<void(View<K> low, pm::Offset leaf)>;

  /// back_up() is called once for each entry, on any thread, and must not throw. The destructor
  /// calls it for the remaining entries.
  BackupQueue(pool::Background& background, BackUp back_up)
      : back_up_(std::move(back_up)), job_(background, [this] { back_up_all(); }) {}

  /// Does not wait. Returns false, and changes nothing, if there is no room or no memory.
  bool push(View<K> low, pm::Offset leaf) {
    const std::optional<bool> first = add(low, leaf);
    if (first == true) job_.request();
    return first.has_value();
  }

  /// Returns when all that was put here before the call is backed up; helps with it.
  void finish() { job_.finish(); }

 private:
  struct Entry {
    K low;
    pm::Offset leaf;

    std::size_t bytes() const {
      if constexpr (std::is_same_v<K, std::string>) return sizeof(Entry) + low.size();
      return sizeof(Entry);
    }
  };

  /// Whether it is the first; nothing if it has no room.
  std::optional<bool> add(View<K> low, pm::Offset leaf) {
    try {
      Entry entry{K(low), leaf};
      const std::lock_guard lock(lock_);
      const std::size_t bytes = bytes_ + entry.bytes();
      if (bytes > kMaxBytes) return std::nullopt;
      entries_.push_back(std::move(entry));
      bytes_ = bytes;
      return entries_.size() == 1;
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  }

  void back_up_all() {
    std::vector<Entry> entries;
    {
      const std::lock_guard lock(lock_);
      entries.swap(entries_);
      bytes_ = 0;
    }
    for (const Entry& entry : entries) back_up_(entry.low, entry.leaf);
  }

  /// 4,096 entries of integers: that many accumulate only if the thread gets no processor.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 16;

  const BackUp back_up_;
  util::SpinLock lock_;  // guards what follows
  std::vector<Entry> entries_;
  std::size_t bytes_ = 0;
  pool::Background::Job job_;  // last: finishes before anything else goes away
};

}  // namespace perdix::detail::index
