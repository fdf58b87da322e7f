// Full pools: what was acknowledged finds its space, erases need none, and the parts that see to
// it.
#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "alloc/session.h"
#include "index/tips/fresh_blocks.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/line_set.h"
#include "index/tips/plugins.h"
#include "index/tips/reserve.h"
#include "index/tips/test_tips.h"
#include "pool/pool_core.h"
#include "util/random.h"

namespace perdix::detail::index::tips {
namespace {

template <class Typed>
class FullPool : public TipsTest {
 protected:
  using Index = typename Typed::Index;
  using Key = typename Typed::Key;
  using Value = typename Typed::Value;

  Pool open_small() const {
    PoolOptions options;
    options.plugins = perdix::tips::further_plugins();
    options.max_size = std::uint64_t{16} << 20;
    options.durability = Durability::process;
    return Pool::open_or_create(path_, options);
  }

  /// Puts until there is no space. Notes the acknowledged writes.
  static void fill(Index& index, U64 first, const std::function<void(U64)>& note) {
    try {
      for (U64 i = first;; ++i) {
        index.put(key_of<Key>(i), datum<Value>(i));
        note(i);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
    }
  }
};

TYPED_TEST_SUITE(FullPool, OpenedIndexes);

/// Takes all that is free in a pool behind the back of its indexes, until it gives it back.
class Hog {
 public:
  explicit Hog(pool::PoolCore& pool)
      : pool_(pool), handle_(pool.open_index("hog", "fastfair", Kind::u64, Kind::u64)) {}

  void take_everything() {
    for (std::uint64_t size = alloc::kChunkSize; size >= 16; size -= std::max(size / 3, U64{16})) {
      try {
        for (;;) take(size);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Errc::out_of_space);
      }
    }
  }

  void give_back() {
    while (handle_.root() != 0) {
      alloc::Session session = pool_.allocator().session();
      session.free_unread(handle_.root());
      session.commit(pm::set_word(handle_.root(), *pool_.at<U64>(handle_.root())));
    }
  }

  pm::Offset take(std::uint64_t size) {
    alloc::Session session = pool_.allocator().session();
    const pm::Offset block = session.reserve(size);
    pool_.pm().store(*pool_.at<U64>(block), handle_.root());
    pool_.pm().persist(pool_.at<U64>(block), sizeof(U64));
    session.commit(pm::set_word(handle_.root(), block));
    return block;
  }

 private:
  pool::PoolCore& pool_;
  pool::IndexHandle handle_;
};

/// Keeps the pool's background thread from doing anything, as soon as what it was asked for before
/// is done.
class BusyBackground {
 public:
  explicit BusyBackground(pool::PoolCore& pool)
      : job_(pool.background(), [this] { begun_.count_down(), ended_.wait(); }) {
    job_.request();
    begun_.wait();
  }
  ~BusyBackground() { ended_.count_down(); }

