// The way of a change through write buffers, on homes that are one page each: pages that are
// rewritten in another place, and pages that stay. What real homes do is tested by their engines.
#include "index/common/buffered.h"

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <type_traits>

#include <gtest/gtest.h>

#include "index/common/path_budget.h"
#include "index/common/test_options.h"
#include "pool/test_pool.h"
#include "util/test_directory.h"

namespace perdix::detail::index {
namespace {

using Number = std::uint64_t;

constexpr unsigned kHomes = 4;
constexpr unsigned kCapacity = 40;  // more than a chain is promised when it begins
constexpr Number kKeysOfHome = 1000;
constexpr BufferOptions kBuffered{.dram_budget = 1 << 16, .technique = Technique::b};

struct Pair {
  Word key;
  Word value;
};

struct alignas(64) Page {
  std::uint64_t number;
  std::uint64_t used;
  std::array<Pair, 254> pairs;
};

struct Root {
  std::uint64_t log;
  std::uint64_t numbers;
  std::array<pm::Offset, kHomes> pages;
};

struct PageShape {
  using Node = Home;
  using Slots = NoSlots;
  static constexpr unsigned kPairs = 2 * kCapacity;
  static constexpr unsigned kSlots = 0;
  static constexpr unsigned kNumberBits = 20;
  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

/// A page of the index, by the number of its home.
struct SeenPage {
  unsigned home = 0;
  Latch* latch = nullptr;
  std::uint64_t version = 0;

  bool valid() const { return latch->read_validate(version); }
};

/// What tests decide, and see.
struct Knobs {
  bool has_room = true;     // of pages, for a merge in place
  bool has_numbers = true;  // of pages that stay: of their places
  std::uint64_t note = 0;   // what leads to all homes now
  std::uint64_t asked = 0;  // the last note by which a home was looked for
  unsigned rewritten = 0;
};

/// Pages with buffers in a pool. `kPagesMove`: those of Homes::kMoves.
template <bool kPagesMove>
class Pages {
 public:
  struct Homes {
    using KeyType = Number;
    using Shape = PageShape;
    using Seen = SeenPage;
    using Pair = index::Pair;
    static constexpr const char* kLogName = "the log of a page";
    static constexpr bool kMoves = kPagesMove;
    static constexpr bool kMergeTakesSpace = !kPagesMove;

    Pages& pages;

    static constexpr unsigned capacity() { return kCapacity; }
    pm::Offset place(const Seen& seen) const { return pages.root().pages[seen.home]; }
    std::uint64_t& number_word(const Seen& seen) const { return pages.page(seen.home).number; }
    wal::Owner number(const Seen& seen) const {
      if (kMoves) return number_word(seen);
      return pages.knobs.has_numbers ? place(seen) / pm::kLineSize : wal::kMaxOwner + 1;
    }
    std::uint64_t note(const Seen& seen) const { return pages.knobs.note + seen.home; }
    static Hash16 tag(Word key) { return Codec<Number>::hash16_of_word(key); }
    Seen at(pm::Offset place, std::uint64_t note) const {
      pages.knobs.asked = note;
      for (unsigned home = 0;; ++home) {
        if (pages.root().pages[home] == place) return pages.held(home);
      }
    }
    Seen route(wal::Owner owner, std::uint64_t note) const {
      unsigned home = static_cast<unsigned>(note % kHomes);
      for (unsigned i = 0; !kMoves && i < kHomes; ++i)
        if (pages.root().pages[i] / pm::kLineSize == owner) home = i;
      return pages.look(home);
    }
    bool owns(const Seen& seen, wal::Owner owner) const { return number(seen) == owner; }
    bool has_word(const Seen& seen, Word key) const {
      return pages.value_in_page(seen.home, key).has_value();
    }
    template <class End>
    bool merge_in_place(const Seen& seen, const WriteBuffer<Shape>& buffer, End end) const {
      if (!pages.knobs.has_room) return false;
      for (unsigned i = 0; i < buffer.size(); ++i)
        pages.add_to_page(seen.home, {buffer.key(i), buffer.value(i)});
      end();
      return true;
    }
    void rewrite(LockedHome<Seen>& seen, WriteBuffer<Shape>& buffer, bool) const {
      ++pages.knobs.rewritten;
      const Page old = pages.page(seen.home);
      pages.make_page(seen.home, pages.buffers->draw_number());
      for (unsigned i = 0; i < old.used; ++i) pages.add_to_page(seen.home, old.pairs[i]);
      for (unsigned i = 0; i < buffer.size(); ++i)
        pages.add_to_page(seen.home, {buffer.key(i), buffer.value(i)});
      pages.buffers->leave(buffer);
    }
  };
  using Buffers = Buffered<Homes>;
  using Added = typename Buffers::Added;

