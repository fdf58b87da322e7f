// The plug-ins whose readers take no lock, without the framework: several writers, each with its
// own keys, while others read. What is freed lasts to the end, as in a pool while a Guard lives.
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/tips/test_tips.h"
#include "plugins/art.h"
#include "plugins/clht.h"
#include "plugins/lfbst.h"
#include "plugins/lfhash.h"
#include "util/random.h"
#include "util/test_eventually.h"

namespace perdix::detail::index::tips {
namespace {

using perdix::tips::plugins::Art;
using perdix::tips::plugins::Clht;
using perdix::tips::plugins::LfBst;
using perdix::tips::plugins::LfHash;

/// Memory that is given back by release() only.
struct Kept : Volatile {
  static void free(void* block) {
    const std::lock_guard lock(mutex);
    freed.push_back(block);
  }
  static void release() {
    for (void* const block : freed) Volatile::free(block);
    freed.clear();
  }
  static inline std::mutex mutex;
  static inline std::vector<void*> freed;
};

/// Numbers as strings, of which some are the beginnings of others.
struct NestedKeys : StringKeys {
  static Word word(Word number) {
    static const std::vector<std::string> all = [] {
      std::vector<std::string> strings;
      for (Word i = 0; i < kNumbers; ++i) strings.push_back(bytes_of(i));
      return strings;
    }();
    return reinterpret_cast<Word>(all[number].data());
  }
  static constexpr Word kNumbers = 4096;

 private:
  /// Length and bytes as Bytes has them: digits from 0 to 3, of which each string is one number's.
  static std::string bytes_of(Word number) {
    std::string digits;
    for (Word rest = number; rest > 0; rest = (rest - 1) / 4)
      digits.push_back(static_cast<char>((rest - 1) % 4));
    const std::uint64_t size = digits.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof size) + digits;
  }
};

/// Numbers that lie close together.
struct DenseKeys : IntegerKeys {
  static constexpr Word kNumbers = 4096;
  static Word word(Word number) { return number * 3; }
};

template <class Index_, class Keys_>
struct Case {
  using Index = Index_;
  using Keys = Keys_;
};

template <class Case>
class ConcurrentIndex : public ::testing::Test {
 protected:
  using Keys = typename Case::Keys;
  static constexpr unsigned kWriters = 3;
  static constexpr Word kStable = 4;  // each number that this divides has its pair all the time

  ~ConcurrentIndex() override { Kept::release(); }

  static bool is_stable(Word number) { return number % kStable == 0; }

  /// A value says whose it is.
  static Word value_of(Word number, Word version) { return number + version * Keys::kNumbers; }

  void fill() {
    Word old = 0;
    for (Word number = 0; number < Keys::kNumbers; number += kStable)
      index_.put(Keys::word(number), value_of(number, 0), old);
  }

  /// Writes numbers that are `writer` modulo kWriters, and remembers what they should have.
  void write(unsigned writer, std::map<Word, Word>& model) {
    util::Random random(writer);
    Word old_key = 0, old = 0;
    for (Word i = 1; i < 60'000; ++i) {
      const Word number = random.below(Keys::kNumbers / kWriters) * kWriters + writer;
      if (is_stable(number) || random.one_in(2)) {
        index_.put(Keys::word(number), value_of(number, i), old);
        model[number] = value_of(number, i);
      } else {
        EXPECT_EQ(index_.erase(Keys::word(number), old_key, old), model.erase(number) > 0);
      }
    }
  }

  void find_some(Word seed) const {
    util::Random random(seed);
    for (int i = 0; i < 2000; ++i) {
      const Word number = random.below(Keys::kNumbers);
      Word value = number;
      const bool found = index_.find(Keys::word(number), value);
      ASSERT_EQ(value % Keys::kNumbers, number);
      ASSERT_TRUE(found || !is_stable(number)) << number;
    }
  }

