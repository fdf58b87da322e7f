#include "index/nbtree/ledger.h"

#include <fmt/format.h>

#include <mutex>

#include <perdix/error.h>

#include "pm/access.h"

namespace perdix::index::nbtree {
namespace {

constexpr std::uint64_t kWholeWord = ~std::uint64_t{0};

[[noreturn]] void throw_corrupt(const pool::PoolCore& pool, pm::Offset offset) {
  throw Error(Errc::corrupt,
              fmt::format("{}: an index has a page of its ledger at offset {:#x}, where none is; "
                          "restore the pool from a copy",
                          pool.path().string(), offset));
}

Page& checked_page(const pool::PoolCore& pool, pm::Offset offset) {
  if (offset % alignof(Page) == 0 && pool.contains(offset, sizeof(Page)) &&
      pm::load(pool.at<Page>(offset)->magic) == Page::kMagic) {
    return *pool.at<Page>(offset);
  }
  throw_corrupt(pool, offset);
}

}  // namespace

/// Calls visit(word) for all words of a stripe that may name what was unlinked.
template <class Visit>
void Ledger::for_each_word(const pool::PoolCore& pool, Stripe& stripe, Visit visit) {
  for (pm::Offset& word : stripe.retired) visit(word);
  std::unordered_set<pm::Offset> seen;
  for (pm::Offset offset = pm::load(stripe.pages); offset != pm::kNull;) {
    Page& page = checked_page(pool, offset);
    if (!seen.insert(offset).second) throw_corrupt(pool, offset);  // they lead round in a circle
    for (pm::Offset& word : page.retired) visit(word);
    offset = pm::load(page.next);
  }
}

Ledger::Ledger(pool::PoolCore& pool, Root& root) : pool_(pool), root_(root) {
  for (unsigned i = 0; i < kStripes; ++i) {
    lanes_[i].stripe = &root.stripes[i];
    for_each_word(pool_, root.stripes[i],
                  [&](pm::Offset& word) { lanes_[i].words.push_back(&word); });
  }
}

Reached Ledger::named() const {
  Reached named;
  for (const Lane& lane : lanes_) {
    if (pm::load(lane.stripe->claims[0]) != pm::kNull) {
      for (const pm::Offset& word : lane.stripe->claims) named.insert(pm::load(word));
    }
    for (const pm::Offset* word : lane.words) named.insert(pm::load(*word));
  }
  named.erase(pm::kNull);
  return named;
}

void Ledger::settle(const Reached& reached) {
  Reached handled = reached;
  const auto lost = [&](pm::Offset block) {
    return block != pm::kNull && handled.insert(block).second &&
           pool_.allocator().validate_block(block, 1);
  };
  for (Lane& lane : lanes_) {
    if (pm::load(lane.stripe->claims[0]) != pm::kNull) {
      alloc::Session session = pool_.allocator().session();
      for (const pm::Offset& word : lane.stripe->claims) {
        if (lost(pm::load(word))) session.free(pm::load(word));
      }
      session.commit_when(lane.stripe->claims[0], kWholeWord, pm::kNull);
      session.log();
      pm().publish(lane.stripe->claims[0], pm::kNull);  // the commit
      session.finish();
    }
    for (pm::Offset* word : lane.words) {
      if (pm::load(*word) == pm::kNull) continue;
      if (lost(pm::load(*word))) {
        free_word(*word);
      } else {
        pm().publish(*word, pm::kNull);  // durable before the block can be unlinked and freed
      }
    }
  }
}

/// Frees the block that a word names.
void Ledger::free_word(pm::Offset& word) {
  alloc::Session session = pool_.allocator().session();
  session.free(pm::load(word));
  session.commit_when(word, kWholeWord, pm::kNull);
  session.log();
  pm().publish(word, pm::kNull);  // the commit
  session.finish();
}

/// Frees some of what was unlinked and has no readers any more.
void Ledger::free_named(Lane& lane, unsigned most) {
  std::uint64_t offset;
  while (most-- > 0 && lane.unlinked.pop(offset, pool_.reclaimer())) {
    pm::Offset& word = *pool_.at<pm::Offset>(offset);
    free_word(word);
    lane.words.push_back(&word);  // has room: make_room() kept it
  }
}

/// Gives a stripe words for more names.
void Ledger::add_page(Lane& lane) {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Page));
  Page& page = *pool_.at<Page>(offset);
  lane.words.reserve(lane.words.capacity() + page.retired.size());
  pm().zero(&page, sizeof page);
  pm().store(page.magic, Page::kMagic);
  pm().store(page.next, pm::load(lane.stripe->pages));
  pm().flush(&page, sizeof page);  // log() fences before the page can be linked
  session.commit_when(lane.stripe->pages, kWholeWord, offset);
  session.log();
  pm().store(lane.stripe->pages, offset);          // the commit
  pm().flush(&lane.stripe->pages, sizeof offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
  for (pm::Offset& word : page.retired) lane.words.push_back(&word);
}

void Ledger::free_unlinked() {
  for (Lane& lane : lanes_) {
    if (!lane.lock.try_lock()) continue;  // its holder will do so
    const std::lock_guard lock(lane.lock, std::adopt_lock);
    lane.unlinked.seal(pool_.reclaimer());
  }
  pool_.reclaimer().settle();
  for (Lane& lane : lanes_) {
    if (!lane.lock.try_lock()) continue;
    const std::lock_guard lock(lane.lock, std::adopt_lock);
    free_named(lane, ~0U);
  }
}