  Pages() {
    alloc::Session session = core_->allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Root));
    *core_->at<Root>(offset) = {};
    session.commit(pm::set_word(handle_.root(), offset));
    for (unsigned home = 0; home < kHomes; ++home) make_page(home, 0);
    open(kBuffered);
  }

  void open(const BufferOptions& options) {
    buffers.reset();
    ASSERT_TRUE(has_log(*core_, root().log, true));
    buffers = std::make_unique<Buffers>(
        Homes{*this}, typename Buffers::Parts{*core_, keys_, values_, latches_, pairs_},
        options.technique);
    buffers->open(root().log, buffer_budget(options), &root().numbers);
    buffers->start_resumption(false);
  }

  Root& root() { return *core_->at<Root>(handle_.root()); }
  Page& page(unsigned home) { return *core_->at<Page>(root().pages[home]); }
  SeenPage held(unsigned home) { return {home, &latches_.of(root().pages[home])}; }
  SeenPage look(unsigned home) {
    Latch& latch = latches_.of(root().pages[home]);
    return {home, &latch, latch.read_begin()};
  }

  void make_page(unsigned home, wal::Owner number) {
    alloc::Session session = core_->allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Page));
    auto& made = *core_->at<Page>(offset);
    made.number = number;
    made.used = 0;
    session.commit(pm::set_word(root().pages[home], offset));
  }
  void add_to_page(unsigned home, Pair pair) {
    Page& to = page(home);
    unsigned i = 0;
    while (i < to.used && to.pairs[i].key != pair.key) ++i;
    if (i == to.used) ++to.used;
    to.pairs[i] = pair;
  }
  std::optional<Word> value_in_page(unsigned home, Word key) {
    const Page& in = page(home);
    for (unsigned i = 0; i < in.used; ++i)
      if (in.pairs[i].key == key) return in.pairs[i].value;
    return std::nullopt;
  }

  /// Calls change(home) under the latch of a home whose chain is adopted.
  template <class Change>
  auto locked(unsigned home, Change change) {
    for (;;) {
      const SeenPage seen = look(home);
      LockedHome<SeenPage> to;
      if (buffers->ready(seen) && to.try_lock(seen)) return change(to);
    }
  }
  auto find(unsigned home, Number key) {
    return buffers->find(root().pages[home], key, Homes::tag(key));
  }
  Added add(unsigned home, Number i) {
    const Number key = home * kKeysOfHome + i;
    return locked(
        home, [&](auto& to) { return buffers->add(to, key, NewValue(key + 1), Homes::tag(key)); });
  }
  std::optional<bool> replace(unsigned home, Number i, Number value) {
    const Number key = home * kKeysOfHome + i;
    return locked(home, [&](auto& to) {
      return buffers->replace(to, find(home, key), NewValue(value), nullptr);
    });
  }
  auto* buffer_of(unsigned home) { return buffers->of(root().pages[home]); }

  /// Fills the log, with the chains of the last home, which end again and again.
  void fill_log() {
    constexpr unsigned kLast = kHomes - 1;
    while (add(kLast, 0) != Added::refused) {
      while (find(kLast, kLast * kKeysOfHome) && replace(kLast, 0, 1) == std::optional(true)) {
      }
    }
  }

 private:
  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::filesystem::path path_ = directory_.file("test.pool");
  const std::shared_ptr<pool::PoolCore> core_ =
      pool::PoolCore::create(path_, pool::small_options());
  pool::IndexHandle handle_ = core_->open_index("pages", "none", Kind::u64, Kind::u64);
  const Codec<Number> keys_{*core_};
  const ValueCodec values_{*core_, Kind::u64};
  const Latches latches_{8};
  PairCount pairs_;

 public:
  Knobs knobs;
  std::unique_ptr<Buffers> buffers;
};

