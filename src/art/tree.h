// An ordered map from keys to pointers: an adaptive radix tree (V. Leis et al., 2013) with
// optimistic lock coupling (2016). SpTree's top layer (sptree paper, §4.1) is one.
//
// Values are pointers to objects that know their key: KeyOf()(value) is the whole key, as
// std::uint64_t or std::string_view, and it must stay readable while a Guard may still see the
// value. Keys are any bytes, up to kMaxKeySize.
//
// Thread-safety: all calls may run concurrently. Each needs an epoch::Guard of the caller, which
// also protects the values returned. Readers write nothing shared. A reader that meets a node whose
// version changed under it starts again; it waits only while a writer is between the few stores of
// a change. An erased or replaced value may be seen by others until a grace period has passed.
//
// Linearizable: insert, upsert, erase, find. The neighbour searches look at several nodes, one
// after the other, each in a consistent state; see find_floor for what that means.
//
// Locks are taken from the root downwards. All but one are taken by upgrade from a version that was
// read, which fails rather than waits; the exception is the child in `collapse`, below two locks
// that are held, whose holder never waits for those.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "art/key.h"
#include "art/memory.h"
#include "art/node.h"
#include "art/ref.h"
#include "epoch/version_lock.h"

namespace perdix::detail::art {

template <class Value, class KeyOf, class Memory = DramMemory>
class Tree {
  static_assert(std::is_pointer_v<Value>);

 public:
  using Key = std::remove_cvref_t<std::invoke_result_t<const KeyOf&, Value>>;

  explicit Tree(Memory memory, KeyOf key_of = {})
      : memory_(std::move(memory)), key_of_(std::move(key_of)) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  /// No other thread may use the tree any more. Values are not touched.
  ~Tree() { clear(); }

  /// False, and nothing changes, if the key is there. key == KeyOf()(value). Throws, and changes
  /// nothing, if memory is out.
  bool insert(Key key, Value value);

  /// Inserts, or replaces the value that the key has; returns the former value, or nullptr if there
  /// was none.
  Value upsert(Key key, Value value);

  /// Removes the key and returns its value, or nullptr if it isn't there. Throws, and changes
  /// nothing, if memory is out: a large node may be replaced by a smaller one.
  Value erase(Key key);

  /// The key's value, or nullptr.
  Value find(Key key) const;

  /// The value of the greatest key <= key; nullptr if there is none. A key that was present during
  /// the whole call is never passed over; one that is inserted during the call may be.
  Value find_floor(Key key) const;

  /// find_floor one node at a time, for callers that search for many keys together: while one
  /// search waits for its node, the others go on. Nothing is validated, which also makes it the
  /// shortest way for one key, but the value is a guess: one that was in the tree, whose key is
  /// usually the greatest <= key. It may be greater than the key, or nullptr: then the caller
  /// searches again. While the tree changes it may be any value: it means nothing until the caller
  /// has validated it. One Guard covers all steps. A key must outlive its search.
  class Lookahead;
  Lookahead look_ahead(Key key) const;

  /// The guess of a search for this key that has ended.
  Value guess(const Lookahead& search, Key key) const;

  /// The value of the greatest key < key, likewise.
  Value find_below(Key key) const;

  /// The value of the smallest key >= key, likewise.
  Value find_ceiling(Key key) const;

  /// The value of the smallest key > key, likewise.
  Value find_above(Key key) const;

  /// Calls fn(value) in ascending order of keys, from the smallest key >= from on, until fn returns
  /// false. Each value was in the tree at some moment of the call, no key comes twice, and none is
  /// left out that was there throughout.
  template <class Fn>
  void scan(Key from, Fn fn) const;

  /// Calls fn(value) for all, as `scan` does.
  template <class Fn>
  void for_each(Fn fn) const;

  bool empty() const noexcept { return root_.load().is_null(); }

  /// Memory of the nodes, in bytes, without what waits for its grace period. Values are not
  /// counted.
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  /// Removes all values. No other thread may use the tree during the call.
  void clear() noexcept;

