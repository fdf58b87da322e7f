// What happens on open: an index that is new gets its first leaves; one that exists gets its DRAM
// side back from the list of anchors, and the ledger is settled. The pool has resolved the
// allocator's log before, so the invariants of layout.h hold.
//
// Opening writes to PM: entries that lost are killed (N4), others that were in flight become live,
// and what the ledger names is freed if it was not reached. A crash during it leaves less to do.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <new>
#include <vector>

#include <perdix/error.h>

#include "index/nbtree/census.h"
#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

[[noreturn]] void throw_corrupt(const pool::PoolCore& pool, const char* what, pm::Offset offset) {
  throw Error(Errc::corrupt,
              fmt::format("{}: an index has {} at offset {:#x}, where none is that could be "
                          "there; restore the pool from a copy",
                          pool.path().string(), what, offset));
}

Root& checked_root(const pool::PoolCore& pool, pm::Offset offset) {
  if (offset % alignof(Root) == 0 && pool.contains(offset, sizeof(Root)) &&
      pm::load(pool.at<Root>(offset)->magic) == kRootMagic) {
    return *pool.at<Root>(offset);
  }
  throw_corrupt(pool, "its root", offset);
}

Anchor& checked_anchor(const pool::PoolCore& pool, pm::Offset offset) {
  if (offset % alignof(Anchor) == 0 && pool.contains(offset, sizeof(Anchor)))
    return *pool.at<Anchor>(offset);
  throw_corrupt(pool, "an anchor", offset);
}

Block& checked_block(const pool::PoolCore& pool, const Anchor& anchor) {
  const pm::Offset offset = pm::load(anchor.block);
  if (offset % alignof(Block) == 0 && pool.contains(offset, sizeof(Block))) {
    Block& block = *pool.at<Block>(offset);
    const std::uint64_t meta = pm::load(block.meta);
    if (Meta::valid(meta) && pool.contains(offset, block_bytes(Meta::unpack(meta).capacity)))
      return block;
  }
  throw_corrupt(pool, "a block", offset);
}

bool in_root(const Root& root, const Anchor& anchor) {
  return &anchor >= root.anchors.data() && &anchor < root.anchors.data() + root.anchors.size();
}

/// Calls visit(anchor, block, low) for all anchors, ascending. Throws corrupt.
template <class K, class Visit>
void for_each_anchor(const pool::PoolCore& pool, const Words<K>& keys, pm::Offset first,
                     Visit visit) {
  using Code = Codec<K>;
  std::optional<View<K>> previous;
  for (pm::Offset offset = first; offset != pm::kNull;) {
    Anchor& anchor = checked_anchor(pool, offset);
    Block& block = checked_block(pool, anchor);
    const View<K> low = keys.view(pm::load(anchor.low));
    if (previous) {  // ascending, so that the list ends; and each region has its first anchor (N3)
      const bool ascends = *previous < low;
      const bool new_region = Code::region(low) != Code::region(*previous);
      if (!ascends || (new_region && !Code::begins_region(low)) ||
          Code::region(low) > Code::region(*previous) + 1)
        throw_corrupt(pool, "an anchor", offset);
    }
    previous = low;
    offset = pm::load(block.next);
    visit(anchor, block, low);
  }
}

/// Calls visit(slot, word, counts) for all entries of a block; those that lost are killed (N4).
template <class K, class Visit>
void for_each_entry(const pool::PoolCore& pool, const Words<K>& keys, Block& block, View<K> low,
                    Visit visit) {
  using Code = Codec<K>;
  const unsigned capacity = Meta::unpack(pm::load(block.meta)).capacity;
  std::array<Hash16, kCapacity> hashes{};
  std::uint64_t seen = 0;
  for (unsigned i = 0; i < capacity; ++i) {
    std::uint64_t& word = block.entries[i].key;
    const Word found = pm::load(word);
    if (Code::state(found) == State::special) {
      visit(i, found, false);
      continue;
    }
    const Word key = Code::key(found, low);
    hashes[i] = Words<K>::hash16_of_word(key);
    bool counts = true;
    for (std::uint64_t left = seen; left != 0 && counts; left &= left - 1) {
      const auto j = static_cast<unsigned>(__builtin_ctzll(left));
      counts = hashes[j] != hashes[i] ||
               keys.view(Code::key(pm::load(block.entries[j].key), low)) != keys.view(key);
    }
    if (counts) {
      seen |= std::uint64_t{1} << i;
    } else {
      pool.pm().publish(word, Code::kDead);  // or it would come back when the first one is erased
    }
    visit(i, counts ? found : Code::kDead, counts);
  }
}

}  // namespace

