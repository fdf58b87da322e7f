#include "index/nbtree/smo.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include <perdix/error.h>

#include "index/common/separator.h"

namespace perdix::detail::index::nbtree {
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
unsigned Structure<K>::SmoPlan::kept() const {
  if (!split) return size;
  const auto end = items.begin() + size;
  return static_cast<unsigned>(
      std::partition_point(items.begin(), end,
                           [&](const Item& item) { return item.key < separator; }) -
      items.begin());
}

template <class K>
bool Structure<K>::SmoPlan::fits() const {
  return kept() <= left_capacity && size - kept() <= right_capacity;
}

template <class K>
void Structure<K>::replace_leaf(const LeafRef<K>& place, const Key* key) {
  while (place.current() && !try_replace_leaf(place, key)) {
  }
}

template <class K>
bool Structure<K>::try_replace_leaf(const LeafRef<K>& place, const Key* key) {
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
  SmoPlan plan;
  if (Position<K>* next = leaf.next()) {
    Leaf<K>* right = next->leaf.load();
    if (right != nullptr && !is_cold(right) && right->to_be_absorbed()) {
      plan.absorbed = next;
      plan.absorbed_leaf = right;
    }
  }
  make_plan(place, key, plan);
  return with_blocks(place, key, plan, [&](StripeLease& lease) {
    return install(place, plan, lease, *prepare(place, plan));
  });
}

/// Calls change(lease) when the plan's blocks are claimed. In a full pool, too, erased entries must
/// make room for others, and a leaf that is closed must come open again: so there a block that was
/// put aside serves what needs no more than one, unless the leaf shall grow. So what is replaced is
/// no smaller than what was put aside, unless only a large block is left for a small leaf, and
/// takes its place when it is freed.
template <class K>
template <class Change>
bool Structure<K>::with_blocks(const LeafRef<K>& place, const Key* key, SmoPlan& plan,
                               const Change& change) {
  reserve_.fill();
  {
    StripeLease lease(ledger_, Ledger::Purpose::modification);
    bool claimed = true;
    try {
      allocate(place, plan, lease);
    } catch (const Error& error) {
      // Without a key to make room for, all that fits may stay together.
      const bool one_does =
          key == nullptr ? plan.size <= kCapacity : plan.size < place.leaf->capacity();
      pm::on_step("nbtree: no space for a modification");
      if (error.code() != Errc::out_of_space || !one_does) throw;
      claimed = false;
    }
    if (claimed) return change(lease);
  }
  const auto lock = reserve_.lock();
  StripeLease& lease = reserve_.claim_for(key == nullptr ? plan.size : plan.size + 1);
  pm::on_step("nbtree: use the reserve");
  plan.split = false;
  plan.blocks = lease.claims();
  plan.left_capacity = reserve_.capacity_at(plan.blocks[0]);
  name_replaced(place, plan, lease);  // install() fences before anything is unlinked
  bool done = false;
  try {
    done = change(lease);
  } catch (...) {
    lease.unname();
    throw;
  }
  if (!done) lease.unname();
  return done;
}

/// Closes the leaf, copies, and replaces it by what was prepared. False, and that has been taken
/// back, if something else than was planned for happened.
template <class K>
bool Structure<K>::install(const LeafRef<K>& place, SmoPlan& plan, StripeLease& lease,
                           Smo<K>& mine) {
  if (!copy(place, plan, mine)) {
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
  lease.linked();
  lease.unlinked();
  finish(place, mine);
  return true;
}

/// Adds the entries of a leaf that count.
template <class K>
void Structure<K>::gather(const Position<K>& at, const Leaf<K>& leaf, SmoPlan& plan) const {
  const Key low = at.low();
  for (unsigned i = 0; i < leaf.capacity(); ++i) {
    const Entry& entry = leaf.block().entries[i];
    const Word word = pm::load(entry.key);
    if (Layout::state(word) == State::special) continue;
    const Word key_word = Layout::key(word, low);
    plan.items[plan.size] = {keys_.view(key_word), key_word, pm::load(entry.value), plan.size};
    ++plan.size;
  }
}

/// What there is to copy: exact if the leaves are frozen.
template <class K>
void Structure<K>::collect_items(const LeafRef<K>& place, SmoPlan& plan) const {
  std::array<unsigned, 2 * kCapacity> order;  // that they had the last time
  const unsigned counted = plan.size, gathered = plan.gathered;
  for (unsigned i = 0; i < counted; ++i) order[i] = plan.items[i].order;
  plan.size = 0;
  gather(*place.at, *place.leaf, plan);
  if (plan.absorbed != nullptr) gather(*plan.absorbed, *plan.absorbed_leaf, plan);
  plan.gathered = plan.size;
  if (plan.size == counted && counted == gathered) {
    // Most likely they are the same again, and need not be sorted.
    std::array<Item, 2 * kCapacity> items;
    std::copy_n(plan.items.begin(), plan.size, items.begin());
    for (unsigned i = 0; i < plan.size; ++i) plan.items[i] = items[order[i]];
  }
  const auto begin = plan.items.begin(), end = begin + plan.size;
  const auto less = [](const Item& a, const Item& b) {
    return a.key < b.key || (a.key == b.key && a.order < b.order);
  };
  if (!std::is_sorted(begin, end, less)) std::sort(begin, end, less);
  // Of equal keys the first one counts (N4).
  const auto last =
      std::unique(begin, end, [](const Item& a, const Item& b) { return a.key == b.key; });
  plan.size = static_cast<unsigned>(last - begin);
}

/// What shall become of the leaf. As long as it is not frozen a guess, and so the blocks can be
/// allocated before it is closed.
template <class K>
void Structure<K>::make_plan(const LeafRef<K>& place, const Key* key, SmoPlan& plan) const {
  collect_items(place, plan);
  const Leaf<K>& rightmost = plan.absorbed == nullptr ? *place.leaf : *plan.absorbed_leaf;
  const bool last = rightmost.next() == nullptr || Layout::begins_region(rightmost.end());
  const unsigned size = plan.size;
  // One that takes its neighbour along, and need not make room, may become full.
  plan.split = size > (plan.absorbed != nullptr && key == nullptr ? kCapacity : kSplitAbove);
  if (plan.split && last && key != nullptr && size <= kCapacity &&
      plan.items[size - 1].key < *key) {
    // The new leaf is for the key and its successors, so that ascending loads fill leaves
    // completely.
    plan.separator = shortest_separator(plan.items[size - 1].key, *key);
    plan.left_capacity = kCapacity;
    plan.right_capacity = kSmallCapacity;
  } else if (plan.split) {
    const unsigned half = size / 2;
    plan.separator = shortest_separator(plan.items[half - 1].key, plan.items[half].key);
    plan.left_capacity = capacity_for(half);
    plan.right_capacity = capacity_for(size - half);
  } else {
    plan.left_capacity = capacity_for(size);
  }
}

/// Allocates what the plan needs, and names what it replaces. Throws out_of_space, nothing
/// changed.
template <class K>
void Structure<K>::allocate(const LeafRef<K>& place, SmoPlan& plan, StripeLease& lease) {
  if constexpr (!Keys::kInline) {
    plan.bound = plan.separator;  // its bytes may lie in a blob that another thread erases
    plan.separator = plan.bound;
  }
  name_replaced(place, plan, lease);
  const pm::Offset place_of_right =
      plan.split ? pool().offset(&lease.take_anchor()) | kAnchorTag : pm::kNull;
  // claim() fences, so the names are durable before anything is unlinked.
  lease.claim([&](alloc::Session& session) {
    plan.blocks[0] = session.reserve(block_bytes(plan.left_capacity));
    if (plan.split) {
      plan.blocks[1] = session.reserve(block_bytes(plan.right_capacity));
      plan.blocks[2] = place_of_right;
      plan.low = keys_.write(session, plan.separator);
      if (Keys::blobs(plan.low) != 0) plan.blocks[3] = blob_offset(plan.low);
    }
    return plan.blocks;
  });
}

/// Names what the plan replaces. Not fenced.
template <class K>
void Structure<K>::name_replaced(const LeafRef<K>& place, const SmoPlan& plan, StripeLease& lease) {
  lease.make_room(4);
  lease.name(0, pool().offset(&place.leaf->block()));
  if (plan.absorbed != nullptr) {
    const Anchor& anchor = plan.absorbed->anchor();
    const Word low = pm::load(anchor.low);
    lease.name(1, pool().offset(&plan.absorbed_leaf->block()));
    lease.name(2, pool().offset(&anchor) | kAnchorTag);
    if (Keys::blobs(low) != 0) lease.name(3, blob_offset(low));
  }
}

/// All that a plan needs in DRAM, also to bring the top layer up to date. Throws std::bad_alloc;
/// nothing is closed yet.
template <class K>
Smo<K>* Structure<K>::prepare(const LeafRef<K>& place, const SmoPlan& plan) {
  Smo<K>* smo = new (memory_.arena().allocate(sizeof(Smo<K>))) Smo<K>;
  try {
    smo->absorbed = plan.absorbed;
    smo->absorbed_leaf = plan.absorbed_leaf;
    smo->next = place.leaf->next();
    Position<K>* next = plan.absorbed == nullptr ? smo->next : plan.absorbed_leaf->next();
    if (plan.split) {
      Anchor& anchor = *pool().template at<Anchor>(plan.blocks[2] & ~kAnchorTag);
      smo->right_leaf = memory_.new_leaf(plan.blocks[1], plan.right_capacity, next);
      smo->right = memory_.new_position(anchor, plan.separator, smo->right_leaf);
      // The bound of integers is read from the anchor, where it is not as yet.
      const Key end = Keys::kInline ? plan.separator : smo->right->low();
      smo->left = memory_.new_leaf(plan.blocks[0], plan.left_capacity, smo->right, end);
    } else {
      smo->left = memory_.new_leaf(plan.blocks[0], plan.left_capacity, next);
    }
    const unsigned requests = 1U + (plan.split ? 1 : 0) + (plan.absorbed != nullptr ? 1 : 0);
    for (unsigned i = 0; i < requests; ++i) smo->requests[i] = writer_.prepare();
  } catch (...) {
    discard(*smo);
    throw;
  }
  return smo;
}

/// Closes the leaf, and copies what is in it. False if it is not what was planned for.
template <class K>
bool Structure<K>::copy(const LeafRef<K>& place, SmoPlan& plan, const Smo<K>& smo) {
  entries_.freeze(*place.leaf);
  if (plan.absorbed != nullptr) entries_.freeze(*plan.absorbed_leaf);
  collect_items(place, plan);
  if (!plan.fits()) return false;
  const unsigned kept = plan.kept();
  if (plan.split) {
    Anchor& anchor = smo.right->anchor();
    fill(*smo.right_leaf, plan, kept, plan.size);
    pm().store(anchor.low, plan.low);
    pm().store(anchor.block, plan.blocks[1]);  // last: the place is not free any more
    pm().flush(&anchor, sizeof anchor);        // fenced below, before it can be linked
  }
  fill(*smo.left, plan, 0, kept);
  pm().fence();  // all that is new is durable before it can be linked
  return true;
}

/// Writes a new block with the pairs [begin, end), and what the leaf knows of them. Flushed.
template <class K>
void Structure<K>::fill(Leaf<K>& leaf, const SmoPlan& plan, unsigned begin, unsigned end) {
  struct Image {
    std::uint64_t meta;
    pm::Offset next;
    std::array<Entry, kCapacity> entries;
  } image{};
  image.meta = Meta{leaf.capacity()}.pack();
  image.next = leaf.next() == nullptr ? pm::kNull : pool().offset(&leaf.next()->anchor());
  for (unsigned i = begin; i < end; ++i) {
    const Item& item = plan.items[i];
    image.entries[i - begin] = {Layout::pack(item.key_word, State::live), item.value};
    leaf.set_fingerprint(i - begin, fingerprint_of(Keys::hash16_of_word(item.key_word)));
  }
  leaf.set_visible((std::uint64_t{1} << (end - begin)) - 1, false);
  pm().copy(&leaf.block(), &image, block_bytes(leaf.capacity()));
  pm().flush(&leaf.block(), block_bytes(leaf.capacity()));  // the caller fences
}

/// Puts the new leaf in the place of the old one, in PM and in DRAM.
template <class K>
void Structure<K>::link(const LeafRef<K>& place, const Smo<K>& smo) {
  // First, so that no search finds a leaf there that has gone into another one.
  if (smo.absorbed != nullptr) {
    Leaf<K>* gone = smo.absorbed_leaf;
    pm::on_step("nbtree: take a leaf from a position that is joined");
    smo.absorbed->leaf.compare_exchange_strong(gone, nullptr);
  }
  std::uint64_t& word = place.at->anchor().block;
  const pm::Offset block = pool().offset(&smo.left->block());
  pm::Offset seen = pool().offset(&place.leaf->block());
  pm::on_step("nbtree: link a block");
  // The commit. A thread that finds it made persists it, too: the thread that made it may be
  // suspended. A thread that finds yet another block there is late: this one was durable before.
  if (pm().compare_exchange(word, seen, block) || seen == block) pm().persist(&word, sizeof word);
  Leaf<K>* old = place.leaf;
  pm::on_step("nbtree: put a leaf in its position");
  place.at->leaf.compare_exchange_strong(old, smo.left);
}

/// What is left to do when a leaf has been replaced.
template <class K>
void Structure<K>::finish(const LeafRef<K>& place, Smo<K>& smo) {
  auto request = smo.requests.begin();
  counts_.add_leaf(*place.leaf, -1);
  counts_.add_leaf(*smo.left, +1);
  if (smo.absorbed != nullptr) {
    pm::on_step("nbtree: leaves were joined");
    counts_.add_leaf(*smo.absorbed_leaf, -1);
    counts_.add_blobs(entries_, pm::load(smo.absorbed->anchor().low), 0, -1);
    writer_.submit(std::exchange(*request++, nullptr), *smo.absorbed, kRemove, smo.absorbed_leaf);
  }
  if (smo.right != nullptr) {
    pm::on_step("nbtree: a leaf was split");
    // Its first leaf may have been replaced already, which subtracts what is added here.
    counts_.add_leaf(*smo.right_leaf, +1);
    counts_.add_blobs(entries_, pm::load(smo.right->anchor().low), 0, +1);
    writer_.submit(std::exchange(*request++, nullptr), *smo.right, kAdd);
  }
  writer_.submit(std::exchange(*request, nullptr), *place.at, kRenew, place.leaf);
  retire(smo);
}

/// Takes back what was built, perhaps in part, and not taken.
template <class K>
void Structure<K>::discard(Smo<K>& smo) {
  for (Request<K>* request : smo.requests) {
    if (request != nullptr) writer_.take_back(request);
  }
  if (smo.right != nullptr) memory_.release(smo.right);
  if (smo.right_leaf != nullptr) memory_.release(smo.right_leaf);
  if (smo.left != nullptr) memory_.release(smo.left);
  memory_.arena().release(&smo, sizeof smo);
}

/// Releases what is out of reach of new readers.
template <class K>
void Structure<K>::retire(Smo<K>& smo) {
  pool().reclaimer().retire(
      &smo,
      [](void* retired, void* arena) {
        static_cast<util::Arena*>(arena)->release(retired, sizeof(Smo<K>));
      },
      &memory_.arena());
}

template <class K>
auto Structure<K>::left_neighbour(const Position<K>& at) -> std::optional<LeafRef<K>> {
  const Key low = at.low();
  Position<K>* left = top_.linked_below(low);
  for (;;) {
    left = cold_.approach(*left, low, true);
    Leaf<K>* leaf = cold_.leaf_of(*left);
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
      replace_leaf({left, leaf}, nullptr);  // completes the join that another thread has begun
      continue;
    }
    left = next;
  }
}

/// Has the left neighbour take along a leaf that is marked so.
template <class K>
void Structure<K>::absorb(const LeafRef<K>& place) {
  entries_.freeze(*place.leaf);
  while (place.current()) {
    if (const auto left = left_neighbour(*place.at)) replace_leaf(*left, nullptr);
  }
}

/// Allocates before it marks the right leaf, since a marked leaf is of no use before it has been
/// absorbed.
template <class K>
bool Structure<K>::join(const LeafRef<K>& left, const LeafRef<K>& right) {
  SmoPlan plan;
  plan.absorbed = right.at;
  plan.absorbed_leaf = right.leaf;
  make_plan(left, nullptr, plan);
  bool marked = false;
  const bool joined = with_blocks(left, nullptr, plan, [&](StripeLease& lease) {
    Smo<K>* mine = prepare(left, plan);
    marked = left.leaf->smo() == nullptr && !left.leaf->to_be_absorbed() &&
             right.leaf->mark_to_be_absorbed();
    if (marked) return install(left, plan, lease, *mine);
    discard(*mine);
    return false;
  });
  if (!marked) pm::on_step("nbtree: a join meets a leaf that changes");
  if (marked && !joined) absorb(right);
  return marked;
}

template class Structure<std::uint64_t>;
template class Structure<std::string>;

}  // namespace perdix::detail::index::nbtree
