#include "index/nbtree/ledger.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_set>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index::nbtree {
namespace {

constexpr std::uint64_t kWholeWord = ~std::uint64_t{0};

/// As often as that an operation looks at what another stripe has to free.
constexpr unsigned kTurnsPerVisit = 16;

constexpr const char* kPage = "a page of its ledger";

template <class AnyPage>
AnyPage& checked_page(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<AnyPage>(pool, offset, kPage, AnyPage::kMagic);
}

template <class AnyPage>
void walk_pages(const pool::PoolCore& pool, pm::Offset& first, Owned& owned) {
  walk_list(pool, first, kPage, owned, [&](pm::Offset at) {
    const auto& page = checked_page<AnyPage>(pool, at);
    return ListStep{pm::load(page.next), {at, sizeof page, kPage}};
  });
}

bool names_anchor(pm::Offset name) { return (name & kAnchorTag) != 0; }
bool names_block(pm::Offset name) { return name > kNoBlock && !names_anchor(name); }

/// Whether a page of anchors has a place there.
bool is_place_in(pm::Offset offset, pm::Offset page) {
  const pm::Offset distance = offset - page - offsetof(AnchorPage, anchors);  // may wrap
  return distance < sizeof(AnchorPage::anchors) && distance % sizeof(Anchor) == 0;
}

/// Those of some addresses, ascending, that lie in a page.
template <class T, std::size_t kSize>
auto range_of(std::vector<T*>& addresses, std::array<T, kSize>& page) {
  const auto begin =
      std::lower_bound(addresses.begin(), addresses.end(), page.data(), std::less<>());
  const auto end = std::lower_bound(begin, addresses.end(), page.data() + kSize, std::less<>());
  return std::pair(begin, end);
}

/// Room for `more` elements, in steps that grow.
template <class T>
void reserve_more(std::vector<T>& vector, std::size_t more) {
  if (vector.capacity() - vector.size() < more)
    vector.reserve(std::max(vector.size() + more, 2 * vector.capacity()));
}

}  // namespace

/// Calls visit(page) for all pages of a list.
template <class AnyPage, class Visit>
void Ledger::for_each_page(pm::Offset first, Visit visit) const {
  std::unordered_set<pm::Offset> seen;
  for (pm::Offset offset = first; offset != pm::kNull;) {
    AnyPage& page = checked_page<AnyPage>(pool_, offset);
    if (!seen.insert(offset).second)
      pool::throw_corrupt(pool_, kPage, offset);  // they lead round in a circle
    visit(page);
    offset = pm::load(page.next);
  }
}

/// Calls visit(word) for all words of a stripe that may name what was unlinked.
template <class Visit>
void Ledger::for_each_word(Stripe& stripe, Visit visit) const {
  for (pm::Offset& word : stripe.retired) visit(word);
  for_each_page<Page>(pm::load(stripe.pages), [&](Page& page) {
    for (pm::Offset& word : page.retired) visit(word);
  });
}

Ledger::Ledger(pool::PoolCore& pool, Root& root)
    : pool_(pool), unresolved_{UnresolvedBlocks(pool.pm()), UnresolvedBlocks(pool.pm())} {
  for (unsigned i = 0; i < kStripes; ++i) {
    lanes_[i].stripe = &root.stripes[i];
    learn(i);
  }
  for (const UnresolvedBlocks& unresolved : unresolved_) {
    unresolved.for_each([&](pm::Offset name) {
      if (names_anchor(name)) checked_place(name);
    });
  }
}

