#include "index/tips_of/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/tips_of/damage.h"
#include "pm/access.h"
#include "util/checksum.h"

namespace perdix::detail::index::tips_of {
namespace {

/// Pages that are opened one by one in an epoch: each may split a mapping of the kernel, of which a
/// process has 65,530. Behind them whole extents are.
constexpr std::uint64_t kMaxSinglePages = 4096;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Of an extent with this many pages, wherever it begins.
std::uint64_t block_bytes(std::uint64_t pages) {
  return sizeof(Extent) + pages * sizeof(PageRecord) + (2 * pages + 1) * kPage;
}

/// Where the copies of an extent's pages begin; behind them the pages.
pm::Offset copies_of(pm::Offset block, std::uint64_t pages) {
  return round_up(block + sizeof(Extent) + pages * sizeof(PageRecord), kPage);
}

bool set_protection(std::byte* begin, std::uint64_t bytes, int protection) noexcept {
  return ::mprotect(begin, bytes, protection) == 0;
}

bool protect(std::byte* begin, std::uint64_t bytes) noexcept {
  return set_protection(begin, bytes, PROT_READ);
}
bool unprotect(std::byte* begin, std::uint64_t bytes) noexcept {
  return set_protection(begin, bytes, PROT_READ | PROT_WRITE);
}

}  // namespace

Pages::Pages(pool::PoolCore& pool, Header& header) : pool_(pool), header_(header) {
  constexpr std::size_t kMaxExtents = 1U << 20;  // a chain that leads back ends
  for (pm::Offset at = pm::load(header.first); at != pm::kNull;) {
    ranges_.push_back(range_at(at));
    count_ += ranges_.back().pages;
    if (ranges_.size() > kMaxExtents || count_ * 2 * kPage > pool.size())
      throw_damaged_part(pool, "the chain of extents");
    at = pm::load(ranges_.back().extent->next);
  }
  reserve_notes(0);
}

Pages::~Pages() {
  if (!ever_protected_) return;
  for (const Range& range : ranges_) unprotect(range.page(0), range.pages * kPage);
}

std::uint64_t Pages::epoch() const { return pm::load(header_.epoch); }

Pages::Range Pages::range_at(pm::Offset block) const {
  if (!pool_.allocator().validate_block(block, sizeof(Extent)))
    throw_damaged_part(pool_, "an extent");
  auto* const extent = pool_.at<Extent>(block);
  const std::uint64_t pages = extent->pages;
  if (pages == 0 || pages > pool_.size() / kPage ||
      !pool_.allocator().validate_block(block, block_bytes(pages)))
    throw_damaged_part(pool_, "an extent");
  return {extent, pages, pool_.base() + copies_of(block, pages), std::vector<bool>(pages)};
}

std::uint64_t& Pages::last_link() const {
  return ranges_.empty() ? header_.first : ranges_.back().extent->next;
}

void Pages::reserve_notes(std::uint64_t more) { dirty_.reserve(count_ + more); }

bool Pages::contains(const void* p, std::uint64_t n) const {
  const auto* const at = static_cast<const std::byte*>(p);
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    const std::byte* const begin = range.page(0);
    const std::byte* const end = begin + range.pages * kPage;
    return at >= begin && at < end && n <= static_cast<std::uint64_t>(end - at);
  });
}

void Pages::begin() {
  if (protected_) return;
  ever_protected_ = true;
  for (const Range& range : ranges_) protect_range(range);
  protected_ = true;
}

void Pages::protect_range(const Range& range) const {
  if (protect(range.page(0), range.pages * kPage)) return;
  throw Error(Errc::unsupported,
              fmt::format("{}: the kernel does not protect single pages of the pool ({}), which "
                          "TipsOf needs; keep the pool on a file system with pages of {} bytes, "
                          "and raise vm.max_map_count if the process has many mappings",
                          pool_.path().string(), std::strerror(errno), kPage));
}

