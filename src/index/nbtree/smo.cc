// Structure modifications (nbtree.txt IV-B): a leaf that is full is replaced by one or two, a
// sparse one is joined with its left neighbour. In three phases, each of which any thread may do
// again or go on with:
//
//   1. Freeze and copy. A writer prepares: it allocates, closes the leaf, freezes each entry, and
//      copies what there is into new blocks. Several may prepare at once; `Leaf::smo` takes one.
//   2. Link. The anchor's `block` changes from the old block to the new one and is persisted: the
//      commit. Then the position gets the new leaf.
//   3. Finish. Whose preparation was taken has the top layer brought up to date and the old
//      blocks freed.
//
// The paper copies while updates and erases go on and then synchronises what they changed, for
// which it needs two bits of each value. Here an entry is frozen by a bit that its key word has, an
// update of a frozen entry fails and is made again in the new leaf: so there is nothing to
// synchronise ("sync-on-write"), and readers read the old leaf until the new one is linked
// ("sync-on-read"). An update is delayed by no more than the copying that it helps with.
//
// Joining: the leaf that goes is marked to be absorbed and frozen; the next modification of its
// left neighbour takes its entries along. Whoever needs the leaf makes that modification.
#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>

#include <perdix/error.h>

#include "index/common/separator.h"
#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {
namespace {

/// As many pairs as one leaf takes from one that is replaced; more are split.
constexpr unsigned kSplitAbove = 48;

/// As many pairs as a small leaf begins with.
constexpr unsigned kSmallUpTo = 36;

/// Asks for all lines of a block, so that they are waited for together.
void prefetch_block(const Block& block, unsigned capacity) {
  for (std::size_t i = 0; i < block_bytes(capacity); i += pm::kLineSize)
    __builtin_prefetch(reinterpret_cast<const char*>(&block) + i);
}

constexpr unsigned capacity_for(unsigned pairs) {
  return pairs <= kSmallUpTo ? kSmallCapacity : kCapacity;
}

}  // namespace

/// How many pairs stay in the left leaf.
template <class K>
unsigned WordTree<K>::Draft::kept() const {
  if (!split) return size;
  const auto end = items.begin() + size;
  return static_cast<unsigned>(
      std::partition_point(items.begin(), end,
                           [&](const Item& item) { return item.key < separator; }) -
      items.begin());
}

template <class K>
bool WordTree<K>::Draft::fits() const {
  return kept() <= left_capacity && size - kept() <= right_capacity;
}

/// Replaces a leaf that is full or closed; returns when it is no more at its position. Throws
/// out_of_space or std::bad_alloc; then it may be closed, and has lost nothing.
template <class K>
void WordTree<K>::reform(const LeafRef<K>& place, const Key* key) const {
  while (place.current() && !try_reform(place, key)) {
  }
}

template <class K>
bool WordTree<K>::try_reform(const LeafRef<K>& place, const Key* key) const {
  Leaf<K>& leaf = *place.leaf;
  if (leaf.to_be_absorbed()) {
    pm::on_step("nbtree: absorb a leaf that is needed");
    absorb(place);
    return true;
  }
  if (const Smo<K>* smo = leaf.smo()) {
    pm::on_step("nbtree: help to link");
    link(place, *smo);
    return true;
  }
  prefetch_block(leaf.block(), leaf.capacity());
  Draft draft;
  if (Position<K>* next = leaf.next()) {
    Leaf<K>* right = next->leaf.load();
    if (right != nullptr && !is_cold(right) && right->to_be_absorbed()) {
      draft.absorbed = next;
      draft.absorbed_leaf = right;
    }
  }
  plan(place, key, draft);
  return with_blocks(place, key, draft, [&](Hold& hold) {
    return install(place, draft, hold, *prepare(place, draft));
  });
}

