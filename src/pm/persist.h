// The seam through which all of perdix writes to and persists PM. Nothing outside pm/ contains a
// flush, a fence or an msync.
//
// The unit of atomicity is an aligned 8-byte store. Nothing else is assumed: a line may be written
// back at any moment, with any prefix of the stores made to it, whether or not it was flushed. A
// store is durable once flush() and then fence() of the same thread have returned; in the cpu_cache
// domain once it is globally visible.
//
// One Persister serves a pool and all its threads; every call is const, and but for the page_cache
// domain inline and free of virtual calls. In that domain a sync may fail: see page_sync.h.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "pm/change.h"
#include "pm/domain.h"
#include "pm/file.h"
#include "pm/flush_instruction.h"
#include "pm/offset.h"
#include "pm/page_sync.h"
#include "pm/probe.h"
#include "pm/word_pair.h"

namespace perdix::detail::pm {

class Persister {
 public:
  /// `survives_power`: the pool must outlive the machine, not only the process. In the cpu_cache
  /// domain that decides whether a fence waits for global visibility (sfence) or only keeps the
  /// compiler from moving stores: a store of a process that is killed still leaves its store
  /// buffer.
  /// `on_failed_sync`: as PageSync has it.
  explicit Persister(Domain domain, bool survives_power = true,
                     std::function<void()> on_failed_sync = nullptr)
      : domain_(domain),
        survives_power_(survives_power),
        instruction_(best_flush_instruction()),
        pages_(domain == Domain::page_cache ? std::make_unique<PageSync>(std::move(on_failed_sync))
                                            : nullptr) {}

  Domain domain() const noexcept { return domain_; }

  /// Starts writing back [p, p+n); durable after the next fence() of this thread. Cost: one
  /// instruction per line.
  void flush(const void* p, std::size_t n, Site site = Site::current()) const {
    if (!on_flush(p, n, site)) return;
    if (domain_ == Domain::cpu_cache) return;
    if (domain_ == Domain::page_cache) return pages_->note(p, n);
    flush_lines(instruction_, p, n);
  }

  /// Orders: everything that this thread flushed is durable when fence() returns, and stores after
  /// it come later.
  void fence(Site site = Site::current()) const {
    if (!on_fence(site)) return;
    if (domain_ == Domain::page_cache) return pages_->sync();
    if (domain_ == Domain::cpu_cache && !survives_power_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return;
    }
    store_fence();
  }

  /// flush() and fence().
  void persist(const void* p, std::size_t n, Site site = Site::current()) const {
    flush(p, n, site);
    fence(site);
  }

  /// The commit of a protocol: stores an aligned 8-byte word atomically (release), then persists
  /// it.
  template <class T>
  void publish(T& word, std::type_identity_t<T> value, Site site = Site::current()) const {
    static_assert(sizeof(T) == 8);
    store(word, value);
    persist(&word, sizeof(T), site);
  }

  /// Whether commit() makes several stores as one, which takes a single sync. Else it is one of
  /// fence() and publish().
  bool commits_as_one() const noexcept { return pages_ != nullptr && pages_->journals(); }

  /// fence(), then publish(word, value): what this thread has flushed is durable before the word
  /// can be. Cost: one sync in the page_cache domain, two fences elsewhere. The caller keeps other
  /// threads from changing the word during the call.
  void commit(std::uint64_t& word, std::uint64_t value, Site site = Site::current()) const {
    if (commits_as_one()) {
      const Change change = set_word(word, value);
      return commit({&change, 1}, site);
    }
    fence(site);
    publish(word, value, site);
  }

  /// Where commits_as_one(): makes what this thread has flushed and all of the changes durable as
  /// one, then makes the changes. A crash leaves all of this or no change. Other threads may see
  /// some of them before others, in their order. The caller keeps other threads from changing these
  /// bits during the call.
  void commit(std::span<const Change> changes, Site site = Site::current()) const {
    assert(commits_as_one());
    if (!on_commit(changes, site)) return make_all(changes);
    pages_->commit(changes);
  }

  /// Stores an aligned 8-byte word atomically (release). It is durable before anything is that a
  /// thread fences or commits which has seen it. Cost: as publish(); in the page_cache domain no
  /// sync, since the next one of any thread takes it along.
  void publish_for_next(std::uint64_t& word, std::uint64_t value,
                        Site site = Site::current()) const {
    if (!commits_as_one()) return publish(word, value, site);
    if (!on_publish_for_next(word, value, site)) return make(set_word(word, value));
    pages_->store_for_all(word, value);
  }

  /// Persists [p, p+n) where it is, also where the pool has a journal: for what is read before the
  /// journal is.
  void persist_in_place(const void* p, std::size_t n, Site site = Site::current()) const {
    if (domain_ != Domain::page_cache) return persist(p, n, site);
    if (!on_flush(p, n, site)) return fence(site);
    pages_->sync_in_place(p, n);
    fence(site);
  }