/// Finds out what a stripe has, but for the pages of anchors, of which there are many.
void Ledger::learn(std::size_t stripe) {
  Lane& lane = lanes_[stripe];
  UnresolvedBlocks& unresolved = unresolved_[index_of(purpose_of(stripe))];
  auto& claims = lane.stripe->claims;
  if (pm::load(claims[0]) != pm::kNull) {
    lane.occupied = true;
    lane.lock.lock();
    for (pm::Offset& word : claims) {
      const pm::Offset name = pm::load(word);
      if (names_anchor(name) || names_block(name))
        unresolved.add(name, word,
                       &word == claims.data() ? UnresolvedBlocks::Kind::first_claim
                                              : UnresolvedBlocks::Kind::claim);
    }
  }
  for_each_word(*lane.stripe, [&](pm::Offset& word) {
    if (const pm::Offset name = pm::load(word); name != pm::kNull)
      unresolved.add(name, word, UnresolvedBlocks::Kind::unlinked);
    else
      lane.words.push_back(&word);
  });
  lane.word_count = lane.words.size();
  for_each_page<Page>(pm::load(lane.stripe->pages), [&](Page&) { page_bytes_ += sizeof(Page); });
  lane.unlearned = pm::load(lane.stripe->anchors);
  if (lane.unlearned != pm::kNull) unlearned_.fetch_add(1, std::memory_order_relaxed);
}

/// Takes the free places of one page more. The caller holds the lane, which has one.
void Ledger::learn_page(Lane& lane) {
  AnchorPage& page = checked_page<AnchorPage>(pool_, lane.unlearned);
  reserve_more(lane.anchors, page.anchors.size());
  if (!lane.learned.insert(lane.unlearned).second)
    pool::throw_corrupt(pool_, kPage, lane.unlearned);  // they lead round in a circle
  for (Anchor& anchor : page.anchors) {
    if (pm::load(anchor.block) == pm::kNull) lane.anchors.push_back(&anchor);
  }
  page_bytes_.fetch_add(sizeof page, std::memory_order_relaxed);
  lane.unlearned = pm::load(page.next);
  if (lane.unlearned != pm::kNull) return;
  lane.learned = {};
  unlearned_.fetch_sub(1, std::memory_order_release);
}

/// Takes the free places of some pages, unless another thread has the lane. Whether there are more.
bool Ledger::learn_pages(Lane& lane) {
  constexpr unsigned kAtOnce = 16;
  const std::unique_lock lock(lane.lock, std::try_to_lock);
  if (!lock) return false;
  for (unsigned i = 0; i < kAtOnce && lane.unlearned != pm::kNull; ++i) learn_page(lane);
  return lane.unlearned != pm::kNull;
}

void Ledger::learn_places() {
  constexpr unsigned kRounds = 1000;  // other threads have a stripe for one operation, as a rule
  util::Backoff backoff;
  for (unsigned i = 0; i < kRounds && unlearned_.load(std::memory_order_acquire) != 0; ++i) {
    for (Lane& lane : lanes_) {
      while (learn_pages(lane)) continue;
    }
    backoff.pause();
  }
}

unsigned Ledger::occupied(Purpose purpose) const {
  unsigned count = 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    count += purpose_of(i) == purpose && lanes_[i].occupied;
  return count;
}

void Ledger::resolve_all(Purpose purpose) {
  const auto free_unlinked = [&](bool anchors) {
    unresolved(purpose).for_each_unlinked([&](pm::Offset& word) {
      if (names_anchor(pm::load(word)) == anchors) free_word(nullptr, word);
    });
  };
  // Places of anchors come before all blobs: what is not free can be read. The words can't be used
  // again before the next opening, which finds them free.
  free_unlinked(true);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (purpose_of(i) != purpose || !lane.occupied) continue;
    alloc::Session session = pool_.allocator().session();
    free_claims(lane, session);
    lane.occupied = false;
    lane.lock.unlock();
  }
  free_unlinked(false);
}

/// Frees what a stripe claims. If it throws, nothing has changed.
void Ledger::free_claims(Lane& lane, alloc::Session& session) {
  auto& claims = lane.stripe->claims;
  reserve_more(lane.anchors, 1);
  for (const pm::Offset& word : claims) {
    const pm::Offset name = pm::load(word);
    if (names_anchor(name)) checked_place(name);
    if (names_block(name)) session.free(name);  // others may have read an entry that lost
  }
  session.commit_when(claims[0], kWholeWord, pm::kNull);  // may throw
  for (const pm::Offset& word : claims) {
    if (const pm::Offset name = pm::load(word); names_anchor(name)) free_place(&lane, name);
  }
  session.commit(pm::set_word(claims[0], pm::kNull));
}