/// Calls change(hold) when the draft's blocks are claimed. In a full pool, too, erased entries must
/// make room for others, and a leaf that is closed must come open again: so there a block that was
/// put aside serves what needs no more than one, unless the leaf shall grow. So what is replaced is
/// no smaller than what was put aside, unless only a large block is left for a small leaf, and
/// takes its place when it is freed.
template <class K>
template <class Change>
bool WordTree<K>::with_blocks(const LeafRef<K>& place, const Key* key, Draft& draft,
                              const Change& change) const {
  reserve_->fill();
  {
    Hold hold(*ledger_, Ledger::Purpose::modification);
    bool claimed = true;
    try {
      allocate(place, draft, hold);
    } catch (const Error& error) {
      // Without a key to make room for, all that fits may stay together.
      const bool one_does =
          key == nullptr ? draft.size <= kCapacity : draft.size < place.leaf->capacity();
      pm::on_step("nbtree: no space for a modification");
      if (error.code() != Errc::out_of_space || !one_does) throw;
      claimed = false;
    }
    if (claimed) return change(hold);
  }
  const auto lock = reserve_->lock();
  Hold& hold = reserve_->claim_for(key == nullptr ? draft.size : draft.size + 1);
  pm::on_step("nbtree: use the reserve");
  draft.split = false;
  draft.blocks = hold.claims();
  draft.left_capacity = reserve_->capacity_at(draft.blocks[0]);
  name_replaced(place, draft, hold);  // install() fences before anything is unlinked
  bool done = false;
  try {
    done = change(hold);
  } catch (...) {
    hold.unname();
    throw;
  }
  if (!done) hold.unname();
  return done;
}

/// Closes the leaf, copies, and replaces it by what was prepared. False, and that has been taken
/// back, if something else than was planned for happened.
template <class K>
bool WordTree<K>::install(const LeafRef<K>& place, Draft& draft, Hold& hold, Smo<K>& mine) const {
  if (!copy(place, draft, mine)) {
    pm::on_step("nbtree: a preparation does not fit");
    discard(mine);
    return false;
  }
  if (!place.leaf->replace_by(mine)) {
    pm::on_step("nbtree: another preparation is taken");
    discard(mine);
    return false;
  }
  link(place, mine);
  hold.linked();
  hold.unlinked();
  finish(place, mine);
  return true;
}

/// Adds the entries of a leaf that count.
template <class K>
void WordTree<K>::gather(const Position<K>& at, const Leaf<K>& leaf, Draft& draft) const {
  const Key low = at.low();
  for (unsigned i = 0; i < leaf.capacity(); ++i) {
    const Entry& entry = leaf.block().entries[i];
    const Word word = pm::load(entry.key);
    if (Code::state(word) == State::special) continue;
    const Word key_word = Code::key(word, low);
    draft.items[draft.size] = {keys_.view(key_word), key_word, pm::load(entry.value), draft.size};
    ++draft.size;
  }
}

/// What there is to copy: exact if the leaves are frozen.
template <class K>
void WordTree<K>::collect_items(const LeafRef<K>& place, Draft& draft) const {
  std::array<unsigned, 2 * kCapacity> order;  // that they had the last time
  const unsigned counted = draft.size, gathered = draft.gathered;
  for (unsigned i = 0; i < counted; ++i) order[i] = draft.items[i].order;
  draft.size = 0;
  gather(*place.at, *place.leaf, draft);
  if (draft.absorbed != nullptr) gather(*draft.absorbed, *draft.absorbed_leaf, draft);
  draft.gathered = draft.size;
  if (draft.size == counted && counted == gathered) {
    // Most likely they are the same again, and need not be sorted.
    std::array<Item, 2 * kCapacity> items;
    std::copy_n(draft.items.begin(), draft.size, items.begin());
    for (unsigned i = 0; i < draft.size; ++i) draft.items[i] = items[order[i]];
  }
  const auto begin = draft.items.begin(), end = begin + draft.size;
  const auto less = [](const Item& a, const Item& b) {
    return a.key < b.key || (a.key == b.key && a.order < b.order);
  };
  if (!std::is_sorted(begin, end, less)) std::sort(begin, end, less);
  // Of equal keys the first one counts (N4).
  const auto last =
      std::unique(begin, end, [](const Item& a, const Item& b) { return a.key == b.key; });
  draft.size = static_cast<unsigned>(last - begin);
}