  /// In the page_cache domain: from now on what is fenced goes to the journal, which is empty, and
  /// back into its place by checkpoint(). Called while no other thread uses this, before the
  /// superblock says that the journal counts. `background`: as Journal has it.
  void use_journal(const JournalPlace& place, SyncDevice* background,
                   Site site = Site::current()) const {
    if (pages_ == nullptr) return;
    pages_->use_journal(place, background);
    if (!on_fence(site)) return;
    pages_->start_journal();
  }
  void checkpoint() const {
    if (pages_ != nullptr) pages_->checkpoint();
  }

  /// As PageSync has it. Where commits_as_one().
  void move_journal(const JournalPlace& place, Site site = Site::current()) const {
    if (on_fence(site)) pages_->move_journal(place);
  }

  /// As PageSync has it: before the pool is unmapped.
  void end_background() const noexcept {
    if (pages_ != nullptr) pages_->end_background();
  }

  /// Stores an aligned word of 1, 2, 4 or 8 bytes atomically (release). Not durable before a flush
  /// and a fence.
  template <class T>
  void store(T& word, std::type_identity_t<T> value) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    assert(reinterpret_cast<std::uintptr_t>(&word) % sizeof(T) == 0);
    before_write(&word, sizeof(T));
    __atomic_store(&word, &value, __ATOMIC_RELEASE);
    on_write(&word, sizeof(T));
  }

  /// Changes an aligned 8-byte word if it is as expected; otherwise `expected` becomes the present
  /// word. Sequentially consistent. Not durable before a flush and a fence.
  bool compare_exchange(std::uint64_t& word, std::uint64_t& expected, std::uint64_t desired) const {
    assert(reinterpret_cast<std::uintptr_t>(&word) % sizeof(word) == 0);
    before_write(&word, sizeof(word));
    const bool changed = __atomic_compare_exchange_n(&word, &expected, desired, false,
                                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (changed) on_write(&word, sizeof(word));
    return changed;
  }

  /// Changes one word of a pair if both are as expected; otherwise `expected` becomes the present
  /// pair. A crash still leaves single words, so only one may change.
  bool compare_exchange(WordPair& pair, WordPair& expected, WordPair desired) const {
    assert(expected.first == desired.first || expected.second == desired.second);
    std::uint64_t& word = expected.first != desired.first ? pair.first : pair.second;
    before_write(&word, sizeof(word));
    const bool changed = compare_exchange_pair(pair, expected, desired);
    if (changed) on_write(&word, sizeof(word));
    return changed;
  }

  /// Copies into PM that no other thread reads yet. Not durable before a flush and a fence.
  void copy(void* to, const void* from, std::size_t n) const {
    before_write(to, n);
    std::memcpy(to, from, n);
    on_write(to, n);
  }

  /// Writes whole lines, word by word, as a flush() of them, too: durable after the next fence() of
  /// this thread, and before it other threads may not see them. Where there is a device that writes
  /// in units of several lines, lines that are streamed together reach it together: it does not
  /// write a unit more than once, nor read it to complete it, as it must for lines that a cache
  /// evicts one by one. Elsewhere these are plain stores. Cost: no read of what is overwritten; a
  /// later read finds nothing in the caches.
  void stream(void* to, const void* from, std::size_t n, Site site = Site::current()) const {
    assert(reinterpret_cast<std::uintptr_t>(to) % kLineSize == 0 && n % kLineSize == 0);
    before_write(to, n);
    auto* const words = static_cast<std::uint64_t*>(to);
    const auto* const source = static_cast<const std::uint64_t*>(from);
    if (domain_ == Domain::memory_controller || (domain_ == Domain::cpu_cache && survives_power_)) {
      stream_words(words, source, n / sizeof *words);
    } else {
      // Release: a late reader of the old data may follow a new word.
      for (std::size_t i = 0; i < n / sizeof *words; ++i)
        __atomic_store_n(words + i, source[i], __ATOMIC_RELEASE);
    }
    on_stream(to, n);
    if (on_flush(to, n, site) && domain_ == Domain::page_cache) pages_->note(to, n);
  }

  /// Fills PM that no other thread reads yet with zeros. Not durable before a flush and a fence.
  void zero(void* to, std::size_t n) const {
    before_write(to, n);
    std::memset(to, 0, n);
    on_write(to, n);
  }

  /// Waits until contents and size of the pool's file are on the device. Throws io_error. In the
  /// page_cache domain a failure is that of a sync.
  void sync_file(File& file) const { pages_ != nullptr ? pages_->sync_file(file) : file.sync(); }

  /// True from the first failed sync on: what the disk holds is unknown, and the pool must refuse
  /// further work.
  bool failed() const noexcept { return pages_ != nullptr && pages_->failed(); }

 private:
  Domain domain_;
  bool survives_power_;
  FlushInstruction instruction_;
  std::unique_ptr<PageSync> pages_;
};

}  // namespace perdix::detail::pm