 private:
  using Traits = KeyTraits<Key>;
  using Head = Header<Key>;
  using Lock = typename Head::Lock;

  // The way from a node to a child, as a reader saw it: valid while the node's version is still the
  // same. The root slot is reached from a separate lock, without a node.
  struct Edge {
    Lock* lock = nullptr;
    typename Lock::Version version = 0;
    Ref node{};
    Entry entry = 0;

    bool valid() const noexcept { return lock->read_validate(version); }
  };

  // Where a node's prefix and the key part.
  struct PrefixStop {
    typename Lock::Version version;  // of the node
    unsigned agreed;                 // bytes of the prefix that the key has too
    Entry other;                     // the byte of the prefix that the key doesn't have
    Prefix<Key> prefix;
    Value witness;  // a value below the node if its key was needed, else nullptr
  };

  // Where the way of a key ends: at a slot with a value (which may have another key), at an empty
  // slot, or at a node whose prefix the key doesn't have.
  struct Stop {
    Edge upper;          // the edge to edge.node
    Edge edge;           // the edge to `ref`
    Ref ref;             // a value or null; or a node if at_prefix()
    unsigned depth = 0;  // bytes of the key that lead to `ref`
    Edge beside;         // the last edge passed that has others on the wanted side; or no lock
    std::optional<PrefixStop> prefix;

    bool at_prefix() const noexcept { return prefix.has_value(); }
  };

  enum class Side { none, before, after };

  class WriteLock;
  template <class Node>
  class Fresh;

  // Reading (tree_search.h). These return false or no value if a version changed, and the caller
  // starts again.
  template <Side kSide>
  bool descend(Key key, Stop& stop) const;
  template <Side kSide>
  static Ref step(Ref ref, const Edge& edge, Stop& stop);
  bool pass_prefix(Ref ref, typename Lock::Version version, Key key, unsigned& depth,
                   Stop& stop) const;
  template <Side kSide>
  std::optional<Value> outermost(const Edge& edge, Ref ref) const;
  template <Side kSide>
  std::optional<Value> outermost_below(const Stop& stop) const;
  template <Side kSide>
  std::optional<Value> next_to(const Edge& edge) const;
  std::optional<Value> try_find(Key key) const;
  std::optional<Value> try_below(Key key, bool or_equal) const;
  std::optional<Value> try_above(Key key, bool or_equal) const;

  // Writing (tree_modify.h), likewise.
  std::optional<Value> try_put(Key key, Value value, bool replace);
  bool set_slot(const Edge& edge, Ref ref);
  bool add_value(const Stop& stop, Ref value);
  bool fork(const Stop& stop, Key key, Value value, Key other);
  bool split_prefix(const Stop& stop, Key key, Value value);
  std::optional<Prefix<Key>> prefix_after_split(const Stop& stop) const;
  std::optional<Value> try_erase(Key key);
  template <class Node>
  bool remove_value(const Stop& stop, Node& node);
  template <class Node>
  bool collapse(const Stop& stop, Node& node);
  template <class Node>
  Ref with_prefix_below(const Node& upper, Entry entry, Ref ref);
  template <class Build>
  bool with_smallest_node(const Prefix<Key>& prefix, Build build);
  template <class To, class From, class Fill>
  bool rebuild(const Stop& stop, From& from, Fill fill);
  template <class Node, class Change>
  bool change(const Stop& stop, Node& node, Change change);
  static Ref ref_of(Value value, Key key, unsigned depth) noexcept;
  void store(const Edge& edge, Ref ref) noexcept;
  template <class Node>
  void retire(Node& node) noexcept;

  [[no_unique_address]] Memory memory_;
  [[no_unique_address]] KeyOf key_of_;
  mutable Lock root_lock_;
  Slot root_;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace perdix::detail::art

#include "art/tree_lookahead.h"  // IWYU pragma: export
#include "art/tree_modify.h"     // IWYU pragma: export
#include "art/tree_scan.h"       // IWYU pragma: export
#include "art/tree_search.h"     // IWYU pragma: export
