// The pages of a container: protected against stores, copied before the first store to each.
//
//   pages.begin();                  // all pages are read-only from here on
//   ...                             // a store faults; on_fault() copies the page, durably, and
//                                   // lets the store happen
//   pages.commit();                 // or pages.roll_back()
//
// Each page has a fixed place for its copy, so a fault needs no space and can't fail for lack of
// it. An epoch lasts from one commit to the next (Header::epoch). After a crash recover() brings
// back what the pages held when the epoch began.
//
// Invariant: during a write a page is writable only if it is dirty, which means that its copy was
// durable before the page became so. At all times outside of a write all pages are equal to what
// was committed last.
//
// Not thread-safe. The handler of SIGSEGV calls on_fault() on the thread that stores (faults.h), in
// the middle of a write: so on_fault() allocates nothing, unless a probe is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/common/owned.h"
#include "index/tips_of/layout.h"
#include "pm/persist.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips_of {

class Pages {
 public:
  /// Finds the pages: follows the chain of extents in PM. Throws corrupt.
  Pages(pool::PoolCore& pool, Header& header);
  /// Removes the protection: the pages can be written to as all of the pool again.
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// On opening: puts back the pages that were changed in an epoch that did not end, durably.
  void recover();

  /// Begins a write: protects all pages that are not protected yet. Throws unsupported if the
  /// kernel refuses.
  void begin();

  /// Called when a store to `address` has faulted. Copies the page, durably, and makes it writable.
  /// Returns whether the store can be made now; false if the address is in none of these pages, if
  /// the page was writable already, or if the kernel refuses.
  bool on_fault(std::uintptr_t address) noexcept;

  /// Ends the write: makes all stores durable, then, by one store, the copies meaningless.
  void commit() noexcept;

  /// Ends the write: puts back what all pages held before it.
  void roll_back() noexcept;

  /// Adds an extent with this many pages, durably, also if the write is rolled back. The pages are
  /// protected. Throws out_of_space, too_large, no_memory.
  void add_extent(std::uint64_t pages);

  std::size_t extents() const { return ranges_.size(); }
  std::uint64_t bytes(std::size_t extent) const { return ranges_[extent].pages * kPage; }
  std::byte* begin_of(std::size_t extent) const { return ranges_[extent].page(0); }
  std::uint64_t count() const { return count_; }

  /// Whether [p, p + n) lies in one extent's pages.
  bool contains(const void* p, std::uint64_t n) const;

  /// Calls show(word) for each word that was changed since begin(), which may change it again.
  template <class Show>
  void for_each_changed_word(Show show) const {
    for (const Dirty& dirty : dirty_) {
      auto* now = reinterpret_cast<std::uint64_t*>(dirty.range(*this).page(dirty.page));
      const auto* before =
          reinterpret_cast<const std::uint64_t*>(dirty.range(*this).copy(dirty.page));
      for (std::size_t i = 0; i < kPage / sizeof *now; ++i)
        if (now[i] != before[i]) show(now + i);
    }
  }

  /// The number of pages that were changed since begin().
  std::size_t dirty() const { return dirty_.size(); }
  std::uint64_t copied() const { return copied_; }
  std::uint64_t commits() const { return commits_; }

  /// Tells of the extents, then of the header, which the root word leads to: all that the index
  /// owns. The extents are those that the constructor has checked.
  void walk(std::uint64_t& root_word, Owned& owned) const;

  pool::PoolCore& pool() const { return pool_; }

 private:
  /// An extent as it lies in memory.
  struct Range {
    Extent* extent;
    std::uint64_t pages;
    std::byte* copies;
    std::vector<bool> dirty;

    PageRecord& record(std::uint64_t page) const {
      return reinterpret_cast<PageRecord*>(extent + 1)[page];
    }
    std::byte* copy(std::uint64_t page) const { return copies + page * kPage; }
    std::byte* page(std::uint64_t page) const { return copies + (pages + page) * kPage; }
  };

  struct Dirty {
    std::size_t extent;
    std::uint64_t page;
    Range& range(Pages& pages) const { return pages.ranges_[extent]; }
    const Range& range(const Pages& pages) const { return pages.ranges_[extent]; }
  };

  const pm::Persister& pm() const { return pool_.pm(); }
  std::uint64_t epoch() const;
  Range range_at(pm::Offset block) const;
  void protect_range(const Range& range) const;
  std::uint64_t& last_link() const;
  std::uint64_t check_of(const std::byte* page, const void* copy) const;
  void copy_page(const Range& range, std::uint64_t page);
  bool open(std::size_t extent, std::uint64_t page) noexcept;
  bool open_all(std::size_t extent) noexcept;
  void note(std::size_t extent, std::uint64_t page) noexcept;
  void put_back(const Range& range, std::uint64_t page) const;
  void end_epoch() noexcept;
  void protect_dirty() noexcept;
  void report() noexcept;
  void reserve_notes(std::uint64_t more);

  pool::PoolCore& pool_;
  Header& header_;
  std::vector<Range> ranges_;
  std::uint64_t count_ = 0;   // of pages
  std::vector<Dirty> dirty_;  // has capacity for all pages: on_fault() adds to it
  bool protected_ = false;    // all pages that are not dirty are protected
  bool ever_protected_ = false;
  std::uint64_t copied_ = 0, commits_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> reported_;  // of each dirty page, under a probe
};

}  // namespace perdix::detail::index::tips_of