template <class K, class V>
Tree<K, V>::Tree(pool::IndexHandle handle)
    : handle_(std::move(handle)),
      doubtful_(pool().pm().domain() != pm::Domain::cpu_cache),
      keys_(pool()),
      values_(pool()),
      drain_{pool().reclaimer()},
      top_(
          arena_, pool().reclaimer(),
          [](void* position, void* tree) {
            static_cast<Tree*>(tree)->release(static_cast<Position<K>*>(position));
          },
          this) {
  const auto start = std::chrono::steady_clock::now();
  create();
  recover();
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class K, class V>
Tree<K, V>::~Tree() {
  try {
    reserve_.reset();
    ledger_->free_unlinked();
  } catch (const std::exception&) {
    // What is still named is freed when the index is opened again.
  }
  for (Position<K>* at = head_; at != nullptr;) {  // long bounds are mappings of their own
    Position<K>* next = at->leaf.load()->next;
    release(at);
    at = next;
  }
}

/// Gives a new index its root block, and that the first leaf of each region. The root word and
/// `first` are the commits.
template <class K, class V>
void Tree<K, V>::create() {
  if (pm::load(handle_.root()) == pm::kNull) {
    alloc::Session session = pool().allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Root));
    Root& root = *pool().template at<Root>(offset);
    pm().zero(&root, sizeof root);
    pm().store(root.magic, kRootMagic);
    pm().flush(&root, sizeof root);  // log() fences before the root can be linked
    session.commit_when(handle_.root(), kAllBits, offset);
    session.log();
    pm().store(handle_.root(), offset);               // the commit
    pm().flush(&handle_.root(), sizeof(pm::Offset));  // finish() fences: nothing is freed (R3)
    session.finish();
  }
  Root& root = checked_root(pool(), pm::load(handle_.root()));
  if (pm::load(root.first) != pm::kNull) return;
  alloc::Session session = pool().allocator().session();
  for (unsigned i = Code::kRegions; i-- > 0;) {
    const pm::Offset offset = session.reserve(block_bytes(kSmallCapacity));
    Block& block = *pool().template at<Block>(offset);
    pm().zero(&block, block_bytes(kSmallCapacity));
    pm().store(block.meta, Meta{kSmallCapacity}.pack());
    const bool last = i + 1 == Code::kRegions;
    pm().store(block.next, last ? pm::kNull : pool().offset(&root.anchors[i + 1]));
    pm().flush(&block, block_bytes(kSmallCapacity));  // log() fences before it can be linked
    pm().store(root.anchors[i].block, offset);
    pm().store(root.anchors[i].low, Code::low_of_region(i));
  }
  pm().flush(&root.anchors, sizeof root.anchors);  // as above
  session.commit_when(root.first, kAllBits, pool().offset(root.anchors.data()));
  session.log();
  pm().store(root.first, pool().offset(root.anchors.data()));  // the commit
  pm().flush(&root.first, sizeof root.first);  // finish() fences: nothing is freed (R3)
  session.finish();
}

template <class K, class V>
Position<K>* Tree<K, V>::new_position(Anchor& anchor, Key low) const {
  auto* position = new (arena_.allocate(sizeof(Position<K>))) Position<K>;
  position->anchor = &anchor;
  if constexpr (Keys::kInline) {
    position->low = low;
  } else if (!low.empty()) {
    auto* bytes = static_cast<char*>(arena_.allocate(low.size()));
    std::memcpy(bytes, low.data(), low.size());
    position->low = {bytes, low.size()};
  }
  return position;
}