  /// Shows all pairs, and expects each stable number once, and no other twice.
  void show_all() const {
    std::map<Word, unsigned> shown;
    const auto count = [](void* context, Word, Word value) {
      return ++(*static_cast<std::map<Word, unsigned>*>(context))[value % Keys::kNumbers] > 0;
    };
    if constexpr (requires { index_.scan(nullptr, nullptr, nullptr); }) {
      index_.scan(nullptr, &shown, count);
    } else {
      for (std::uint64_t position = 0; (position = index_.walk(position, &shown, count)) != 0;) {
      }
    }
    for (const auto& [number, times] : shown) ASSERT_EQ(times, 1U) << number;
    for (Word number = 0; number < Keys::kNumbers; number += kStable)
      ASSERT_EQ(shown.count(number), 1U) << number;
  }

  typename Case::Index index_;
};

using Cases = ::testing::Types<
    Case<Art<Kept, DenseKeys>, DenseKeys>, Case<Art<Kept, NestedKeys>, NestedKeys>,
    Case<Clht<Kept, DenseKeys>, DenseKeys>, Case<Clht<Kept, NestedKeys>, NestedKeys>,
    Case<LfHash<Kept, DenseKeys>, DenseKeys>, Case<LfHash<Kept, NestedKeys>, NestedKeys>,
    Case<LfBst<Kept, DenseKeys>, DenseKeys>, Case<LfBst<Kept, NestedKeys>, NestedKeys>>;
TYPED_TEST_SUITE(ConcurrentIndex, Cases);

TYPED_TEST(ConcurrentIndex, IsReadWhileItIsWritten) {
  using K = typename TestFixture::Keys;
  this->fill();
  std::vector<std::map<Word, Word>> models(this->kWriters);
  for (Word number = 0; number < K::kNumbers; number += this->kStable)
    models[number % this->kWriters][number] = this->value_of(number, 0);
  std::atomic<unsigned> writing{this->kWriters};
  std::vector<std::thread> threads;
  for (unsigned writer = 0; writer < this->kWriters; ++writer)
    threads.emplace_back([&, writer] { this->write(writer, models[writer]), --writing; });
  Word rounds = 0;
  for (; writing > 0; ++rounds) this->find_some(rounds), this->show_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(rounds, 0U);
  std::map<Word, Word> expected;
  for (const auto& model : models)
    for (const auto& [number, value] : model) expected[K::word(number)] = value;
  Everything everything;
  EXPECT_TRUE(this->index_.inspect(everything));
  EXPECT_EQ(everything.pairs, expected);
  Word old_key = 0, old = 0;
  for (const auto& [key, value] : expected) EXPECT_TRUE(this->index_.erase(key, old_key, old));
  EXPECT_EQ(this->index_.size(), 0U);
  everything = {};
  EXPECT_TRUE(this->index_.inspect(everything));
  for (void* const node : everything.nodes) Kept::free(node);
}

// So its table, or its tree, goes now and then while others put pairs.
TYPED_TEST(ConcurrentIndex, IsEmptiedWhileItIsWritten) {
  using K = typename TestFixture::Keys;
  constexpr Word kRounds = 1500, kMaxKeys = 40;  // what a writer puts, and then erases again
  const auto write = [&](unsigned writer) {
    util::Random random(writer);
    const auto key = [&](Word i) { return K::word(i * this->kWriters + writer); };
    Word old_key = 0, old = 0;
    for (Word round = 0; round < kRounds; ++round) {
      const Word count = 1 + random.below(kMaxKeys);
      for (Word i = 0; i < count; ++i) ASSERT_FALSE(this->index_.put(key(i), round, old));
      for (Word i = 0; i < count; ++i)
        ASSERT_TRUE(this->index_.find(key(i), old) && old == round) << i << ' ' << round;
      for (Word i = 0; i < count; ++i) ASSERT_TRUE(this->index_.erase(key(i), old_key, old));
      ASSERT_FALSE(this->index_.find(key(0), old)) << round;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned writer = 0; writer < this->kWriters; ++writer) threads.emplace_back(write, writer);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(this->index_.size(), 0U);
  Everything everything;
  EXPECT_TRUE(this->index_.inspect(everything));
  EXPECT_TRUE(everything.pairs.empty());
  for (void* const node : everything.nodes) Kept::free(node);
}

template <class Case>
class OrderedPlugin : public ConcurrentIndex<Case> {};
using OrderedCases =
    ::testing::Types<Case<Art<Kept, DenseKeys>, DenseKeys>, Case<Art<Kept, NestedKeys>, NestedKeys>,
                     Case<LfBst<Kept, DenseKeys>, DenseKeys>,
                     Case<LfBst<Kept, NestedKeys>, NestedKeys>>;
TYPED_TEST_SUITE(OrderedPlugin, OrderedCases);

// From each key on, whether it is there or not, and up to it.
TYPED_TEST(OrderedPlugin, FindsTheNeighboursOfEachKey) {
  using K = typename TestFixture::Keys;
  this->fill();
  const auto less = [](Word a, Word b) { return K::less(a, b); };
  std::map<Word, Word, decltype(less)> model(less);
  for (Word number = 0; number < K::kNumbers; number += this->kStable)
    model[K::word(number)] = this->value_of(number, 0);
  for (Word number = 0; number < K::kNumbers; ++number) {
    const Word from = K::word(number);
    std::vector<Word> shown, expected;
    this->index_.scan(&from, &shown, [](void* context, Word key, Word) {
      auto& keys = *static_cast<std::vector<Word>*>(context);
      keys.push_back(key);
      return keys.size() < 3;
    });
    for (auto at = model.lower_bound(from); at != model.end() && expected.size() < 3; ++at)
      expected.push_back(at->first);
    ASSERT_EQ(shown, expected) << number;
    for (const bool strictly : {false, true}) {
      const auto end = strictly ? model.lower_bound(from) : model.upper_bound(from);
      Word key = 0, value = 0;
      ASSERT_EQ(this->index_.find_last(from, strictly, key, value), end != model.begin());
      if (end != model.begin()) {
        ASSERT_EQ(key, std::prev(end)->first);
        ASSERT_EQ(value, std::prev(end)->second);
      }
    }
  }
  Everything everything;
  EXPECT_TRUE(this->index_.inspect(everything));
  for (void* const node : everything.nodes) Kept::free(node);
}

// --- What takes a certain moment ---

/// Memory that may be short, and whose changes a test hears of.
struct Watched : Kept {
  static void* allocate(std::size_t bytes) {
    if (short_of_memory) throw std::bad_alloc();
    return Kept::allocate(bytes);
  }
  static void add(const void* p, std::size_t) {
    if (on_change) on_change(p);
  }
  static inline bool short_of_memory = false;
  static inline std::function<void(const void*)> on_change;
};

// The last erase has closed the table and found it empty. A put that comes now must not use it.
TEST(ClhtThatIsEmptied, GivesALatePutANewTable) {
  Clht<Watched, IntegerKeys> index;
  const void* const first_table = &index;  // its first member leads to the table
  Word old_key = 0, old = 0;
  constexpr Word kPairs = 30, kLate = 100;
  for (Word key = 0; key < kPairs; ++key) index.put(key, key, old);
  Watched::short_of_memory = true;  // so the table stays as large as it is
  for (Word key = 1; key < kPairs; ++key) index.erase(key, old_key, old);
  std::thread late;
  std::atomic<unsigned> tries{0};
  std::atomic<bool> done{false};
  Watched::on_change = [&, eraser = std::this_thread::get_id()](const void* changed) {
    if (std::this_thread::get_id() != eraser) {
      ++tries;
      return;
    }
    if (changed != first_table || late.joinable()) return;
    Watched::short_of_memory = false;
    late = std::thread([&] {
      Word none = 0;
      index.put(kLate, kLate, none);
      done = true;
    });
    util::eventually(
        "the late put has tried three times, or is done", [&] { return tries >= 3 || done; },
        [&] { return std::to_string(tries.load()) + " tries"; });
  };
  index.erase(0, old_key, old);
  ASSERT_TRUE(late.joinable()) << "no table was given up";
  late.join();
  Watched::on_change = nullptr;
  EXPECT_TRUE(index.find(kLate, old));
  EXPECT_EQ(index.size(), 1U);
  Everything everything;
  EXPECT_TRUE(index.inspect(everything));
  for (void* const node : everything.nodes) Kept::free(node);
  Kept::release();
}

}  // namespace
}  // namespace perdix::detail::index::tips