/// The place of an anchor that a word names. In a damaged pool the word, or the page of the place,
/// may be another's since it was looked at: so it is looked at again where it is followed.
Anchor& Ledger::checked_place(pm::Offset name) const {
  const pm::Offset offset = name & ~kAnchorTag;
  Anchor* const place = place_at(offset);
  if (place == nullptr) pool::throw_corrupt(pool_, kPage, offset);
  return *place;
}

Anchor* Ledger::place_at(pm::Offset offset) const {
  const pm::Offset page = pool_.allocator().small_block_at(offset);
  if (page == pm::kNull || !is_place_in(offset, page) || !pool_.contains(page, sizeof(AnchorPage)))
    return nullptr;
  const bool marked = pm::load(pool_.at<AnchorPage>(page)->magic) == AnchorPage::kMagic;
  return marked ? pool_.at<Anchor>(offset) : nullptr;
}

/// Makes the place of an anchor free, durably, and gives it to the lane, which has room for it; to
/// none if that is null.
void Ledger::free_place(Lane* lane, pm::Offset name) {
  Anchor& anchor = checked_place(name);
  if (pm::load(anchor.block) == pm::kNull) return;  // another thread has taken it
  // Before the place is free: a thread that then finds it so in its page gives it to that stripe.
  const bool all_learned = unlearned_.load(std::memory_order_acquire) == 0;
  // Durable before the word that names the place is free: if that came first, a crash would leave a
  // place that nothing names and no thread takes.
  pm().publish(anchor.block, pm::kNull);
  if (lane != nullptr && all_learned) lane->anchors.push_back(&anchor);
}

/// Frees what a word names. No reader is left: its grace period has passed, or, after a crash,
/// the index has never led to it (resolve_all()). `lane`: as free_place() has it.
void Ledger::free_word(Lane* lane, pm::Offset& word) {
  const pm::Offset name = pm::load(word);
  if (names_anchor(name)) {
    free_place(lane, name);
    // Never flushed for its own sake: a name that comes back after a crash does no harm. If the
    // place is in use again, it is reached; if it is claimed only, resolve_all() frees it first.
    pm().store(word, pm::kNull);
    return;
  }
  alloc::Session session = pool_.allocator().session();
  session.free_unread(name);
  session.commit(pm::set_word(word, pm::kNull));
}

/// Ends a session by a claim, or by nothing if `claim` is null, and with the same sync frees what
/// some words name: the first of them, as many as a session has room for. Returns their number. If
/// it throws, nothing has changed.
unsigned Ledger::commit_and_free(alloc::Session& session, const pm::Change* claim,
                                 std::span<pm::Offset* const> words) {
  pm::Changes changes;
  if (claim != nullptr) changes.add(*claim);
  unsigned count = 0;
  for (pm::Offset* const word :
       words.first(std::min(words.size(), std::size_t{alloc::kMaxBlocks}))) {
    const pm::Offset name = pm::load(*word);
    if (names_anchor(name)) break;
    session.free_unread(name);
    changes.set(*word, pm::kNull);
    ++count;
  }
  session.commit_as_one(changes.all());
  return count;
}

/// Ends a session by a claim, and with the same sync frees some of what was unlinked.
void Ledger::claim_and_free(Lane& lane, alloc::Session& session, const pm::Change& claim) {
  session.commit_when(*claim.word, claim.mask, claim.value);  // may throw
  std::array<pm::Offset*, alloc::kMaxBlocks> words;
  lane.unlinked.reserve(words.size());
  unsigned count = 0, freed = 0;
  for (std::uint64_t offset; count < words.size() && lane.unlinked.pop(offset, pool_.reclaimer());)
    words[count++] = pool_.at<pm::Offset>(offset);
  const auto put_back = [&] {
    for (unsigned i = freed; i < count; ++i)
      lane.unlinked.push(pool_.offset(words[i]), pool_.reclaimer());
  };
  try {
    freed = commit_and_free(session, &claim, std::span(words).first(count));
  } catch (...) {
    put_back();
    throw;
  }
  put_back();  // places of anchors, and what lies behind
  for (unsigned i = 0; i < freed; ++i) lane.words.push_back(words[i]);  // add_words() kept room
}