/// What shall become of the leaf. As long as it is not frozen a guess, and so the blocks can be
/// allocated before it is closed.
template <class K>
void WordTree<K>::plan(const LeafRef<K>& place, const Key* key, Draft& draft) const {
  collect_items(place, draft);
  const Leaf<K>& rightmost = draft.absorbed == nullptr ? *place.leaf : *draft.absorbed_leaf;
  const bool last = rightmost.next() == nullptr || Code::begins_region(rightmost.end());
  const unsigned size = draft.size;
  // One that takes its neighbour along, and need not make room, may become full.
  draft.split = size > (draft.absorbed != nullptr && key == nullptr ? kCapacity : kSplitAbove);
  if (draft.split && last && key != nullptr && size <= kCapacity &&
      draft.items[size - 1].key < *key) {
    // The new leaf is for the key and its successors, so that ascending loads fill leaves
    // completely.
    draft.separator = shortest_separator(draft.items[size - 1].key, *key);
    draft.left_capacity = kCapacity;
    draft.right_capacity = kSmallCapacity;
  } else if (draft.split) {
    const unsigned half = size / 2;
    draft.separator = shortest_separator(draft.items[half - 1].key, draft.items[half].key);
    draft.left_capacity = capacity_for(half);
    draft.right_capacity = capacity_for(size - half);
  } else {
    draft.left_capacity = capacity_for(size);
  }
}

/// Allocates what the draft needs, and names what it replaces. Throws out_of_space, nothing
/// changed.
template <class K>
void WordTree<K>::allocate(const LeafRef<K>& place, Draft& draft, Hold& hold) const {
  if constexpr (!Keys::kInline) {
    draft.bound = draft.separator;  // whose bytes may lie in a blob that is erased meanwhile
    draft.separator = draft.bound;
  }
  name_replaced(place, draft, hold);
  const pm::Offset place_of_right =
      draft.split ? pool().offset(&hold.take_anchor()) | kAnchorTag : pm::kNull;
  // claim() fences, so the names are durable before anything is unlinked.
  hold.claim([&](alloc::Session& session) {
    draft.blocks[0] = session.reserve(block_bytes(draft.left_capacity));
    if (draft.split) {
      draft.blocks[1] = session.reserve(block_bytes(draft.right_capacity));
      draft.blocks[2] = place_of_right;
      draft.low = keys_.write(session, draft.separator);
      if (Keys::blobs(draft.low) != 0) draft.blocks[3] = blob_offset(draft.low);
    }
    return draft.blocks;
  });
}

/// Names what the draft replaces. Not fenced.
template <class K>
void WordTree<K>::name_replaced(const LeafRef<K>& place, const Draft& draft, Hold& hold) const {
  hold.make_room(4);
  hold.name(0, pool().offset(&place.leaf->block()));
  if (draft.absorbed != nullptr) {
    const Anchor& anchor = draft.absorbed->anchor();
    const Word low = pm::load(anchor.low);
    hold.name(1, pool().offset(&draft.absorbed_leaf->block()));
    hold.name(2, pool().offset(&anchor) | kAnchorTag);
    if (Keys::blobs(low) != 0) hold.name(3, blob_offset(low));
  }
}

/// All that a draft needs in DRAM, also to bring the top layer up to date. Throws std::bad_alloc;
/// nothing is closed yet.
template <class K>
Smo<K>* WordTree<K>::prepare(const LeafRef<K>& place, const Draft& draft) const {
  Smo<K>* smo = new (memory_.arena().allocate(sizeof(Smo<K>))) Smo<K>;
  try {
    smo->absorbed = draft.absorbed;
    smo->absorbed_leaf = draft.absorbed_leaf;
    smo->next = place.leaf->next();
    Position<K>* next = draft.absorbed == nullptr ? smo->next : draft.absorbed_leaf->next();
    if (draft.split) {
      Anchor& anchor = *pool().template at<Anchor>(draft.blocks[2] & ~kAnchorTag);
      smo->right_leaf = memory_.new_leaf(draft.blocks[1], draft.right_capacity, next);
      smo->right = memory_.new_position(anchor, draft.separator, smo->right_leaf);
      // The bound of integers is read from the anchor, where it is not as yet.
      const Key end = Keys::kInline ? draft.separator : smo->right->low();
      smo->left = memory_.new_leaf(draft.blocks[0], draft.left_capacity, smo->right, end);
    } else {
      smo->left = memory_.new_leaf(draft.blocks[0], draft.left_capacity, next);
    }
    const unsigned wishes = 1U + (draft.split ? 1 : 0) + (draft.absorbed != nullptr ? 1 : 0);
    for (unsigned i = 0; i < wishes; ++i) smo->wishes[i] = top_.prepare();
  } catch (...) {
    discard(*smo);
    throw;
  }
  return smo;
}

