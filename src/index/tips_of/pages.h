// The pages of a container: protected against stores, copied before the first store to each.
//
//   pages.begin();                  // all pages are read-only
//   ...                             // a store faults; on_fault() copies the page, durably, and
//                                   // lets the store happen
//   pages.commit();                 // or pages.roll_back()
//
// Each page has a fixed place for its copy, so a fault needs no space and can't fail for lack of
// it. Whatever a crash leaves, recover() brings back what the pages held when the epoch began.
//
// One thread at a time; that of a store calls on_fault().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/tips_of/layout.h"
#include "pm/persist.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips_of {

class Pages {
 public:
  /// Follows the chain of extents. Throws corrupt.
  Pages(pool::PoolCore& pool, Header& header);
  /// The pages may be written to by any means again.
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// After a crash: puts back the pages of the epoch that did not end, durably.
  void recover();

  /// Protects all pages, unless they are. Throws unsupported if the kernel refuses.
  void begin();

  /// A store to `address` has faulted. Returns whether it may be made now; false if the page is not
  /// one of these, or has a copy already.
  bool on_fault(std::uintptr_t address) noexcept;

  /// Makes all stores durable, and with that the copies meaningless.
  void commit() noexcept;

  /// Takes all stores back.
  void roll_back() noexcept;

  /// Adds this many pages, protected, durably. Throws out_of_space, too_large, no_memory.
  void add_extent(std::uint64_t pages);

  std::size_t extents() const { return ranges_.size(); }
  std::uint64_t bytes(std::size_t extent) const { return ranges_[extent].pages * kPage; }
  std::byte* begin_of(std::size_t extent) const { return ranges_[extent].page(0); }
  std::uint64_t count() const { return count_; }

  /// Whether [p, p + n) lies in one extent's pages.
  bool contains(const void* p, std::uint64_t n) const;

  /// Calls show(word, address) for each word that was changed since begin().
  template <class Show>
  void for_each_changed_word(Show show) const {
    for (const Dirty& dirty : dirty_) {
      const auto* now = reinterpret_cast<const std::uint64_t*>(dirty.range(*this).page(dirty.page));
      const auto* before =
          reinterpret_cast<const std::uint64_t*>(dirty.range(*this).copy(dirty.page));
      for (std::size_t i = 0; i < kPage / sizeof *now; ++i)
        if (now[i] != before[i]) show(now[i], now + i);
    }
  }

  std::size_t dirty() const { return dirty_.size(); }
  std::uint64_t copied() const { return copied_; }
  std::uint64_t commits() const { return commits_; }

  void for_each_block(const pool::BlockVisitor& visit) const;

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
  std::vector<Dirty> dirty_;  // with room for all, since it grows in a handler of signals
  bool protected_ = false;    // all pages that are not dirty
  bool ever_protected_ = false;
  std::uint64_t copied_ = 0, commits_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> reported_;  // of each dirty page, under a probe
};

}  // namespace perdix::detail::index::tips_of