/// Frees what the first of some words name, at least that of one. Returns their number.
unsigned Ledger::free_words(Lane& lane, std::span<pm::Offset* const> words) {
  if (!pm().commits_as_one() || names_anchor(pm::load(*words.front()))) {
    free_word(&lane, *words.front());
    return 1;
  }
  alloc::Session session = pool_.allocator().session();
  return commit_and_free(session, nullptr, words);
}

/// Frees some of what was unlinked and has no readers any more. False if there was nothing.
bool Ledger::free_named(Lane& lane, unsigned most) {
  constexpr unsigned kAtOnce = 8;                     // whose memory is waited for together
  reserve_more(lane.anchors, most + std::size_t{1});  // and one that is taken and comes back
  lane.unlinked.reserve(kAtOnce);                     // for what can't be freed after all
  std::array<pm::Offset*, kAtOnce> words;
  unsigned count = 0;
  bool any = false;
  do {
    std::uint64_t offset;
    for (count = 0; count < std::min(most, kAtOnce); ++count) {
      if (!lane.unlinked.pop(offset, pool_.reclaimer())) break;
      words[count] = pool_.at<pm::Offset>(offset);
    }
    for (unsigned i = 0; i < count; ++i) {
      if (const pm::Offset name = pm::load(*words[i]); names_block(name))
        pool_.allocator().prefetch_for_free(name);
    }
    for (unsigned i = 0; i < count;) {
      unsigned freed = 0;
      try {
        freed = free_words(lane, std::span(words).subspan(i, count - i));
      } catch (...) {
        for (; i < count; ++i) lane.unlinked.push(pool_.offset(words[i]), pool_.reclaimer());
        throw;
      }
      // There is room: add_words() kept it.
      for (; freed > 0; --freed) lane.words.push_back(words[i++]);
    }
    most -= count;
    any |= count > 0;
  } while (count == kAtOnce);
  return any;
}

/// Adds a page to a list.
template <class AnyPage>
AnyPage& Ledger::add_page(pm::Offset& first) {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(AnyPage));
  AnyPage& page = *pool_.at<AnyPage>(offset);
  pm().zero(&page, sizeof page);
  pm().store(page.magic, AnyPage::kMagic);
  pm().store(page.next, pm::load(first));
  pm().flush(&page, sizeof page);  // log() fences before the page can be linked
  session.commit_when(first, kWholeWord, offset);
  session.log();
  pm().store(first, offset);          // the commit
  pm().flush(&first, sizeof offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
  page_bytes_.fetch_add(sizeof page, std::memory_order_relaxed);
  return page;
}

/// Gives a stripe words for more names.
void Ledger::add_words(Lane& lane) {
  lane.words.reserve(lane.word_count + Page{}.retired.size());
  for (pm::Offset& word : add_page<Page>(lane.stripe->pages).retired) lane.words.push_back(&word);
  lane.word_count += Page{}.retired.size();
}

/// Gives a stripe places for more anchors.
void Ledger::add_anchors(Lane& lane) {
  reserve_more(lane.anchors, AnchorPage{}.anchors.size());
  auto& anchors = add_page<AnchorPage>(lane.stripe->anchors).anchors;
  for (std::size_t i = anchors.size(); i-- > 0;) lane.anchors.push_back(&anchors[i]);
}

bool Ledger::is_of(const Lane& lane, Leases own) {
  return std::any_of(own.begin(), own.end(), [&](const StripeLease* lease) {
    return lease != nullptr && lease->lane_ == &lane;
  });
}