/// Closes the leaf, and copies what is in it. False if it is not what was planned for.
template <class K>
bool WordTree<K>::copy(const LeafRef<K>& place, Draft& draft, const Smo<K>& smo) const {
  entries_.freeze(*place.leaf);
  if (draft.absorbed != nullptr) entries_.freeze(*draft.absorbed_leaf);
  collect_items(place, draft);
  if (!draft.fits()) return false;
  const unsigned kept = draft.kept();
  if (draft.split) {
    Anchor& anchor = smo.right->anchor();
    fill(*smo.right_leaf, draft, kept, draft.size);
    pm().store(anchor.low, draft.low);
    pm().store(anchor.block, draft.blocks[1]);  // last: the place is not free any more
    pm().flush(&anchor, sizeof anchor);         // fenced below, before it can be linked
  }
  fill(*smo.left, draft, 0, kept);
  pm().fence();  // all that is new is durable before it can be linked
  return true;
}

/// Writes a new block with the pairs [begin, end), and what the leaf knows of them. Flushed.
template <class K>
void WordTree<K>::fill(Leaf<K>& leaf, const Draft& draft, unsigned begin, unsigned end) const {
  struct Image {
    std::uint64_t meta;
    pm::Offset next;
    std::array<Entry, kCapacity> entries;
  } image{};
  image.meta = Meta{leaf.capacity()}.pack();
  image.next = leaf.next() == nullptr ? pm::kNull : pool().offset(&leaf.next()->anchor());
  for (unsigned i = begin; i < end; ++i) {
    const Item& item = draft.items[i];
    image.entries[i - begin] = {Code::pack(item.key_word, State::live), item.value};
    leaf.set_fingerprint(i - begin, fingerprint_of(Keys::hash16_of_word(item.key_word)));
  }
  leaf.set_visible((std::uint64_t{1} << (end - begin)) - 1, false);
  pm().copy(&leaf.block(), &image, block_bytes(leaf.capacity()));
  pm().flush(&leaf.block(), block_bytes(leaf.capacity()));  // the caller fences
}

/// Puts the new leaf in the place of the old one, in PM and in DRAM.
template <class K>
void WordTree<K>::link(const LeafRef<K>& place, const Smo<K>& smo) const {
  // First, so that nobody finds a leaf there that has gone into another one.
  if (smo.absorbed != nullptr) {
    Leaf<K>* gone = smo.absorbed_leaf;
    pm::on_step("nbtree: take a leaf from a position that is joined");
    smo.absorbed->leaf.compare_exchange_strong(gone, nullptr);
  }
  std::uint64_t& word = place.at->anchor().block;
  const pm::Offset block = pool().offset(&smo.left->block());
  pm::Offset seen = pool().offset(&place.leaf->block());
  pm::on_step("nbtree: link a block");
  // The commit. Who finds it made persists it too: its maker may be suspended. Who finds yet
  // another block there is late: that one came after this one was durable.
  if (pm().compare_exchange(word, seen, block) || seen == block) pm().persist(&word, sizeof word);
  Leaf<K>* old = place.leaf;
  pm::on_step("nbtree: put a leaf in its position");
  place.at->leaf.compare_exchange_strong(old, smo.left);
}