using Moving = Pages<true>;
using Staying = Pages<false>;

template <class Kind>
class BufferedPages : public testing::Test {
 protected:
  Kind pages_;
};

using PageKinds = testing::Types<Moving, Staying>;
TYPED_TEST_SUITE(BufferedPages, PageKinds);

TYPED_TEST(BufferedPages, MergeAFullBuffer) {
  using Added = typename TypeParam::Added;
  TypeParam& pages = this->pages_;
  for (Number i = 0; i < kCapacity; ++i) ASSERT_EQ(pages.add(1, i), Added::added);
  EXPECT_EQ(pages.page(1).used, 0U);
  EXPECT_EQ(pages.add(1, kCapacity), Added::merged);
  EXPECT_EQ(pages.page(1).used, kCapacity);
  EXPECT_TRUE(pages.buffer_of(1)->empty_chain());
  EXPECT_EQ(pages.add(1, kCapacity), Added::added);
}

/// Records of updates count, too: four for each pair that the buffer may have.
TYPED_TEST(BufferedPages, BoundAChainByTheCapacity) {
  TypeParam& pages = this->pages_;
  pages.add(0, 0);
  unsigned records = 1;
  while (pages.replace(0, 0, records) == std::optional(true)) ++records;
  EXPECT_LE(records, 4 * kCapacity);
  EXPECT_GE(records, 4 * kCapacity - 1);  // and the note
  EXPECT_EQ(pages.value_in_page(0, 0), std::optional<Word>(records - 1));
}

/// Whatever the log has no room for, its home takes.
TYPED_TEST(BufferedPages, LeaveANewPairToItsHomeIfTheLogIsFull) {
  using Added = typename TypeParam::Added;
  TypeParam& pages = this->pages_;
  constexpr unsigned kPromised = HomeBuffers<PageShape>::kPromise;
  for (Number i = 0; i < kPromised; ++i) ASSERT_EQ(pages.add(0, i), Added::added);
  pages.fill_log();
  pages.knobs.has_room = false;
  EXPECT_EQ(pages.add(0, kPromised), Added::refused);
  EXPECT_EQ(pages.buffer_of(0)->size(), kPromised);
  EXPECT_EQ(pages.knobs.rewritten, 0U);
  EXPECT_TRUE(pages.buffers->agrees_with_chain(*pages.buffer_of(0)));
  for (Number i = 0; i < kPromised; ++i)  // each has its room
    EXPECT_TRUE(
        pages.locked(0, [&](auto&) { return pages.buffers->erase(pages.find(0, i), nullptr); }));
}

/// There is one buffer, for the home that is written to.
TYPED_TEST(BufferedPages, GiveTheBufferOfAColdHomeToAnother) {
  TypeParam& pages = this->pages_;
  pages.open({.dram_budget = 3000, .technique = Technique::b});
  pages.add(0, 1);
  for (Number i = 0; i < 1000 && pages.buffer_of(1) == nullptr; ++i) pages.add(1, i);
  ASSERT_NE(pages.buffer_of(1), nullptr);
  EXPECT_EQ(pages.buffer_of(0), nullptr);
  EXPECT_EQ(pages.buffers->in_use(), 1U);
  EXPECT_EQ(pages.value_in_page(0, 1), std::optional<Word>(2));
}

