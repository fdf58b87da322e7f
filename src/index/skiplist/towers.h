// The structure modifications of the list: how a node is added to its levels and removed from them.
//
//   a path to the node's place (Ways::trace), lock(), then insert(), remove() or, of a node that is
//   in the lowest levels only, raise()
//
// Level 0 is the commit. A node is added to level 0 first and then to the levels above, upwards. It
// is removed from the highest level first and from level 0 last. Each level is durable before the
// next one is changed, so at every moment a node is in all levels below one that it is in (L3).
// Otherwise a search that comes down in a node could go on from it on a level that it is not in,
// and what is erased there would stay in that level.
//
// All latches are held throughout: those of the nodes before it, and its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "alloc/session.h"
#include "index/common/pair_count.h"
#include "index/common/value_codec.h"
#include "index/skiplist/ways.h"
#include "pm/persist.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::skiplist {

/// Latches of the nodes before a node, and its own.
using TowerLatches = LatchesHeld<kMaxHeight + 1>;

template <class K>
class Towers {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  /// All outlive this. `seed`: of the hashes that decide on the heights of nodes.
  Towers(Ways<K>& ways, const ValueCodec& values, PairCount& pairs, std::uint64_t seed)
      : ways_(ways), nodes_(ways.nodes()), values_(values), pairs_(pairs), hash_(seed) {}

  /// The height of the node of a key, if the list has as many levels.
  unsigned wanted_height(Key key) const { return height_of_hash(hash_(key)); }

  /// Takes the latches of the nodes before a node on its levels, and its own. Returns false if
  /// these nodes are not in the list any more, or their links are not as the path has them.
  bool lock(TowerLatches& latches, const Path& path, unsigned height, Latch& own,
            Erased& erased) const {
    std::array<Latch*, kMaxHeight + 1> all;
    unsigned count = 0;
    all[count++] = &own;
    for (unsigned level = 0; level < height; ++level) {
      if (level > 0 && path.at[level].before == path.at[level - 1].before) continue;
      all[count++] = &nodes_.latch_of(*path.at[level].before);
    }
    latches.lock_all(std::span(all).first(count));
    return is_unchanged(path, height, erased);
  }

  /// Writes a whole node, which is in no level yet, and flushes it. link_of(level): the offset of
  /// the node to which it leads there.
  template <class LinkOf>
  void fill(Node& node, unsigned height, Pair pair, LinkOf link_of) const {
    std::array<std::uint64_t, offsetof(Node, first) / sizeof(std::uint64_t) + kMaxHeight> words;
    unsigned used = 0;
    for (const std::uint64_t word : {Meta{.height = height}.pack(), pair.key, pair.value})
      words[used++] = word;
    for (unsigned level = 0; level < height; ++level) words[used++] = Link{link_of(level)}.pack();
    pm().copy(&node, words.data(), used * sizeof words[0]);
    pm().flush(&node, used * sizeof words[0]);  // durable before the commit
  }

  /// Adds a node of a key between the neighbours of a path. Throws out_of_space and bad_alloc, and
  /// has changed nothing.
  void insert(const Path& path, unsigned height, const HashedKey<K>& key, NewValue value) {
    alloc::Session session = nodes_.pool().allocator().session();
    const pm::Offset offset = session.reserve(node_bytes(height));
    Node& node = *nodes_.pool().template at<Node>(offset);
    const PairWords words = write_pair(session, nodes_.keys(), values_, key.key, key.hash, value);
    const Pair pair{words.key, words.value};
    fill(node, height, pair, [&](unsigned level) { return nodes_.offset_of(path.at[level].next); });
    const std::uint64_t link = Link{offset}.pack();
    if (pm().commits_as_one()) {
      pm::Changes changes;
      for (unsigned level = 0; level < height; ++level) changes.set(path.link_before(level), link);
      session.commit_as_one(changes.all());
    } else {
      // The node and its strings are durable before the commit.
      session.commit_then(pm::set_word(path.link_before(0), link),
                          [&] { link_tower(path, height, link); });
    }
    pairs_.add();
    nodes_.add_levels(height);
    if (height >= kTall) ways_.add(node);
  }