/// What is left to do when a leaf has been replaced.
template <class K>
void WordTree<K>::finish(const LeafRef<K>& place, Smo<K>& smo) const {
  auto wish = smo.wishes.begin();
  counts_.add_leaf(*place.leaf, -1);
  counts_.add_leaf(*smo.left, +1);
  if (smo.absorbed != nullptr) {
    pm::on_step("nbtree: leaves were joined");
    counts_.add_leaf(*smo.absorbed_leaf, -1);
    counts_.add_blobs(entries_, pm::load(smo.absorbed->anchor().low), 0, -1);
    top_.wish(std::exchange(*wish++, nullptr), *smo.absorbed, Top<K>::kRemove, smo.absorbed_leaf);
  }
  if (smo.right != nullptr) {
    pm::on_step("nbtree: a leaf was split");
    // Its first leaf may have been replaced already, which subtracts what is added here.
    counts_.add_leaf(*smo.right_leaf, +1);
    counts_.add_blobs(entries_, pm::load(smo.right->anchor().low), 0, +1);
    top_.wish(std::exchange(*wish++, nullptr), *smo.right, Top<K>::kAdd);
  }
  top_.wish(std::exchange(*wish, nullptr), *place.at, Top<K>::kRenew, place.leaf);
  retire(smo);
}

/// Takes back what was built, perhaps in part, and not taken.
template <class K>
void WordTree<K>::discard(Smo<K>& smo) const {
  for (Wanted<K>* wish : smo.wishes) {
    if (wish != nullptr) top_.take_back(wish);
  }
  if (smo.right != nullptr) memory_.release(smo.right);
  if (smo.right_leaf != nullptr) memory_.release(smo.right_leaf);
  if (smo.left != nullptr) memory_.release(smo.left);
  memory_.arena().release(&smo, sizeof smo);
}

/// Releases what is out of reach of new readers.
template <class K>
void WordTree<K>::retire(Smo<K>& smo) const {
  pool().reclaimer().retire(
      &smo,
      [](void* retired, void* arena) {
        static_cast<util::Arena*>(arena)->release(retired, sizeof(Smo<K>));
      },
      &memory_.arena());
}

/// The leaf on the left, if the position is still linked.
template <class K>
auto WordTree<K>::left_neighbour(const Position<K>& at) const -> std::optional<LeafRef<K>> {
  const Key low = at.low();
  Position<K>* left = top_.linked_below(low);
  for (;;) {
    Leaf<K>* leaf = leaf_of(*left);
    if (leaf == nullptr) {
      pm::on_step("nbtree: the left neighbour has gone");
      left = top_.linked_below(low);
      continue;
    }
    Position<K>* next = leaf->next();
    if (next == &at) return LeafRef<K>{left, leaf};
    if (next == nullptr || low < leaf->end()) return std::nullopt;
    if (next->leaf.load() == nullptr) {
      pm::on_step("nbtree: complete a join on the way to the left neighbour");
      reform({left, leaf}, nullptr);  // somebody is at it
      continue;
    }
    left = next;
  }
}

/// Has the left neighbour take along a leaf that is marked so.
template <class K>
void WordTree<K>::absorb(const LeafRef<K>& place) const {
  entries_.freeze(*place.leaf);
  while (place.current()) {
    if (const auto left = left_neighbour(*place.at)) reform(*left, nullptr);
  }
}

/// Whether two neighbours should become one.
template <class K>
bool WordTree<K>::may_join(const Leaf<K>& left, const Leaf<K>& right) const {
  const int a = std::popcount(left.visible_slots()), b = std::popcount(right.visible_slots());
  return a == 0 || b == 0 || static_cast<unsigned>(a + b) <= kJoinUpTo;
}

/// Whether the position is the first of a region. Their anchors, and no others, lie in the root
/// (N3), so nothing is read for it.
template <class K>
bool WordTree<K>::begins_region(const Position<K>& at) const {
  const Anchor* first = &head_->anchor();
  return &at.anchor() >= first && &at.anchor() < first + Code::kRegions;
}

/// After an erase that has left so many pairs: joins the leaf with a neighbour, if both are sparse.
/// The left one is found by a search, so only now and then: each of these counts is left by one
/// erase.
template <class K>
void WordTree<K>::join_if_due(const LeafRef<K>& place, unsigned pairs) const {
  if (pairs != 0 && pairs != kJoinUpTo / 2) return;
  if (try_join(place)) return;
  pm::on_step("nbtree: a join is left for later");
  joins_due_.store(Due::in_next_round);
}