/// The page's address is in the checksum too: its place among the records is that of the page.
std::uint64_t Pages::check_of(const std::byte* page, const void* copy) const {
  const std::uint64_t seed[] = {pm::load(header_.nonce), epoch(), pool_.offset(page)};
  return util::checksum(copy, kPage, util::checksum(seed, sizeof seed));
}

/// Not durable before a fence.
void Pages::copy_page(const Range& range, std::uint64_t page) {
  std::byte* const from = range.page(page);
  const PageRecord record{check_of(from, from), epoch()};
  pm().copy(range.copy(page), from, kPage);
  pm().flush(range.copy(page), kPage);  // with the fence of the caller
  pm().copy(&range.record(page), &record, sizeof record);
  pm().flush(&range.record(page), sizeof record);  // with the fence of the caller
  ++copied_;
}

void Pages::note(std::size_t extent, std::uint64_t page) noexcept {
  Range& range = ranges_[extent];
  range.dirty[page] = true;
  dirty_.push_back({extent, page});  // there is room
  if constexpr (pm::kInstrumented) {
    if (pm::background_work()) return;  // there is no probe
    reported_.push_back(std::make_unique<std::byte[]>(kPage));
    std::memcpy(reported_.back().get(), range.page(page), kPage);
  }
}

bool Pages::open(std::size_t extent, std::uint64_t page) noexcept {
  const Range& range = ranges_[extent];
  copy_page(range, page);
  pm().fence();  // the copy is durable before the first store to the page
  if (!unprotect(range.page(page), kPage)) return open_all(extent);
  note(extent, page);
  return true;
}

bool Pages::open_all(std::size_t extent) noexcept {
  const Range& range = ranges_[extent];
  for (std::uint64_t page = 0; page < range.pages; ++page)
    if (!range.dirty[page]) copy_page(range, page);
  pm().fence();  // the copies are durable before the first store to these pages
  if (!unprotect(range.page(0), range.pages * kPage)) return false;
  for (std::uint64_t page = 0; page < range.pages; ++page)
    if (!range.dirty[page]) note(extent, page);
  return true;
}

bool Pages::on_fault(std::uintptr_t address) noexcept {
  for (std::size_t extent = 0; extent < ranges_.size(); ++extent) {
    const Range& range = ranges_[extent];
    const std::uint64_t at = address - reinterpret_cast<std::uintptr_t>(range.page(0));
    if (at >= range.pages * kPage) continue;  // also if the address lies before the extent
    if (range.dirty[at / kPage]) return false;
    report();
    const std::uint64_t most = pm::limit("tips: pages opened one by one", kMaxSinglePages);
    return dirty_.size() < most ? open(extent, at / kPage) : open_all(extent);
  }
  return false;
}

/// Containers store without telling the probe. So it hears of each word that has changed, before it
/// hears of anything that this thread does later.
void Pages::report() noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (std::size_t i = 0; i < reported_.size(); ++i) {
    const std::byte* const page = dirty_[i].range(*this).page(dirty_[i].page);
    std::byte* const known = reported_[i].get();
    for (std::size_t at = 0; at < kPage; at += kWord) {
      if (std::memcmp(page + at, known + at, kWord) == 0) continue;
      pm::before_write(page + at, kWord);
      pm::on_write(page + at, kWord);
      std::memcpy(known + at, page + at, kWord);
    }
  }
}

void Pages::commit() noexcept {
  if (dirty_.empty()) return;
  report();
  // All lines: one that is as it was may have been written back while it was not.
  for (const Dirty& dirty : dirty_)
    pm().flush(dirty.range(*this).page(dirty.page), kPage);  // with the fence of the commit
  ++commits_;
  end_epoch();
}

/// All flushes are durable before the copies of the epoch become void.
void Pages::end_epoch() noexcept {
  pm().commit(header_.epoch, epoch() + 1);  // fences first
  protect_dirty();
}

