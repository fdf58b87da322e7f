// A plain log with group commit: what a store that is durable when a call returns must write at
// least. The pairs are in a map in DRAM; each write goes to a file as a record, which nobody reads
// again, so there is no checkpoint, and no opening. It is no store, but a yardstick for them.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>

#include <perdix/error.h>

#include "systems/stored_bytes.h"
#include "systems/string_hash.h"
#include "systems/systems.h"
#include "ycsb/memory.h"
#include "ycsb/worker.h"

namespace perdix::bench {
namespace {

/// Threads that append while another one writes are the next group: the first of them writes for
/// all, and each wakes by itself when its group is on the device.
class GroupedLog {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;  ///< then it begins anew

  GroupedLog(const std::filesystem::path& path, bool synced)
      : synced_(synced), file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    require(file_ >= 0, "open");
    const int failed = posix_fallocate(file_, 0, static_cast<off_t>(kBytes));
    if (failed != 0) errno = failed;
    require(failed == 0 && fsync(file_) == 0, "allocate");
  }
  ~GroupedLog() { close(file_); }
  GroupedLog(const GroupedLog&) = delete;
  GroupedLog& operator=(const GroupedLog&) = delete;

  /// Returns when the record is in the file, on the device if that was asked for.
  void append(std::string_view key, std::string_view value) {
    std::unique_lock lock(mutex_);
    const bool leads = filling_ == nullptr;
    if (leads) filling_ = std::make_shared<Group>();
    const std::shared_ptr<Group> group = filling_;
    const std::uint32_t sizes[] = {static_cast<std::uint32_t>(key.size()),
                                   static_cast<std::uint32_t>(value.size())};
    group->bytes.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
    group->bytes.append(key).append(value);
    if (!leads) {
      lock.unlock();
      group->done.wait(0);
    } else {
      const std::shared_ptr<Group> before = std::exchange(last_, group);
      lock.unlock();
      if (before != nullptr) before->done.wait(0);
      lock.lock();
      filling_ = nullptr;
      lock.unlock();
      group->failed = !write(group->bytes);
      group->done = 1;
      group->done.notify_all();
    }
    if (group->failed) throw Error(Errc::io_error, "the plain log could not be written");
  }

 private:
  struct Group {
    std::string bytes;
    bool failed = false;
    std::atomic<int> done = 0;
  };

  static void require(bool ok, const char* what) {
    if (ok) return;
    throw Error(Errc::io_error, std::string("the plain log failed to ") + what + ": " +
                                    std::generic_category().message(errno));
  }

  /// One thread at a time.
  bool write(std::string_view bytes) {
    if (end_ + bytes.size() > kBytes) end_ = 0;
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(end_));
    if (written != static_cast<ssize_t>(bytes.size())) return false;
    end_ += bytes.size();
    return !synced_ || fdatasync(file_) == 0;
  }

  const bool synced_;
  const int file_;
  std::uint64_t end_ = 0;  // only of the thread that writes

  std::mutex mutex_;                // guards what follows
  std::shared_ptr<Group> filling_;  // null: the next thread begins one
  std::shared_ptr<Group> last_;     // that was begun
};

template <Storable K, Storable V>
class PlainLog {
 public:
  using Pairs = boost::unordered_flat_map<K, V, HashOf<K, boost::hash<K>>, EqualOf<K>>;

  explicit PlainLog(const Setup& setup)
      : heap_before_(heap_bytes_in_use()), log_(setup.directory / "log", setup.synced()) {
    pairs_.reserve(setup.reserved_records());
  }

  class Client {
   public:
    explicit Client(PlainLog& map) : map_(map) {}

    bool get(View<K> key, Sink& sink) {
      const std::lock_guard lock(map_.mutex_);
      const auto found = map_.pairs_.find(key);
      if (found == map_.pairs_.end()) return false;
      sink.take(found->second);
      return true;
    }

    // A pair changes when its record is durable. Two writes of a key at the same time may come to
    // the map in another order than to the log.
    bool insert(View<K> key, View<V> value) {
      if (contains(key)) return false;
      append(key, value);
      const std::lock_guard lock(map_.mutex_);
      return map_.pairs_.try_emplace(K(key), value).second;
    }
    bool update(View<K> key, View<V> value) {
      if (!contains(key)) return false;
      append(key, value);
      const std::lock_guard lock(map_.mutex_);
      map_.pairs_.insert_or_assign(K(key), V(value));
      return true;
    }
    bool erase(View<K> key) {
      if (!contains(key)) return false;
      map_.log_.append(StoredBytes(key).view(), {});
      const std::lock_guard lock(map_.mutex_);
      return map_.pairs_.erase(key) == 1;
    }

   private:
    bool contains(View<K> key) {
      const std::lock_guard lock(map_.mutex_);
      return map_.pairs_.contains(key);
    }
    void append(View<K> key, View<V> value) {
      map_.log_.append(StoredBytes(key).view(), StoredBytes(value).view());
    }

    PlainLog& map_;
  };

  Client client() { return Client(*this); }

  OwnFootprint footprint() const { return {heap_bytes_in_use() - heap_before_, std::nullopt}; }

 private:
  std::uint64_t heap_before_;
  std::mutex mutex_;
  Pairs pairs_;
  GroupedLog log_;
};

std::string plain_log_settings(const Setup& setup) {
  return std::string(
             "a file of 64 MiB that is written over, pairs in DRAM, nothing is read again; ") +
         (setup.synced() ? "fdatasync for each group of writes" : "no sync");
}

}  // namespace

std::vector<System> plain_log_systems() {
  return {{"plain_log", "a log with group commit, and a map in DRAM: a yardstick", false,
           open_store<PlainLog>, plain_log_settings, calls_of<PlainLog>()}};
}

}  // namespace perdix::bench