/// Two buffers come back where the budget has one: the third home that wants one gets none of them,
/// but the one that it would have got is given back.
TYPED_TEST(BufferedPages, HandOnNoBufferBeyondTheBudget) {
  TypeParam& pages = this->pages_;
  for (const unsigned home : {0, 1}) pages.add(home, 5);
  pages.open({.dram_budget = 3000, .technique = Technique::b});
  for (const unsigned home : {0, 1}) pages.locked(home, [](auto&) {});
  ASSERT_EQ(pages.buffers->in_use(), 2U);
  for (Number i = 0; i < 1000 && pages.buffers->in_use() == 2 && pages.buffer_of(2) == nullptr; ++i)
    pages.add(2, i);
  EXPECT_EQ(pages.buffers->in_use(), 1U);
  EXPECT_EQ(pages.buffer_of(2), nullptr);
  EXPECT_EQ(pages.knobs.rewritten, 0U);
}

/// As a merge is done anyway, the buffer need not wait for the upkeep.
TYPED_TEST(BufferedPages, GiveBackAMergedBufferBeyondTheBudget) {
  TypeParam& pages = this->pages_;
  pages.add(0, 5);
  pages.open({.dram_budget = 0, .technique = Technique::b});
  pages.locked(0, [&](auto& home) {
    ASSERT_NE(pages.buffer_of(0), nullptr);
    EXPECT_TRUE(pages.buffers->merge(home, *pages.buffer_of(0)));
  });
  EXPECT_EQ(pages.buffer_of(0), nullptr);
  EXPECT_EQ(pages.value_in_page(0, 5), std::optional<Word>(6));
}

TEST(BufferedStayingPages, WithoutANumberTakeNoBufferFromAnother) {
  Staying pages;
  pages.open({.dram_budget = 3000, .technique = Technique::b});
  pages.add(0, 1);
  pages.knobs.has_numbers = false;
  for (Number i = 0; i < 1000; ++i) ASSERT_EQ(pages.add(1, i), Staying::Added::refused);
  ASSERT_NE(pages.buffer_of(0), nullptr);
  EXPECT_EQ(pages.buffer_of(0)->size(), 1U);
}

TEST(BufferedMovingPages, MergeInPlaceIfTheLogIsFull) {
  Moving pages;
  constexpr unsigned kPromised = HomeBuffers<PageShape>::kPromise;
  for (Number i = 0; i < kPromised; ++i) ASSERT_EQ(pages.add(0, i), Moving::Added::added);
  pages.fill_log();
  EXPECT_EQ(pages.add(0, kPromised), Moving::Added::merged);
  EXPECT_EQ(pages.page(0).used, kPromised);
}

/// A home may change between two chains, so that what led to it leads elsewhere.
TEST(BufferedMovingPages, AreFoundByWhatLedToThemWhenTheirChainBegan) {
  Moving pages;
  pages.add(2, 0);
  EXPECT_TRUE(
      pages.locked(2, [&](auto& home) { return pages.buffers->merge(home, *pages.buffer_of(2)); }));
  pages.knobs.note = 8 * kHomes;
  for (Number i = 1; i < kCapacity; ++i) pages.add(2, i);
  pages.buffers->reclaim_space();
  EXPECT_TRUE(pages.buffer_of(2)->empty_chain());
  EXPECT_EQ(pages.knobs.asked, 8 * kHomes + 2);
}

TEST(BufferedMovingPages, AreWrittenAnewWithoutRoom) {
  Moving pages;
  pages.add(0, 7);
  pages.knobs.has_room = false;
  EXPECT_FALSE(
      pages.locked(0, [&](auto& home) { return pages.buffers->merge(home, *pages.buffer_of(0)); }));
  EXPECT_EQ(pages.knobs.rewritten, 1U);
  EXPECT_EQ(pages.buffer_of(0), nullptr);
  EXPECT_EQ(pages.value_in_page(0, 7), std::optional<Word>(8));
  EXPECT_EQ(pages.buffers->in_use(), 0U);
}