 private:
  std::latch begun_{1}, ended_{1};
  pool::Background::Job job_;
};

// By threads that have no log yet, of keys that need long records, and one after another.
TYPED_TEST(FullPool, TakesEveryErase) {
  const Pool pool = this->open_small();
  {
    Hog hog(*pool.core());
    for (int i = 0; i < 5; ++i) hog.take(std::uint64_t{2} << 20);
  }
  U64 pairs = 0;
  {
    typename TypeParam::Index index(pool, "t");
    std::vector<typename TypeParam::Key> long_keys;
    if constexpr (std::is_same_v<typename TypeParam::Key, std::string>)
      for (char c = 'a'; c < 'e'; ++c) long_keys.push_back(std::string(kMaxKeySize, c));
    for (const auto& key : long_keys) index.put(key, datum<typename TypeParam::Value>(0));
    this->fill(index, 0, [&](U64 i) { pairs = i + 1; });
    EXPECT_GT(pairs, 5000U);
    for (U64 thread = 0; thread < 2 * kLogs; ++thread) {
      std::thread([&] {
        for (U64 i = thread; i < pairs; i += 2 * kLogs)
          ASSERT_TRUE(index.erase(key_of<typename TypeParam::Key>(i)));
      }).join();
    }
    for (const auto& key : long_keys) EXPECT_TRUE(index.erase(key));
    EXPECT_EQ(index.size(), 0U);
    U64 again = 0;
    this->fill(index, 0, [&](U64 i) { again = i + 1; });
    EXPECT_GT(again, pairs / 10 * 9);
  }
  Hog(*pool.core()).give_back();
  EXPECT_TRUE(pool.check().ok());
}

// Whatever else takes the space of the pool: what the logs hold finds its own, also after the
// process has died.
TYPED_TEST(FullPool, ReplaysAcceptedWrites) {
  constexpr U64 kPairs = 2000, kLogged = 700;
  const auto work = [&](const Pool& pool) {
    auto index = std::make_unique<typename TypeParam::Index>(pool, "t");
    for (U64 i = 0; i < kPairs; ++i)
      index->put(key_of<typename TypeParam::Key>(i), datum<typename TypeParam::Value>(i));
    index->size();
    const BusyBackground busy(*pool.core());
    for (U64 i = kPairs; i < kPairs + kLogged; ++i)
      index->put(key_of<typename TypeParam::Key>(i), datum<typename TypeParam::Value>(i));
    for (U64 i = 0; i < kPairs; i += 9)
      EXPECT_TRUE(index->erase(key_of<typename TypeParam::Key>(i)));
    Hog(*pool.core()).take_everything();
    return index;
  };
  const auto expect_all = [](const typename TypeParam::Index& index) {
    for (const bool replayed : {false, true}) {
      for (U64 i = 0; i < kPairs + kLogged; ++i) {
        const bool gone = i < kPairs && i % 9 == 0;
        ASSERT_EQ(index.get(key_of<typename TypeParam::Key>(i)),
                  gone ? std::nullopt : std::optional(datum<typename TypeParam::Value>(i)))
            << i << ' ' << replayed;
      }
      EXPECT_EQ(index.size(), kPairs - (kPairs + 8) / 9 + kLogged);
      EXPECT_EQ(index.pending(), 0U);
    }
  };
  for (const bool dies : {false, true}) {
    std::filesystem::remove(this->path_);
    if (dies) {
      const pid_t child = ::fork();
      if (child == 0) {
        const Pool pool = this->open_small();
        const auto index = work(pool);
        ::kill(::getpid(), SIGKILL);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status)) << "the child has failed";
    } else {
      const Pool pool = this->open_small();
      expect_all(*work(pool));
    }
    const Pool pool = this->open_small();
    Hog(*pool.core()).take_everything();  // before the index is open
    expect_all(typename TypeParam::Index(pool, "t"));
    Hog(*pool.core()).give_back();
    EXPECT_TRUE(pool.check().ok());
  }
}

// Another thread takes what it gets while the logs are replayed.
TYPED_TEST(FullPool, ReplaysBesideAnotherIndexThatTakesAllItGets) {
  constexpr U64 kLogged = 1500;
  const Pool pool = this->open_small();
  {
    typename TypeParam::Index index(pool, "t");
    Hog hog(*pool.core());
    const BusyBackground busy(*pool.core());
    for (U64 i = 0; i < kLogged; ++i)
      index.put(key_of<typename TypeParam::Key>(i), datum<typename TypeParam::Value>(i));
    hog.take_everything();
    std::atomic<bool> done{false};
    std::thread thief([&] {
      while (!done) hog.take_everything();
    });
    EXPECT_EQ(index.size(), kLogged);
    done = true;
    thief.join();
    EXPECT_EQ(index.pending(), 0U);
    for (U64 i = 0; i < kLogged; ++i)
      ASSERT_EQ(index.get(key_of<typename TypeParam::Key>(i)),
                std::optional(datum<typename TypeParam::Value>(i)));
  }
  Hog(*pool.core()).give_back();
  EXPECT_TRUE(pool.check().ok());
}

// --- An operation that finds no room halfway ---

constexpr U64 kBad = 1 << 20;
constexpr U64 kBadLines = 2 * kUndoPerBlock;
const std::byte* bad_lines = nullptr;  // plug-ins know no context

/// A tree of which one put changes more lines than any operation may count on.
struct GreedyPlugin final : PluginOf<BTree<Durable, IntegerKeys>> {
  GreedyPlugin() : PluginOf("btree", Kind::u64) {}
  bool put(void* index, Word key, Word value, Word* old) const override {
    const bool there = PluginOf::put(index, key, value, old);
    for (U64 i = 0; key == kBad && i < kBadLines; ++i)
      undo_log_add(bad_lines + i * pm::kLineSize, pm::kLineSize);
    return there;
  }
};

class BrokenIndex : public TipsTest {
 protected:
  static constexpr U64 kKeys = 100;
  static constexpr Kinds kKinds{Kind::u64, Kind::u64};

  static void put(Core& core, U64 key) {
    const std::string text(Raw<U64>(key).bytes());
    core.write(Operation::put, text, text, nullptr, nullptr);
  }
  static bool has(Core& core, U64 key) {
    const std::string text(Raw<U64>(key).bytes());
    return core.get(text, [](std::string_view) {});
  }