bool Ledger::free_unlinked(Leases own) {
  const auto for_each_lane = [&](const auto& visit) {
    for (Lane& lane : lanes_) {
      std::unique_lock lock(lane.lock, std::defer_lock);
      if (is_of(lane, own) || lock.try_lock()) visit(lane);  // else its holder will do so
    }
  };
  for_each_lane([&](Lane& lane) { lane.unlinked.seal(pool_.reclaimer()); });
  if (!pool_.reclaimer().settle()) return false;
  bool any = false;
  for_each_lane([&](Lane& lane) {
    any |= free_named(lane, static_cast<unsigned>(lane.word_count - lane.words.size()));
  });
  return any;
}

/// Frees some of what another stripe of this purpose has unlinked, whose threads may not come
/// again.
void Ledger::free_of_another(const Lane& lane) {
  constexpr unsigned kHalf = kStripes / 2, kAtOnce = 8;
  const auto own = static_cast<unsigned>(&lane - lanes_.data());
  const unsigned step = lane.turns / kTurnsPerVisit % (kHalf - 1) + 1;
  Lane& other = lanes_[own / kHalf * kHalf + (own + step) % kHalf];
  const std::unique_lock lock(other.lock, std::try_to_lock);
  if (lock) free_named(other, kAtOnce);
}

/// Takes a page out of its list, where `link` leads to it, and frees it. No other thread can use
/// it.
template <class AnyPage>
void Ledger::free_page(pm::Offset& link) {
  const pm::Offset page = pm::load(link);
  const pm::Offset next = pm::load(checked_page<AnyPage>(pool_, page).next);
  alloc::Session session = pool_.allocator().session();
  session.free_unread(page);
  session.commit_when(link, kWholeWord, next);
  session.log();
  pm().publish(link, next);  // the commit
  session.finish();
  page_bytes_.fetch_sub(sizeof(AnyPage), std::memory_order_relaxed);
}

/// Frees a lane's pages of words that name nothing. The caller holds its lock.
bool Ledger::free_word_pages(Lane& lane) {
  bool any = false;
  auto& words = lane.words;
  std::sort(words.begin(), words.end(), std::less<>());
  for (pm::Offset* link = &lane.stripe->pages; pm::load(*link) != pm::kNull;) {
    Page& page = checked_page<Page>(pool_, pm::load(*link));
    const auto [begin, end] = range_of(words, page.retired);
    if (static_cast<std::size_t>(end - begin) != page.retired.size()) {
      link = &page.next;
      continue;
    }
    free_page<Page>(*link);
    words.erase(begin, end);
    lane.word_count -= page.retired.size();
    any = true;
  }
  return any;
}

/// Makes durable that words name nothing which have named a place: free_word() does not, since a
/// name that comes back does no harm as long as there is a page where it leads to.
void Ledger::forget_places(Leases own) {
  for (const Lane& lane : lanes_) {
    for (const pm::Offset* word : lane.words) pm().flush(word, sizeof *word);  // fenced below
  }
  for (const StripeLease* lease : own) {
    for (const pm::Offset* word : lease == nullptr ? decltype(lease->words_){} : lease->words_)
      if (word != nullptr) pm().flush(word, sizeof *word);  // fenced below
  }
  pm().fence();  // before a page of places is freed
}

/// Frees pages of anchors without any. Their places may be on the lists of all lanes, whose locks
/// the caller holds.
bool Ledger::free_anchor_pages(Leases own) {
  std::vector<Anchor*> places, gone;
  for (const Lane& lane : lanes_)
    places.insert(places.end(), lane.anchors.begin(), lane.anchors.end());
  std::sort(places.begin(), places.end(), std::less<>());
  gone.reserve(places.size());
  const auto forget = [&] {
    std::sort(gone.begin(), gone.end(), std::less<>());
    for (Lane& lane : lanes_) {
      std::erase_if(lane.anchors, [&](Anchor* place) {
        return std::binary_search(gone.begin(), gone.end(), place, std::less<>());
      });
    }
  };
  try {
    for (Lane& owner : lanes_) {
      for (pm::Offset* link = &owner.stripe->anchors; pm::load(*link) != pm::kNull;) {
        AnchorPage& page = checked_page<AnchorPage>(pool_, pm::load(*link));
        const auto [begin, end] = range_of(places, page.anchors);
        if (static_cast<std::size_t>(end - begin) != page.anchors.size()) {
          link = &page.next;
          continue;
        }
        if (gone.empty()) forget_places(own);
        free_page<AnchorPage>(*link);
        gone.insert(gone.end(), begin, end);
      }
    }
  } catch (...) {
    forget();
    throw;
  }
  forget();
  return !gone.empty();
}