template <class K, class V>
void Tree<K, V>::release(Position<K>* position) const {
  if constexpr (!Keys::kInline) {
    if (!position->low.empty())
      arena_.release(const_cast<char*>(position->low.data()), position->low.size());
  }
  arena_.release(position, sizeof *position);
}

/// Rebuilds what DRAM knows of a leaf's entries.
template <class K, class V>
void Tree<K, V>::recover_leaf(Position<K>& at, Leaf<K>& leaf) {
  std::uint64_t visible = 0;
  std::int64_t pairs = 0;
  const auto adopt = [&](unsigned i, Word word, bool counts) {
    std::uint8_t fingerprint = word == kEmpty ? 0 : fingerprint_of(0);
    if (counts) {
      Entry& entry = leaf.block->entries[i];
      const Word key = Code::key(word, at.low);
      fingerprint = fingerprint_of(Keys::hash16_of_word(key));
      visible |= std::uint64_t{1} << i;
      ++pairs;
      // Not durable: pending, frozen and live are the same after a crash.
      if (Code::state(word) != State::live) pm().store(entry.key, with_state<K>(word, State::live));
      count_blobs(word, pm::load(entry.value), +1);
    }
    leaf.fingerprints[i].store(fingerprint, std::memory_order_relaxed);
  };
  for_each_entry<K>(pool(), keys_, *leaf.block, at.low, adopt);
  leaf.visible.store(visible, std::memory_order_relaxed);
  pairs_.add(pairs);
}

template <class K, class V>
void Tree<K, V>::recover() {
  Root& root = checked_root(pool(), pm::load(handle_.root()));
  ledger_.emplace(pool(), root);
  Census<K, V> census(ledger_->named());
  std::vector<Position<K>*> positions;
  Leaf<K>* last = nullptr;
  for_each_anchor<K>(
      pool(), keys_, pm::load(root.first), [&](Anchor& anchor, Block& block, Key low) {
        Position<K>* at = positions.emplace_back(new_position(anchor, low));
        const unsigned capacity = Meta::unpack(pm::load(block.meta)).capacity;
        Leaf<K>* leaf = new_leaf(pool().offset(&block), capacity, nullptr);
        recover_leaf(*at, *leaf);
        at->leaf.store(leaf, std::memory_order_relaxed);
        if (last != nullptr) {
          last->next = at;
          last->end = at->low;
        }
        last = leaf;
        leaves_.add(1);
        if (capacity == kSmallCapacity) small_leaves_.add(1);
        count_blobs(pm::load(anchor.low), 0, +1);
        if (!census.needed()) return;
        census.note(pool().offset(&anchor));
        census.note(pool().offset(&block));
        census.note_entry(pm::load(anchor.low), 0);
        for (std::uint64_t left = leaf->visible_slots(); left != 0; left &= left - 1) {
          const Entry& entry = block.entries[__builtin_ctzll(left)];
          census.note_entry(Code::key(pm::load(entry.key), low), pm::load(entry.value));
        }
      });
  const bool complete = !positions.empty() && pm::load(positions[0]->anchor->low) == 0 &&
                        Code::region(positions.back()->low) ==
                            Code::region(keys_.view(Code::low_of_region(Code::kRegions - 1)));
  if (!complete) throw_corrupt(pool(), "its list of anchors", pm::load(root.first));
  head_ = positions[0];
  top_.build(positions);
  ledger_->settle(census.reached());
}