  PoolOptions options_ = [] {
    PoolOptions options;
    options.max_size = std::uint64_t{16} << 20;
    options.durability = Durability::process;
    return options;
  }();
};

TEST_F(BrokenIndex, IsWholeWhenReopened) {
  const Pool pool = Pool::create(path_, options_);
  Hog hog(*pool.core());
  bad_lines = pool.core()->at<std::byte>(hog.take(kBadLines * pm::kLineSize));
  const auto handle = pool.core()->open_index("t", "tips:btree", Kind::u64, Kind::u64);
  {
    const GreedyPlugin greedy;
    Core core(*pool.core(), handle.root(), greedy, kKinds, Settings{});
    for (U64 key = 0; key < kKeys; ++key) put(core, key);
    core.catch_up();
    const BusyBackground busy(*pool.core());
    put(core, kBad);
    hog.take_everything();
    for (int i = 0; i < 2; ++i) {
      try {
        core.catch_up();
        ADD_FAILURE() << "the undo log grows in a full pool";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::out_of_space);
      }
    }
    EXPECT_THROW(has(core, kKeys), Error);
  }
  Core core(*pool.core(), handle.root(), *look_up_plugin("btree", Kind::u64), kKinds, Settings{});
  for (U64 key = 0; key < kKeys; ++key) EXPECT_TRUE(has(core, key));
  EXPECT_EQ(core.size(), kKeys + 1);
  EXPECT_TRUE(has(core, kBad));
  EXPECT_TRUE(core.check().ok());
  hog.give_back();
}

// --- The parts that keep space and memory ---

