// A pool with one list in it, whose nodes tests can look at and change.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "index/common/test_pool.h"
#include "index/common/typed.h"
#include "index/skiplist/skiplist.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::skiplist {

template <class K, class V>
using List = TypedEngine<WordList<K>, K, V>;

/// Decides on the heights of nodes, for keys_of_height().
inline constexpr std::uint64_t kTestSeed = 7;

template <class K, class V>
class TestList : public TestPool<TestList<K, V>> {
 public:
  using TestPool<TestList>::core;

  explicit TestList(const SkipListOptions& options = {}) : options_(options) { open(); }

  List<K, V>& operator*() { return *list_; }
  List<K, V>* operator->() { return &*list_; }

  void reopen() {
    this->reopen_pool();
    open();
  }
  void reopen_index() {
    close();
    open();
  }
  void reopen_index(const SkipListOptions& options) {
    options_ = options;
    reopen_index();
  }
  /// From the next opening on.
  void set_options(const SkipListOptions& options) { options_ = options; }

  Node& head() { return checked_head(core(), root_); }

  /// The nodes of a level.
  std::vector<Node*> nodes(unsigned level = 0) {
    std::vector<Node*> found;
    for (Node* node = &head(); load_link(*node, level).node != pm::kNull;) {
      node = &checked_node(core(), load_link(*node, level).node, level);
      found.push_back(node);
    }
    return found;
  }

  /// The node of a key, and the one before it on a level, or the head. The key is there.
  Node& node_of(View<K> key) {
    for (Node* node : nodes()) {
      if (keys().view(node->key) == key) return *node;
    }
    throw std::out_of_range("no node has the key");
  }
  Node& before(View<K> key, unsigned level) {
    Node* before = &head();
    for (Node* node : nodes(level)) {
      if (!(keys().view(node->key) < key)) break;
      before = node;
    }
    return *before;
  }

  bool is_in(View<K> key, unsigned level) {
    for (const Node* node : nodes(level)) {
      if (keys().view(node->key) == key) return true;
    }
    return false;
  }

  /// The list as a crash leaves it that kept a node from its upper levels, or came while the node
  /// was being removed: the node is in `levels` levels.
  void leave_levels(View<K> key, unsigned levels) {
    Node& node = node_of(key);
    for (unsigned level = height_of(node); level-- > levels;) {
      if (is_in(key, level)) link_word(before(key, level), level) = link_word(node, level);
    }
  }

  /// check() finds something that says so.
  void expect_problem(const std::string& text) {
    std::string all;
    for (const std::string& problem : (*list_).check().problems) all += problem + "\n";
    EXPECT_NE(all.find(text), std::string::npos) << "found: " << all;
  }

 private:
  friend class TestPool<TestList>;

  Codec<K> keys() { return Codec<K>(core()); }

  void open() {
    auto handle = core().open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    const std::uint64_t& root = handle.root();
    list_.emplace(std::move(handle), options_, kTestSeed);
    root_ = root;
  }
  void close() { list_.reset(); }

  SkipListOptions options_;
  std::optional<List<K, V>> list_;
  pm::Offset root_ = pm::kNull;
};

using Numbers = TestList<std::uint64_t, std::uint64_t>;
using Strings = TestList<std::string, std::string>;

inline std::string text_of(std::uint64_t i) { return std::string(i % 5, 'p') + std::to_string(i); }

/// The first numbers from `from` on whose nodes have this many levels, if the list has as many
/// already.
inline std::vector<std::uint64_t> keys_of_height(unsigned height, std::size_t count,
                                                 std::uint64_t from = 0) {
  const util::SeededHash hash(kTestSeed);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = from; keys.size() < count; ++key) {
    if (height_of_hash(hash(key)) == height) keys.push_back(key);
  }
  return keys;
}

}  // namespace perdix::detail::index::skiplist