bool Ledger::free_empty_pages(Leases own) {
  std::vector<std::unique_lock<util::SpinLock>> locks;
  locks.reserve(lanes_.size());
  bool any = false, all = true;
  for (Lane& lane : lanes_) {
    if (!is_of(lane, own) && !locks.emplace_back(lane.lock, std::try_to_lock)) {
      locks.pop_back();
      all = false;  // its holder may change its lists
    } else {
      all &= !lane.unclaiming;
      any |= free_word_pages(lane);
    }
  }
  return (all && free_anchor_pages(own)) || any;
}

void Ledger::walk(Owned& owned) const {
  const auto tell = [&](pm::Offset& word) {
    const pm::Offset block = pm::load(word);
    if (names_block(block))
      owned.release(pm::set_word(word, pm::kNull), OwnedBlocks(block, 1, "what the ledger names"));
  };
  for (const Lane& lane : lanes_) {
    Stripe& stripe = *lane.stripe;
    for_each_word(stripe, tell);
    if (pm::load(stripe.claims[0]) != pm::kNull)
      for (pm::Offset& word : stripe.claims) tell(word);
    walk_pages<Page>(pool_, stripe.pages, owned);
    walk_pages<AnchorPage>(pool_, stripe.anchors, owned);
  }
}

Ledger::StripeLease::StripeLease(Ledger& ledger, Purpose purpose) : ledger_(ledger) {
  lock_stripe(purpose);
  if (!lane_->unclaiming) return;
  std::unique_lock lock(lane_->lock, std::adopt_lock);
  alloc::Session session = ledger_.pool_.allocator().session();
  ledger_.free_claims(*lane_, session);
  lane_->unclaiming = false;
  lock.release();
}

void Ledger::StripeLease::lock_stripe(Purpose purpose) {
  const unsigned first = purpose == Purpose::operation ? 0 : kOperationStripes;
  constexpr unsigned kHalf = kStripes / 2;
  static_assert(kOperationStripes == kHalf);
  const auto own = static_cast<unsigned>(util::current_stripe());
  util::Backoff backoff;
  for (unsigned tries = 0;; ++tries) {
    lane_ = &ledger_.lanes_[first + (own + tries) % kHalf];
    if (lane_->lock.try_lock()) break;
    if (tries < kHalf) continue;
    if (ledger_.abandoned_[index_of(purpose)].load() == kHalf) {
      throw Error(Errc::out_of_space,
                  fmt::format("{}: an index could not take back what it had no space for; close it "
                              "and open it again",
                              ledger_.pool_.path().string()));
    }
    backoff.pause();
  }
}

void Ledger::StripeLease::abandon() {
  const auto stripe = static_cast<std::size_t>(lane_ - ledger_.lanes_.data());
  ledger_.abandoned_[index_of(purpose_of(stripe))].fetch_add(1);
  lane_ = nullptr;
}

Ledger::StripeLease::~StripeLease() {
  if (lane_ == nullptr) return;
  unname();
  try {
    unclaim();
  } catch (const std::exception&) {
    // No memory, or a damaged pool. A place of an anchor that is not free comes back with the rest.
    lane_->unclaiming = true;
    if (anchor_ != nullptr && pm::load(anchor_->block) != pm::kNull) anchor_ = nullptr;
  }
  if (anchor_ != nullptr) lane_->anchors.push_back(anchor_);  // has room: it came from there
  lane_->lock.unlock();
}