namespace {

/// Frees the blobs of a block's entries, each with its key word as commit.
template <class K, class V>
void free_entries(pool::PoolCore& pool, const Words<K>& keys, Block& block, View<K> low) {
  // First those that lost are killed, as long as there is something to compare with.
  for_each_entry<K>(pool, keys, block, low, [](unsigned, Word, bool) {});
  const unsigned capacity = Meta::unpack(pm::load(block.meta)).capacity;
  for (unsigned i = 0; i < capacity; ++i) {
    Entry& entry = block.entries[i];
    const Word word = pm::load(entry.key);
    if (Codec<K>::state(word) == State::special) continue;
    alloc::Session session = pool.allocator().session();
    Words<K>::free(session, Codec<K>::key(word, low));
    Words<V>::free(session, pm::load(entry.value));
    session.commit_when(entry.key, kAllBits, Codec<K>::kDead);
    session.log();
    pool.pm().publish(entry.key, Codec<K>::kDead);  // the commit
    session.finish();
  }
}

/// Frees what the ledger names and is not in use, so that what is in use can be freed.
template <class K, class V>
void settle_ledger(pool::PoolCore& pool, const Words<K>& keys, Root& root, Ledger& ledger) {
  Census<K, V> census(ledger.named());
  if (!census.needed()) return;
  for_each_anchor<K>(
      pool, keys, pm::load(root.first), [&](Anchor& anchor, Block& block, View<K> low) {
        census.note(pool.offset(&anchor));
        census.note(pool.offset(&block));
        census.note_entry(pm::load(anchor.low), 0);
        for_each_entry<K>(pool, keys, block, low, [&](unsigned i, Word word, bool counts) {
          if (counts) census.note_entry(Codec<K>::key(word, low), pm::load(block.entries[i].value));
        });
      });
  ledger.settle(census.reached());
}

}  // namespace

template <class K, class V>
void destroy(pool::PoolCore& pool, std::uint64_t& root_word) {
  if (pm::load(root_word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(root_word));
  const Words<K> keys(pool);
  Ledger ledger(pool, root);
  settle_ledger<K, V>(pool, keys, root, ledger);
  for (pm::Offset first = pm::load(root.first); first != pm::kNull; first = pm::load(root.first)) {
    Anchor& anchor = checked_anchor(pool, first);
    Block& block = checked_block(pool, anchor);
    if constexpr (!Words<K>::kInline || !Words<V>::kInline)
      free_entries<K, V>(pool, keys, block, keys.view(pm::load(anchor.low)));
    const pm::Offset next = pm::load(block.next);
    if (next == first) throw_corrupt(pool, "an anchor", next);
    alloc::Session session = pool.allocator().session();
    session.free(pool.offset(&block));
    if (!in_root(root, anchor)) session.free(first);
    Words<K>::free(session, pm::load(anchor.low));
    session.commit_when(root.first, kAllBits, next);
    session.log();
    pool.pm().publish(root.first, next);  // the commit
    session.finish();
  }
  ledger.destroy();
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&root));
  session.commit_when(root_word, kAllBits, pm::kNull);
  session.log();
  pool.pm().publish(root_word, pm::kNull);  // the commit
  session.finish();
}

template Tree<std::uint64_t, std::uint64_t>::Tree(pool::IndexHandle);
template Tree<std::uint64_t, std::uint64_t>::~Tree();
template Position<std::uint64_t>* Tree<std::uint64_t, std::uint64_t>::new_position(Anchor&,
                                                                                   Key) const;
template void Tree<std::uint64_t, std::uint64_t>::release(Position<std::uint64_t>*) const;
template void destroy<std::uint64_t, std::uint64_t>(pool::PoolCore&, std::uint64_t&);
template Tree<std::uint64_t, std::string>::Tree(pool::IndexHandle);
template Tree<std::uint64_t, std::string>::~Tree();
template Position<std::uint64_t>* Tree<std::uint64_t, std::string>::new_position(Anchor&,
                                                                                 Key) const;
template void Tree<std::uint64_t, std::string>::release(Position<std::uint64_t>*) const;
template void destroy<std::uint64_t, std::string>(pool::PoolCore&, std::uint64_t&);
template Tree<std::string, std::uint64_t>::Tree(pool::IndexHandle);
template Tree<std::string, std::uint64_t>::~Tree();
template Position<std::string>* Tree<std::string, std::uint64_t>::new_position(Anchor&, Key) const;
template void Tree<std::string, std::uint64_t>::release(Position<std::string>*) const;
template void destroy<std::string, std::uint64_t>(pool::PoolCore&, std::uint64_t&);
template Tree<std::string, std::string>::Tree(pool::IndexHandle);
template Tree<std::string, std::string>::~Tree();
template Position<std::string>* Tree<std::string, std::string>::new_position(Anchor&, Key) const;
template void Tree<std::string, std::string>::release(Position<std::string>*) const;
template void destroy<std::string, std::string>(pool::PoolCore&, std::uint64_t&);

}  // namespace perdix::index::nbtree
