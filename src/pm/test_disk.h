// A disk below a journal, for its tests: it keeps what was synced, and of other pages any sectors
// that the kernel may have written back in between. The journal lies in the middle of its memory.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "pm/journal.h"
#include "pm/page_sync.h"
#include "util/random.h"

namespace perdix::detail::pm {

inline constexpr std::uint64_t kSize = 2 << 20;
inline constexpr std::uint64_t kArea = 64 << 10;
inline constexpr std::uint64_t kAreaBytes = 640 << 10;
inline constexpr std::uint64_t kHalf = kAreaBytes / 2;
inline constexpr std::uint64_t kFirstLine = 16 << 10;
inline constexpr std::uint64_t kSectorBytes = 512;
inline constexpr std::uint64_t kData = kArea + kAreaBytes;

/// Memory, and the disk below it. Syncs may come from several threads.
class Disk final : public SyncDevice {
 public:
  Disk() : memory_(kSize / kSyncPage), disk_(kSize / kSyncPage) {}

  int sync(void* begin, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    ++syncs;
    if (error != 0) return error;
    if (crashed) return 0;
    if (crash_at != 0 && syncs >= crash_at) {
      // The power goes: some sectors are there.
      crashed = true;
      write_back_some(offset_of(begin), bytes);
      return 0;
    }
    copy(offset_of(begin), bytes);
    return 0;
  }

  /// The kernel writes some sectors of a page back, unasked.
  void write_back(std::uint64_t offset) {
    const std::lock_guard lock(mutex_);
    if (!crashed) write_back_some(offset / kSyncPage * kSyncPage, kSyncPage);
  }

  std::byte* base() { return reinterpret_cast<std::byte*>(memory_.data()); }
  std::uint64_t* word(std::uint64_t offset) {
    return reinterpret_cast<std::uint64_t*>(base() + offset);
  }
  JournalPlace place() { return {base(), kArea, kAreaBytes, kFirstLine}; }

  /// What the machine finds when it is up again.
  void restart() {
    memory_ = disk_;
    crashed = false;
    crash_at = 0;
  }
  /// Only the process ends: the page cache survives as it is.
  void kill() {
    const std::lock_guard lock(mutex_);
    disk_ = memory_;
    crashed = true;
  }

  util::Random random{1};
  std::atomic<std::uint64_t> syncs = 0;
  std::uint64_t crash_at = 0;  // which sync; 0: none
  std::atomic<bool> crashed = false;
  int error = 0;

 private:
  std::uint64_t offset_of(const void* p) {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base());
  }
  void copy(std::uint64_t offset, std::uint64_t bytes) {
    std::memcpy(reinterpret_cast<std::byte*>(disk_.data()) + offset, base() + offset, bytes);
  }
  void write_back_some(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = offset; at < offset + bytes; at += kSectorBytes) {
      if (random.one_in(2)) copy(at, kSectorBytes);
    }
  }

  struct alignas(kSyncPage) Page {
    std::array<std::uint64_t, kSyncPage / 8> words;
  };

  std::mutex mutex_;
  std::vector<Page> memory_;
  std::vector<Page> disk_;
};

/// By which the background thread syncs: the same disk, with an error of its own, and a gate.
class Beside final : public SyncDevice {
 public:
  explicit Beside(Disk& disk) : disk_(disk) {}

  int sync(void* begin, std::size_t bytes) noexcept override {
    std::unique_lock lock(mutex_);
    ++syncs;
    opened_.wait(lock, [this] { return open_; });
    return error != 0 ? error.load() : disk_.sync(begin, bytes);
  }

  void shut() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

  std::atomic<std::uint64_t> syncs{0};
  std::atomic<int> error{0};

 private:
  Disk& disk_;
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = true;
};

inline void use_journal(PageSync& sync, Disk& disk, Beside* beside = nullptr) {
  sync.use_journal(disk.place(), beside);
  sync.start_journal();
  disk.syncs = 0;
}

inline void replay(Disk& disk) {
  Replay replay(disk.place(), kSize, "test");
  replay.apply();
  replay.finish(disk);
}

}  // namespace perdix::detail::pm