Anchor& Ledger::StripeLease::take_anchor() {
  if (anchor_ != nullptr) return *anchor_;
  constexpr unsigned kPages = 4;  // and not all of a full index's
  for (unsigned i = 0; i < kPages && lane_->anchors.empty() && lane_->unlearned != pm::kNull; ++i)
    ledger_.learn_page(*lane_);
  if (lane_->anchors.empty()) ledger_.add_anchors(*lane_);
  anchor_ = lane_->anchors.back();
  lane_->anchors.pop_back();
  return *anchor_;
}

void Ledger::StripeLease::commit(alloc::Session& session, const Claims& claims) {
  if (claims[0] == pm::kNull) return;
  auto& words = lane_->stripe->claims;
  for (unsigned i = 1; i < claims.size(); ++i) ledger_.pm().store(words[i], claims[i]);
  // Behind the others in the same line, so that its flush takes them along.
  const pm::Change claim = pm::set_word(words[0], claims[0]);
  ledger_.pm().commits_as_one() ? ledger_.claim_and_free(*lane_, session, claim)
                                : session.commit(claim);
  claims_ = claims;
}

void Ledger::StripeLease::linked() {
  if (claims_[0] == pm::kNull) return;
  // Durable before the blocks can be unlinked and freed: inside of the caller's guard, or with the
  // fence of the names of those that unlink them.
  ledger_.pm().publish_for_next(lane_->stripe->claims[0], pm::kNull);
  claims_ = {};
  anchor_ = nullptr;
}

void Ledger::StripeLease::unclaim() {
  if (claims_[0] == pm::kNull) return;
  const bool written = anchor_ != nullptr && pm::load(anchor_->block) != pm::kNull;
  alloc::Session session = ledger_.pool_.allocator().session();
  ledger_.free_claims(*lane_, session);
  claims_ = {};
  if (written) anchor_ = nullptr;  // the lane has it back
}

void Ledger::StripeLease::make_room(unsigned names) {
  Lane& lane = *lane_;
  unsigned have = 0;
  for (const pm::Offset* word : words_) have += word != nullptr;
  // Each operation frees what one or two others have unlinked, so what waits is bounded by what one
  // grace period frees.
  // Where a claim takes that along at no cost, only what erases have left.
  if (!ledger_.pm().commits_as_one() || lane.unlinked.size() >= 2 * alloc::kMaxBlocks)
    ledger_.free_named(lane, 2 * names);
  if (++lane.turns % kTurnsPerVisit == 0) ledger_.free_of_another(lane);
  lane.unlinked.reserve(words_.size());
  while (lane.words.size() + have < names) ledger_.add_words(lane);
  for (unsigned i = 0; i < names; ++i) {
    if (words_[i] != nullptr) continue;
    words_[i] = lane.words.back();
    lane.words.pop_back();
  }
}

void Ledger::StripeLease::name(unsigned name, pm::Offset block) {
  if (names_[name] == block) return;
  names_[name] = block;
  ledger_.pm().store(*words_[name], block);
  ledger_.pm().flush(words_[name], sizeof block);  // the caller fences
}

void Ledger::StripeLease::unlinked() {
  for (unsigned i = 0; i < names_.size(); ++i) {
    if (names_[i] == pm::kNull) continue;
    lane_->unlinked.push(ledger_.pool_.offset(words_[i]), ledger_.pool_.reclaimer());
    names_[i] = pm::kNull;
    words_[i] = nullptr;
  }
}

void Ledger::StripeLease::unname() {
  bool any = false;
  for (unsigned i = 0; i < names_.size(); ++i) {
    any |= names_[i] != pm::kNull;
    if (words_[i] != nullptr) name(i, pm::kNull);
  }
  // Durable inside of the caller's guard: another thread may free the block afterwards.
  if (any) ledger_.pm().fence();
  for (pm::Offset*& word : words_) {
    if (word != nullptr) lane_->words.push_back(word);
    word = nullptr;
  }
}

}  // namespace perdix::detail::index::nbtree