/// Not durable before a fence. All lines are flushed, as by a commit.
void Pages::put_back(const Range& range, std::uint64_t page) const {
  std::byte* const to = range.page(page);
  const std::byte* const from = range.copy(page);
  for (std::uint64_t at = 0; at < kPage; at += pm::kLineSize) {
    if (std::memcmp(to + at, from + at, pm::kLineSize) != 0)
      pm().copy(to + at, from + at, pm::kLineSize);
  }
  pm().flush(to, kPage);  // with the fence of end_epoch()
}

void Pages::roll_back() noexcept {
  if (dirty_.empty()) return;
  report();
  reported_.clear();
  for (const Dirty& dirty : dirty_) put_back(dirty.range(*this), dirty.page);
  end_epoch();
}

void Pages::recover() {
  bool found = false;
  for (const Range& range : ranges_) {
    for (std::uint64_t page = 0; page < range.pages; ++page) {
      const PageRecord& record = range.record(page);
      if (record.epoch != epoch() || record.check != check_of(range.page(page), range.copy(page)))
        continue;
      put_back(range, page);
      found = true;
    }
  }
  if (found) end_epoch();
}

/// Neighbours by one call. Where the kernel refuses, begin() tries again.
void Pages::protect_dirty() noexcept {
  reported_.clear();
  std::sort(dirty_.begin(), dirty_.end(), [](const Dirty& a, const Dirty& b) {
    return a.extent != b.extent ? a.extent < b.extent : a.page < b.page;
  });
  for (std::size_t i = 0; i < dirty_.size();) {
    const Dirty first = dirty_[i];
    std::uint64_t count = 0;
    while (i < dirty_.size() && dirty_[i].extent == first.extent &&
           dirty_[i].page == first.page + count) {
      first.range(*this).dirty[dirty_[i].page] = false;
      ++count, ++i;
    }
    if (!protect(first.range(*this).page(first.page), count * kPage)) protected_ = false;
  }
  dirty_.clear();
}

/// The commit is the link of the extent before.
void Pages::add_extent(std::uint64_t pages) {
  report();
  reserve_notes(pages);
  ranges_.reserve(ranges_.size() + 1);
  std::vector<bool> clean(pages);
  pm::Offset block = pm::kNull;
  retry_when_full(pool_, [&] {
    alloc::Session session = pool_.allocator().session();
    block = session.reserve(block_bytes(pages));
    auto* const extent = pool_.at<Extent>(block);
    const Extent header{pm::kNull, pages};
    pm().copy(extent, &header, sizeof header);
    pm().zero(extent + 1, pages * sizeof(PageRecord));
    // Durable before the link, by the commit's fence.
    pm().flush(extent, sizeof header + pages * sizeof(PageRecord));
    if (ranges_.empty()) {  // the memory may have the arena of a container that was dropped
      auto* const arena = pool_.at<Arena>(copies_of(block, pages) + pages * kPage);
      pm().zero(arena, sizeof *arena);
      pm().flush(arena, sizeof *arena);  // durable before the link, too
    }
    session.commit(pm::set_word(last_link(), block));
  });
  ranges_.push_back(range_at(block));
  count_ += pages;
  if (!protected_) return;
  protected_ = false;  // if the kernel refuses
  protect_range(ranges_.back());
  protected_ = true;
}

void Pages::walk(std::uint64_t& root_word, Owned& owned) const {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const pm::Offset next =
        i + 1 < ranges_.size() ? pool_.offset(ranges_[i + 1].extent) : pm::kNull;
    owned.release(
        pm::set_word(header_.first, next),
        OwnedBlocks(pool_.offset(ranges_[i].extent), block_bytes(ranges_[i].pages), "an extent"));
  }
  owned.release(pm::set_word(root_word, pm::kNull),
                OwnedBlocks(pool_.offset(&header_), sizeof header_, "a header"));
}

}  // namespace perdix::detail::index::tips_of
