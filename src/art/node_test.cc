#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "art/node_edit.h"
#include "art/node_search.h"
#include "util/random.h"

namespace perdix::detail::art {
namespace {

using Model = std::map<Entry, Ref>;

alignas(8) char targets[257 * 8];  // any addresses do

/// Below a larger entry keys go on with any byte, not with a larger one.
Ref target(Entry entry) {
  return Ref::of_value(&targets[8 * (entry + 1)], static_cast<std::uint8_t>(entry * 57));
}

Ref at_or_null(const Model& model, Model::const_iterator it) {
  return it == model.end() ? Ref{} : it->second;
}

Ref before_or_null(const Model& model, Model::const_iterator it) {
  return it == model.begin() ? Ref{} : std::prev(it)->second;
}

template <class Node>
void expect_floor(const Node& node, const Model& model, Entry entry, Entry following) {
  const auto own = model.find(entry);
  const bool leads_on =
      own != model.end() && (entry == kEnd || own->second.least_byte() <= following);
  const Floor floor = floor_in(node, entry, following);
  ASSERT_EQ(floor.exact, leads_on) << entry << ", " << following;
  ASSERT_EQ(floor.ref, leads_on ? own->second : before_or_null(model, model.lower_bound(entry)))
      << entry << ", " << following;
}

template <class Node>
void expect_equal(const Node& node, const Model& model) {
  for (Entry entry = Node::kMayEnd ? kEnd : 0; entry <= 255; ++entry) {
    const auto found = model.find(entry);
    ASSERT_EQ(child(node, entry), at_or_null(model, found)) << entry;
    ASSERT_EQ(next(node, entry), at_or_null(model, model.lower_bound(entry))) << entry;
    ASSERT_EQ(previous(node, entry), before_or_null(model, model.upper_bound(entry))) << entry;
    for (const Entry following : {0, 1, 127, 128, 254, 255})
      expect_floor(node, model, entry, following);
    ASSERT_EQ(has_before(node, entry), !model.empty() && model.begin()->first < entry) << entry;
    ASSERT_EQ(has_after(node, entry), model.upper_bound(entry) != model.end()) << entry;
  }
  ASSERT_EQ(next(node, kEnd), at_or_null(model, model.begin()));
  ASSERT_EQ(next(node, kBeyond), Ref{});
  ASSERT_EQ(previous(node, kBeyond), before_or_null(model, model.end()));
  Model seen;
  for_each_child(node, [&](Entry entry, Ref ref) { seen[entry] = ref; });
  ASSERT_EQ(seen, model);
  ASSERT_EQ(entries(node), model.size());
}

template <class Node>
class NodeTest : public ::testing::Test {};

using AllNodes =
    ::testing::Types<Node2<std::uint64_t>, Node4<std::uint64_t>, Node16<std::uint64_t>,
                     Node48<std::uint64_t>, Node256<std::uint64_t>, Node4<std::string_view>,
                     Node16<std::string_view>, Node48<std::string_view>, Node256<std::string_view>>;
TYPED_TEST_SUITE(NodeTest, AllNodes);

TYPED_TEST(NodeTest, BehavesLikeAMap) {
  constexpr std::uint64_t kSeed = 11;
  util::Random random(kSeed);
  TypeParam node;
  Model model;
  expect_equal(node, model);
  for (int step = 0; step < 2000; ++step) {
    const Entry entry =
        TypeParam::kMayEnd && random.one_in(20) ? kEnd : static_cast<Entry>(random.below(256));
    const bool growing = step % 400 < 200;
    if (model.contains(entry)) {
      if (growing) {
        set(node, entry, target(entry));
      } else {
        remove(node, entry);
        model.erase(entry);
      }
    } else if (growing && (entry == kEnd || !is_full(node))) {
      add(node, entry, target(entry));
      model[entry] = target(entry);
    } else if (!growing && !model.empty()) {
      const Entry victim = model.begin()->first;
      remove(node, victim);
      model.erase(victim);
    }
    if (step % 7 == 0) expect_equal(node, model);
    if (this->HasFatalFailure()) FAIL() << "seed " << kSeed << " step " << step;
  }
}

TYPED_TEST(NodeTest, ReferencesKnowTheLeastByte) {
  using Key = typename TypeParam::KeyType;
  TypeParam node;
  add(node, 200, target(200));
  EXPECT_EQ(ref_to(node).least_byte(), 200);
  add(node, 7, target(7));
  EXPECT_EQ(ref_to(node).least_byte(), 7);
  EXPECT_EQ(ref_to(node).address(), &node);
  EXPECT_EQ(ref_to(node).kind(), TypeParam::kKind);
  if (TypeParam::kMayEnd) {
    add(node, kEnd, target(kEnd));
    EXPECT_EQ(ref_to(node).least_byte(), 0) << "a key ends there";
  }
  Key key{};
  if constexpr (TypeParam::kMayEnd)
    key = "\xff\xfe";
  else
    key = 0xfffe'0000'0000'0000;
  if (TypeParam::kKind == Kind::node2) return;
  node.set_prefix(Prefix<Key>::of(key, 0, 2));
  EXPECT_EQ(ref_to(node).least_byte(), 0xff) << "the prefix comes first";
}

template <class To, class From, class Key>
void expect_copied(const From& from, const Model& model, Key key) {
  To to;
  copy(from, to);
  expect_equal(to, model);
  EXPECT_EQ(to.prefix().length(), 5u);
  EXPECT_EQ(to.prefix().agree(key, 2), 5u);
}

TYPED_TEST(NodeTest, CopiesToEveryKindWithRoom) {
  using Key = typename TypeParam::KeyType;
  if (TypeParam::kCapacity < 4) return;  // below
  TypeParam node;
  Model model;
  for (Entry byte : {0, 127, 128, 255}) {
    add(node, byte, target(byte));
    model[byte] = target(byte);
  }
  if (TypeParam::kMayEnd) {
    add(node, kEnd, target(kEnd));
    model[kEnd] = target(kEnd);
  }
  Key key{};
  if constexpr (TypeParam::kMayEnd)
    key = "0123456789";
  else
    key = 0x0123456789abcdef;
  node.set_prefix(Prefix<Key>::of(key, 2, 5));
  expect_copied<Node4<Key>>(node, model, key);
  expect_copied<Node16<Key>>(node, model, key);
  expect_copied<Node48<Key>>(node, model, key);
  expect_copied<Node256<Key>>(node, model, key);
}

TEST(Node2, IsCopiedToLargerKindsAndBackWithoutAChild) {
  using Key = std::uint64_t;
  Node2<Key> node;
  Model model;
  for (Entry byte : {0, 255}) {
    add(node, byte, target(byte));
    model[byte] = target(byte);
  }
  Node4<Key> larger;
  copy(node, larger);
  EXPECT_EQ(larger.prefix().length(), 0u);
  expect_equal(larger, model);
  add(larger, 7, target(7));
  for (const Entry but : {0, 7, 255}) {
    Model rest = model;
    rest[7] = target(7);
    rest.erase(but);
    Node2<Key> smaller;
    copy(larger, smaller, but);
    expect_equal(smaller, rest);
  }
}

TEST(Prefix, OfIntegers) {
  const std::uint64_t key = 0x0011223344556677;
  const auto prefix = Prefix<std::uint64_t>::of(key, 1, 4);
  EXPECT_EQ(prefix.agree(key, 1), 4u);
  EXPECT_EQ(prefix.agree(key ^ 0xff, 1), 4u);
  EXPECT_EQ(prefix.agree(key ^ (0xffull << 24), 1), 3u);
  EXPECT_EQ(prefix.without_first(2).agree(key, 3), 2u);
  const auto joined =
      Prefix<std::uint64_t>::joined(prefix, 0x55, Prefix<std::uint64_t>::of(key, 6, 1));
  EXPECT_EQ(joined.length(), 6u);
  EXPECT_EQ(joined.agree(key, 1), 6u);
}

TEST(Prefix, OfStringsStopsAtTheKeysEnd) {
  const std::string_view zeros("\0\0\0\0\0\0\0\0\0\0\0\0", 12);
  const auto prefix = Prefix<std::string_view>::of(zeros, 0, 12);
  for (unsigned size = 0; size <= 12; ++size)
    EXPECT_EQ(prefix.agree(zeros.substr(0, size), 0), size);
}

TEST(Prefix, KnowsOnlyTheBytesThatFit) {
  const std::string key(100, 'x');
  const auto prefix = Prefix<std::string_view>::of(key, 10, 80);
  EXPECT_EQ(prefix.length(), 80u);
  EXPECT_EQ(prefix.stored(), 32u);
  EXPECT_EQ(prefix.agree(key, 10), 32u);
  const auto upper = Prefix<std::string_view>::of(key, 0, 20);
  const auto joined = Prefix<std::string_view>::joined(upper, 'x', prefix);
  EXPECT_EQ(joined.length(), 101u);
  EXPECT_EQ(joined.agree(key, 0), 32u);
}

}  // namespace
}  // namespace perdix::detail::art