TEST(LineSetTest, FindsRoomForWhatWasAnnounced) {
  LineSet set;
  std::set<pm::Offset> model;
  util::Random random(1);
  for (int round = 0; round < 50; ++round) {
    const std::size_t count = random.below(100);
    set.make_room(count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(set.has_room());
      const pm::Offset line = 16 * (64 + random.below(12'000));
      EXPECT_EQ(set.contains(line), model.count(line) != 0);
      EXPECT_EQ(set.insert(line), model.insert(line).second);
    }
    if (round % 20 == 19) set.clear(), model.clear();
  }
}

TEST(FreshBlocksTest, AreFoundByWhatLiesInThem) {
  FreshBlocks blocks;
  const std::vector<FreshBlocks::Block> large = {{1 << 20, 300}, {5 << 20, 100}, {3 << 20, 64}};
  for (const FreshBlocks::Block& block : large) blocks.make_room(), blocks.add(block, false);
  blocks.make_room();
  blocks.add({1280, 48}, true);
  for (const auto& [offset, bytes] : large) {
    EXPECT_EQ(blocks.end_of_large(offset), offset + bytes);
    EXPECT_EQ(blocks.end_of_large(offset + bytes - 1), offset + bytes);
    EXPECT_EQ(blocks.end_of_large(offset + bytes), pm::kNull);
    EXPECT_EQ(blocks.end_of_large(offset - 1), pm::kNull);
    EXPECT_FALSE(blocks.has_small(offset));
  }
  EXPECT_TRUE(blocks.has_small(1280));
  EXPECT_EQ(blocks.end_of_large(1280), pm::kNull);
  EXPECT_EQ(blocks.all().size(), 4U);
  blocks.clear();
  EXPECT_FALSE(blocks.has_small(1280));
  EXPECT_EQ(blocks.end_of_large(1 << 20), pm::kNull);
  EXPECT_TRUE(blocks.all().empty());
}

class ReserveTest : public TipsTest {
 protected:
  static constexpr U64 kSmall = 48;
  static constexpr U64 kInASpan = alloc::kSizeClasses[alloc::size_class_of(kSmall)].blocks;

  static Need need(U64 bytes, unsigned count) {
    Need need;
    need.add(bytes, count);
    return need;
  }
  static void settle(Reserve& reserve, const Need& need) { Reserve::Settling(reserve).add(need); }
  /// What is left when nothing is spare.
  static U64 spans(Reserve& reserve) {
    reserve.release_spare();
    return reserve.claim().spans();
  }

  Pool pool_ = open();
  const pool::IndexHandle handle_ =
      pool_.core()->open_index("t", "tips:btree", Kind::u64, Kind::u64);
  U64& noted_ = pool_.core()->claim_of(handle_.root());
};

TEST_F(ReserveTest, HasASpanForEachClassAndWhatFillsIt) {
  Reserve reserve(*pool_.core(), noted_);
  {
    const Reserve::Admission admission(reserve, need(kSmall, 1));
    EXPECT_TRUE(admission);
    EXPECT_EQ(spans(reserve), 1U);
  }
  EXPECT_EQ(spans(reserve), 0U);
  for (U64 i = 0; i <= kInASpan; ++i) {
    Reserve::Admission admission(reserve, need(kSmall, 1));
    EXPECT_TRUE(admission);
    admission.keep();
    EXPECT_EQ(spans(reserve), i < kInASpan ? 1U : 2U) << i;
  }
  {
    const Reserve::Admission other(reserve, need(1000, 1));
    EXPECT_EQ(spans(reserve), 3U);
  }
  EXPECT_EQ(spans(reserve), 2U);
  settle(reserve, need(kSmall, 1));
  EXPECT_EQ(spans(reserve), 1U);
  settle(reserve, need(kSmall, kInASpan));
  EXPECT_EQ(spans(reserve), 0U);
}

TEST_F(ReserveTest, HasTheSpansOfALargeBlock) {
  Reserve reserve(*pool_.core(), noted_);
  const Need large = need(2 * alloc::kSpanSize + 1, 1);
  for (unsigned i = 1; i <= 4; ++i) {
    Reserve::Admission admission(reserve, large);
    EXPECT_TRUE(admission);
    admission.keep();
    EXPECT_EQ(spans(reserve), 3 * i);
  }
  settle(reserve, large);
  EXPECT_EQ(spans(reserve), 9U);
  EXPECT_FALSE(Reserve::Admission(reserve, need(alloc::kSpanSize, 17)));
  reserve.admit_logged(need(alloc::kSpanSize, 17));  // it was written through
  for (unsigned i = 0; i < 3; ++i) settle(reserve, large);
  EXPECT_EQ(spans(reserve), 0U);
}

TEST_F(ReserveTest, HasAsManySpansAsWritesNeed) {
  Reserve reserve(*pool_.core(), noted_);
  Reserve::Admission admission(reserve, need(kSmall, 1000 * kInASpan));
  EXPECT_TRUE(admission);
  admission.keep();
  EXPECT_EQ(spans(reserve), 1000U);
  EXPECT_EQ(noted_, 1000U);
  reserve.release_all();
  EXPECT_EQ(reserve.claim().spans(), 0U);
  EXPECT_EQ(noted_, 0U);
}

TEST_F(ReserveTest, AdmitsPutsThatNeedTheSameTogether) {
  Reserve reserve(*pool_.core(), noted_);
  const Need put = need(kSmall, 2);
  constexpr U64 kPuts = 1000;
  for (U64 i = 0; i < kPuts; ++i) {
    Reserve::Admission admission(reserve, put, true);
    ASSERT_TRUE(admission);
    admission.keep();
  }
  const auto filled = [&](U64 puts) { return (2 * puts + kInASpan - 1) / kInASpan; };
  reserve.release_spare(put);
  EXPECT_EQ(reserve.claim().spans(), filled(kPuts)) << "not for those that did not come";
  for (U64 i = 0; i < kPuts; ++i) settle(reserve, put);
  EXPECT_EQ(spans(reserve), 0U);
}

TEST_F(ReserveTest, NotesWhatTheNextOpeningKeeps) {
  {
    Reserve reserve(*pool_.core(), noted_);
    Reserve::Admission admission(reserve, need(kSmall, 3 * kInASpan));
    admission.keep();
    EXPECT_GE(noted_, 3U) << "before the put is logged";
    EXPECT_EQ(spans(reserve), 3U);
  }
  Reserve reserve(*pool_.core(), noted_);
  EXPECT_EQ(reserve.claim().spans(), 3U);
  reserve.admit_logged(need(kSmall, 2 * kInASpan));
  EXPECT_EQ(spans(reserve), 2U);
  EXPECT_EQ(noted_, 2U);
}

TEST(TipsNeed, GivesTheSmallestBlockThatIsLargeEnough) {
  Need need;
  need.add(100, 2);
  need.add(40, 1);
  need.add(2 * alloc::kSpanSize, 1);
  EXPECT_EQ(need.spans(), 2U);
  EXPECT_EQ(need.take(40), 40U);
  EXPECT_EQ(need.take(40), 100U);
  EXPECT_EQ(need.take(101), 2 * alloc::kSpanSize);
  EXPECT_EQ(need.take(100), 100U);
  EXPECT_EQ(need.take(1), 0U);
}

}  // namespace
}  // namespace perdix::detail::index::tips