void Ledger::for_each_block(const BlockVisitor& visit) const {
  for (const Lane& lane : lanes_) {
    for (pm::Offset offset = pm::load(lane.stripe->pages); offset != pm::kNull;
         offset = pm::load(checked_page(pool_, offset).next)) {
      visit(offset);
    }
    const auto show = [&](pm::Offset& word) {
      if (pm::load(word) != pm::kNull) visit(pm::load(word));
    };
    for_each_word(pool_, *lane.stripe, show);
    if (pm::load(lane.stripe->claims[0]) != pm::kNull) {
      for (pm::Offset& word : lane.stripe->claims) show(word);
    }
  }
}

void Ledger::destroy() {
  for (Lane& lane : lanes_) {
    pm::Offset& pages = lane.stripe->pages;
    while (pm::load(pages) != pm::kNull) {
      const pm::Offset next = pm::load(checked_page(pool_, pm::load(pages)).next);
      alloc::Session session = pool_.allocator().session();
      session.free(pm::load(pages));
      session.commit_when(pages, kWholeWord, next);
      session.log();
      pm().publish(pages, next);  // the commit
      session.finish();
    }
  }
}

Ledger::Hold::Hold(Ledger& ledger, Purpose purpose) : ledger_(ledger) {
  constexpr unsigned kHalf = kStripes / 2;
  const unsigned first = purpose == Purpose::operation ? 0 : kHalf;
  const auto own = static_cast<unsigned>(util::current_stripe());
  util::Backoff backoff;
  for (unsigned tries = 0;; ++tries) {
    lane_ = &ledger_.lanes_[first + (own + tries) % kHalf];
    if (lane_->lock.try_lock()) break;
    if (tries >= kHalf) backoff.pause();
  }
}

Ledger::Hold::~Hold() {
  if (lane_ == nullptr) return;
  unname();
  unclaim();
  lane_->lock.unlock();
}

void Ledger::Hold::commit(alloc::Session& session, const Claims& claims) {
  if (claims[0] == pm::kNull) return;
  auto& words = lane_->stripe->claims;
  for (unsigned i = 1; i < claims.size(); ++i) ledger_.pm().store(words[i], claims[i]);
  session.commit_when(words[0], kWholeWord, claims[0]);
  session.log();
  // The commit, behind the others in the same line. finish() fences: nothing is freed (rule R3).
  ledger_.pm().store(words[0], claims[0]);
  ledger_.pm().flush(words.data(), sizeof words);
  session.finish();
  claims_ = claims;
}

void Ledger::Hold::linked() {
  if (claims_[0] == pm::kNull) return;
  // Durable inside of the caller's guard: the blocks may be unlinked and freed afterwards.
  ledger_.pm().publish(lane_->stripe->claims[0], pm::kNull);
  claims_ = {};
}

void Ledger::Hold::unclaim() {
  if (claims_[0] == pm::kNull) return;
  pm::Offset& word = lane_->stripe->claims[0];
  alloc::Session session = ledger_.pool_.allocator().session();
  for (const pm::Offset block : claims_) {
    if (block != pm::kNull) session.free(block);
  }
  session.commit_when(word, kWholeWord, pm::kNull);
  session.log();
  ledger_.pm().publish(word, pm::kNull);  // the commit
  session.finish();
  claims_ = {};
}

void Ledger::Hold::make_room(unsigned names) {
  Lane& lane = *lane_;
  unsigned have = 0;
  for (const pm::Offset* word : words_) have += word != nullptr;
  // Each operation frees what one or two others have unlinked, so what waits is bounded by what one
  // grace period frees.
  ledger_.free_named(lane, 2 * names);
  lane.unlinked.reserve(words_.size());
  while (lane.words.size() + have < names) ledger_.add_page(lane);
  for (unsigned i = 0; i < names; ++i) {
    if (words_[i] != nullptr) continue;
    words_[i] = lane.words.back();
    lane.words.pop_back();
  }
}

void Ledger::Hold::name(unsigned name, pm::Offset block) {
  if (names_[name] == block) return;
  names_[name] = block;
  ledger_.pm().store(*words_[name], block);
  ledger_.pm().flush(words_[name], sizeof block);  // the caller fences
}

void Ledger::Hold::unlinked() {
  for (unsigned i = 0; i < names_.size(); ++i) {
    if (names_[i] == pm::kNull) continue;
    lane_->unlinked.push(ledger_.pool_.offset(words_[i]), ledger_.pool_.reclaimer());
    names_[i] = pm::kNull;
    words_[i] = nullptr;
  }
}

void Ledger::Hold::unname() {
  bool any = false;
  for (unsigned i = 0; i < names_.size(); ++i) {
    any |= names_[i] != pm::kNull;
    if (words_[i] != nullptr) name(i, pm::kNull);
  }
  // Durable inside of the caller's guard: somebody else may free the block afterwards.
  if (any) ledger_.pm().fence();
  for (pm::Offset*& word : words_) {
    if (word != nullptr) lane_->words.push_back(word);
    word = nullptr;
  }
}

}  // namespace perdix::index::nbtree