/// Joins a leaf with a neighbour, if both are sparse. False if that is still to be done: there was
/// no space or no memory for it, or something else happens to one of them.
template <class K>
bool WordTree<K>::try_join(const LeafRef<K>& place) const {
  try {
    if (!begins_region(*place.at)) {
      const auto left = left_neighbour(*place.at);
      if (left && may_join(*left->leaf, *place.leaf)) return join(*left, place);
    }
    Position<K>* next = place.leaf->next();
    if (next == nullptr || Code::begins_region(place.leaf->end())) return true;
    Leaf<K>* right = leaf_of(*next);
    return right == nullptr || !may_join(*place.leaf, *right) || join(place, {next, right});
  } catch (const Error&) {  // which is for who needs the leaf; the erase is done
  } catch (const std::bad_alloc&) {
  }
  return false;
}

/// Joins a leaf with its right neighbour. What it needs is allocated before that one is marked,
/// since a marked leaf is of no use before it has been absorbed. False if it was not marked.
template <class K>
bool WordTree<K>::join(const LeafRef<K>& left, const LeafRef<K>& right) const {
  Draft draft;
  draft.absorbed = right.at;
  draft.absorbed_leaf = right.leaf;
  plan(left, nullptr, draft);
  bool marked = false;
  const bool joined = with_blocks(left, nullptr, draft, [&](Hold& hold) {
    Smo<K>* mine = prepare(left, draft);
    marked =
        left.leaf->smo() == nullptr && !left.leaf->to_be_absorbed() && right.leaf->let_absorb();
    if (marked) return install(left, draft, hold, *mine);
    discard(*mine);
    return false;
  });
  if (!marked) pm::on_step("nbtree: a join meets a leaf that changes");
  if (marked && !joined) absorb(right);
  return marked;
}

/// Makes up for joins that were due and could not be done, in rounds over all leaves until there
/// was a round in which none was missed. Looks at a few leaves only: each erase calls this as long
/// as joins are due. One thread at a time does so; others go on. False if there is no more to do
/// now.
template <class K>
bool WordTree<K>::make_up_for_joins() const {
  constexpr unsigned kLeavesAtOnce = 4;
  const std::unique_lock lock(round_lock_, std::try_to_lock);
  if (!lock) return false;
  const epoch::Guard guard;
  pm::on_step("nbtree: make up for joins");
  for (unsigned i = 0; i < kLeavesAtOnce; ++i) {
    if (round_from_ == K{}) joins_due_.store(Due::in_this_round);
    const LeafRef<K> place = locate(round_from_);
    const int pairs = std::popcount(place.leaf->visible_slots());
    if (static_cast<unsigned>(pairs) <= kJoinUpTo / 2 && !try_join(place)) return false;
    if (!place.current()) continue;  // what it has become may join with the next one, too
    const bool last = place.leaf->next() == nullptr;
    round_from_ = last ? K{} : K(place.leaf->end());
    Due due = Due::in_this_round;
    if (last) pm::on_step("nbtree: end a round of joins");
    if (last && joins_due_.compare_exchange_strong(due, Due::none)) return false;
  }
  return true;
}

/// The same for an erase, which is done: what goes wrong is for others. If nothing could be done
/// the last time, then there is no space yet, most likely: so it tries now and then.
template <class K>
void WordTree<K>::erase_makes_up_for_joins() const {
  constexpr unsigned kErasesPerTry = 64;
  if (joins_stuck_.load(std::memory_order_relaxed) &&
      erases_since_try_.fetch_add(1, std::memory_order_relaxed) % kErasesPerTry != 0)
    return;
  try {
    joins_stuck_.store(!make_up_for_joins(), std::memory_order_relaxed);
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
}

template void WordTree<std::uint64_t>::reform(const LeafRef<std::uint64_t>&, const Key*) const;
template void WordTree<std::uint64_t>::join_if_due(const LeafRef<std::uint64_t>&, unsigned) const;
template bool WordTree<std::uint64_t>::make_up_for_joins() const;
template void WordTree<std::uint64_t>::erase_makes_up_for_joins() const;
template void WordTree<std::string>::reform(const LeafRef<std::string>&, const Key*) const;
template void WordTree<std::string>::join_if_due(const LeafRef<std::string>&, unsigned) const;
template bool WordTree<std::string>::make_up_for_joins() const;
template void WordTree<std::string>::erase_makes_up_for_joins() const;

}  // namespace perdix::index::nbtree