/// An index is opened all the same, and has no buffers.
TEST(HasLog, GivesNoneInAFullPool) {
  const testing_files::TempDirectory directory{testing_files::memory_directory()};
  const auto core = pool::PoolCore::create(directory.file("full.pool"), pool::small_options());
  std::uint64_t& word = core->open_index("full", "none", Kind::u64, Kind::u64).root();
  const auto fill = [&](std::uint64_t bytes) {
    for (;;) {
      alloc::Session session = core->allocator().session();
      session.reserve(bytes);
      session.log();
      session.finish();
    }
  };
  for (const std::uint64_t bytes : {1 << 20, 1 << 12, 64}) EXPECT_THROW(fill(bytes), Error);
  EXPECT_FALSE(has_log(*core, word, true));
  EXPECT_EQ(word, pm::kNull);
}

// --- After a restart ---

/// A crash in a merge has left a pair in both.
TEST(BufferedMovingPages, CompleteAnInterruptedMerge) {
  Moving pages;
  for (const Number i : {1, 2, 3}) pages.add(0, i);
  pages.add_to_page(0, {2, 3});
  pages.open(kBuffered);
  EXPECT_FALSE(pages.find(0, 1));
  EXPECT_FALSE(pages.buffers->ready(pages.look(0)));  // it had a chain
  EXPECT_TRUE(pages.buffers->ready(pages.look(0)));
  EXPECT_EQ(pages.page(0).used, 3U);
  EXPECT_TRUE(pages.buffer_of(0)->empty_chain());
}

TEST(BufferedStayingPages, TakePairsOfAnInterruptedMergeFromTheChain) {
  Staying pages;
  for (const Number i : {1, 2, 3}) pages.add(0, i);
  pages.add_to_page(0, {2, 3});
  pages.open(kBuffered);
  EXPECT_FALSE(pages.buffers->ready(pages.look(0)));
  EXPECT_EQ(pages.page(0).used, 1U);
  EXPECT_FALSE(pages.find(0, 2));
  for (const Number i : {1, 3}) EXPECT_TRUE(pages.find(0, i));
  EXPECT_TRUE(pages.buffers->agrees_with_chain(*pages.buffer_of(0)));
}

/// A crash has come between a page's successor and the END.
TEST(BufferedMovingPages, EndAStaleChain) {
  Moving pages;
  pages.add(0, 1);
  pages.add(1, 1);
  pages.make_page(0, pages.buffers->draw_number());
  pages.add_to_page(0, {1, 2});
  pages.open(kBuffered);
  pages.buffers->require_resumed();
  EXPECT_EQ(pages.buffer_of(0), nullptr);
  EXPECT_EQ(pages.page(0).used, 1U);
  ASSERT_NE(pages.buffer_of(1), nullptr);
  EXPECT_TRUE(pages.find(1, kKeysOfHome + 1));
  pages.open(kBuffered);
  EXPECT_EQ(pages.buffers->log().surviving(1), 0U) << "the END is durable";
}

/// The home loses the buffer, so a merge in place serves, and needs no space.
TYPED_TEST(BufferedPages, GiveBackBuffersBeyondTheBudget) {
  TypeParam& pages = this->pages_;
  for (const unsigned home : {0, 1}) pages.add(home, 5);
  const bool moves = std::is_same_v<TypeParam, Moving>;
  pages.open({.dram_budget = 0, .technique = moves ? Technique::bo : Technique::b});
  pages.buffers->require_resumed();
  EXPECT_EQ(pages.buffers->in_use(), 0U);
  EXPECT_EQ(pages.knobs.rewritten, 0U);
  EXPECT_EQ(pages.value_in_page(0, 5), std::optional<Word>(6));
  EXPECT_EQ(pages.value_in_page(1, kKeysOfHome + 5), std::optional<Word>(kKeysOfHome + 6));
}

}  // namespace
}  // namespace perdix::detail::index