  /// Removes the node to which a path has led from its levels, and frees it. Its block is freed
  /// after the node has left all levels in PM, and after it was marked for readers that are at it.
  void remove(const Path& path, unsigned height) {
    Node& node = *path.at[0].next;
    const bool had_pair = !is_hollow(node);
    const unsigned linked = linked_levels(path, height);
    alloc::Session session = nodes_.pool().allocator().session();
    session.free(nodes_.pool().offset(&node));
    Keys::free(session, pm::load(node.key));
    values_.free(session, pm::load(node.value));
    const Link behind = load_link(node, 0);
    ways_.remove(node);
    // From here on nothing fails. The mark need not be durable: after a crash no link leads to the
    // node.
    const auto mark = [&] { pm().store(node.first, Link{behind.node, true}.pack()); };
    if (pm().commits_as_one()) {
      pm::Changes changes;
      for (unsigned level = linked; level-- > 0;)
        changes.set(path.link_before(level), load_link(node, level).pack());
      session.commit_as_one(changes.all(), mark);
    } else {
      unlink_tower(path, linked);
      session.commit(pm::set_word(path.link_before(0), behind.pack()), mark);
    }
    if (had_pair) pairs_.remove();
  }

  /// Adds a node that is in the levels below kTall - 1 to all of its others.
  void raise(Node& node) {
    const unsigned height = height_of(node);
    Erased erased;
    for (;;) {
      const Path path = ways_.trace(nodes_.key_of(node), true, height);
      TowerLatches latches;
      if (lock(latches, path, height, nodes_.latch_of(node), erased))
        return link_upper_levels(path, height, node);
      pm::on_step("skiplist: a raise begins again");
    }
  }

 private:
  const pm::Persister& pm() const { return nodes_.pm(); }

  /// Whether the nodes before a node are in the list and their links are as the path has them. The
  /// caller holds their latches.
  bool is_unchanged(const Path& path, unsigned height, Erased& erased) const {
    for (unsigned level = 0; level < height; ++level) {
      const Neighbours& at = path.at[level];
      if (nodes_.is_gone(*at.before, erased)) return false;
      if (load_link(*at.before, level).node != nodes_.offset_of(at.next)) return false;
    }
    return true;
  }

  /// Adds a node that is durable on level 0 to the levels above. The highest one is flushed only:
  /// commit_then() fences before the latches are released. So no node that is added behind this one
  /// on a level is durable there without it.
  void link_tower(const Path& path, unsigned height, std::uint64_t to_node) const {
    for (unsigned level = 1; level < height; ++level) {
      if (level > 1) pm().fence();  // L3: the level below comes first
      std::uint64_t& link = path.link_before(level);
      pm().store(link, to_node);
      pm().flush(&link, sizeof link);
      pm::on_step("skiplist: a node is on one level more");
    }
  }

  /// On how many levels the node is to which a path has led.
  unsigned linked_levels(const Path& path, unsigned height) const {
    unsigned linked = 0;
    while (linked < std::min(height, path.levels) && path.at[linked].next == path.at[0].next)
      ++linked;
    return linked;
  }

  /// Removes a node from the levels above level 0. The lowest of them is flushed only: the commit
  /// fences first.
  void unlink_tower(const Path& path, unsigned linked) const {
    const Node& node = *path.at[0].next;
    for (unsigned level = linked; --level > 0;) {
      std::uint64_t& link = path.link_before(level);
      // Durable before the level below is changed.
      pm().store(link, load_link(node, level).pack());
      pm().flush(&link, sizeof link);
      if (level > 1) pm().fence();  // L3: the level below goes later
      pm::on_step("skiplist: a node is on one level less");
    }
  }

  /// Adds a node to the levels from kTall - 1 on. Each level is durable before the next one is
  /// changed (L3), and all are before the latches are released (as in link_tower()).
  void link_upper_levels(const Path& path, unsigned height, Node& node) {
    constexpr unsigned kFirst = kTall - 1;
    const std::uint64_t link = Link{nodes_.pool().offset(&node)}.pack();
    const auto next = [&](unsigned level) {
      return Link{nodes_.offset_of(path.at[level].next)}.pack();
    };
    if (pm().commits_as_one()) {
      pm::Changes changes;
      for (unsigned level = kFirst; level < height; ++level) {
        changes.set(link_word(node, level), next(level));
        changes.set(path.link_before(level), link);
      }
      pm().commit(changes.all());
    } else {
      for (unsigned level = kFirst; level < height; ++level)
        pm().store(link_word(node, level), next(level));
      pm().flush(&link_word(node, kFirst), (height - kFirst) * sizeof link);  // fenced below
      for (unsigned level = kFirst; level < height; ++level) {
        pm().fence();  // its links, and the level below
        std::uint64_t& before = path.link_before(level);
        pm().store(before, link);
        pm().flush(&before, sizeof before);  // fenced by the next level, or below
        pm::on_step("skiplist: a node is raised by a level");
      }
      pm().fence();  // before the latches are released
    }
    nodes_.add_levels(height);
    ways_.add(node);
  }

  Ways<K>& ways_;
  Nodes<K>& nodes_;
  const ValueCodec& values_;
  PairCount& pairs_;
  const util::SeededHash hash_;
};

}  // namespace perdix::detail::index::skiplist
