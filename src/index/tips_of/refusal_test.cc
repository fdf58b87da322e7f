// Containers that TipsOf must refuse: as they are compiled, by the trial, or when they are opened.
#include <forward_list>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/tips_of/test_containers.h"
#include "index/tips_of/tips_of.h"

namespace perdix::detail::index::tips_of {
namespace {

// --- As they are compiled ------------------------------------------------------------------------

template <class T>
using Vector = std::vector<T, Allocator<T>>;

static_assert(kTipsStorable<Vector<TestNumber>> && kTipsStorable<Vector<TipsString>>);
static_assert(kTipsStorable<Vector<std::tuple<int, std::optional<TipsString>>>>);
static_assert(kTipsStorable<Vector<std::array<std::variant<int, double>, 3>>>);
static_assert(!kTipsStorable<std::vector<int>>, "memory of the process");
static_assert(!kTipsStorable<Vector<std::string>> && !kTipsStorable<Vector<std::vector<int>>>);
static_assert(!kTipsStorable<Vector<std::pair<int, std::string>>>);
static_assert(!kTipsStorable<Vector<std::optional<std::string>>>);
static_assert(!kTipsStorable<Vector<std::unique_ptr<int>>>);
static_assert(!kTipsStorable<Vector<int*>> && !kTipsStorable<Vector<void (*)()>>);
static_assert(!kTipsStorable<Vector<std::string_view>> && !kTipsStorable<Vector<std::span<int>>>);
static_assert(!kTipsStorable<Vector<std::reference_wrapper<int>>>);

struct Virtual {
  virtual ~Virtual() = default;
};
static_assert(!kTipsStorable<Vector<Virtual>>, "leads to a table of the program");

template <class Less>
using Ordered = std::set<int, Less, Allocator<int>>;
static_assert(kTipsStorable<Ordered<std::less<>>>);
static_assert(!kTipsStorable<Ordered<bool (*)(int, int)>>, "leads to a function of the program");
static_assert(!kTipsStorable<Vector<Ordered<std::function<bool(int, int)>>>>);
template <class Hash, class Equal>
using Hashed = std::unordered_set<int, Hash, Equal, Allocator<int>>;
static_assert(kTipsStorable<Hashed<std::hash<int>, std::equal_to<>>>);
static_assert(!kTipsStorable<Hashed<std::size_t (*)(int), std::equal_to<>>>);
static_assert(!kTipsStorable<Hashed<std::hash<int>, bool (*)(int, int)>>);

static_assert(TipsContainer<Vector<TestNumber>>);
static_assert(!TipsContainer<std::forward_list<int, Allocator<int>>>, "has no size()");
static_assert(!TipsContainer<std::array<int, 3>>);

// --- By the trial --------------------------------------------------------------------------------

using Base = Vector<TestNumber>;

/// What is wrong with a container, as its creation says.
template <class C>
std::string refusal(const Pool& pool) {
  try {
    TipsOf<C> opened(pool, "refused");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported) << error.what();
    EXPECT_TRUE(pool.indexes().empty()) << "what was refused is still there";
    return error.what();
  }
  return "nothing";
}

class RefusalTest : public TipsOfTest {
 protected:
  template <class C>
  void expect_refusal(std::string_view reason) {
    const Pool pool = open();
    const std::string message = refusal<C>(pool);
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    expect_sound(pool);
    TipsOf<Base> other(pool, "refused");  // the name is free
    other.write([](Base& base) { base.push_back(1); });
  }
};

/// What the next one keeps: a container that is refused is not destroyed.
std::vector<std::unique_ptr<int>> on_heap;

/// Keeps a part of itself on the heap.
struct OnHeap : Base {
  OnHeap() : part(on_heap.emplace_back(std::make_unique<int>(1)).get()) {}
  int* part;
};

/// Leads to an object of the program, and takes no memory in its place.
int of_the_program = 0;
struct OfProgram : Base {
  int* part = &of_the_program;
};

/// Calls a function whose address another process has elsewhere.
struct ByFunction {
  bool operator()(int a, int b) const { return less(a, b); }
  bool (*less)(int, int) = [](int a, int b) { return a < b; };
};

/// Counts how often it is read.
struct CountsReads : Base {
  auto begin() { return Base::begin(); }
  auto begin() const {
    ++reads;
    return Base::begin();
  }
  mutable std::size_t reads = 0;
};

struct Leaks : Base {
  Leaks() { (void)Allocator<int>().allocate(10); }
  Leaks(Leaks&&) = default;
};

struct WrongSize : Base {
  std::size_t size() const { return Base::size() + 1; }
};

/// Gives back memory that it got elsewhere.
struct GivesOthers : Base {
  GivesOthers() = default;
  GivesOthers(GivesOthers&& other) noexcept : Base(std::move(other)) {}
  ~GivesOthers() {
    static std::uint64_t block[2];
    Allocator<std::uint64_t>().deallocate(block, 2);
  }
};

TEST_F(RefusalTest, MemoryOfTheHeap) { expect_refusal<OnHeap>("which is not in the pool but in"); }
TEST_F(RefusalTest, AnObjectOfTheProgram) {
  expect_refusal<OfProgram>("which is not in the pool but in");
}
TEST_F(RefusalTest, AFunction) {
  expect_refusal<std::set<int, ByFunction, Allocator<int>>>("which is not in the pool but in");
}
TEST_F(RefusalTest, StoresWhileItIsRead) { expect_refusal<CountsReads>("while it is only read"); }
TEST_F(RefusalTest, MemoryThatDoesNotComeBack) {
  expect_refusal<Leaks>("does not give back all memory");
}
TEST_F(RefusalTest, AWrongSize) { expect_refusal<WrongSize>("size() is not the number"); }
TEST_F(RefusalTest, MemoryOfOthersComesBack) {
  expect_refusal<GivesOthers>("memory that it did not get");
}

// --- When they are opened, or changed ------------------------------------------------------------

/// The hash of one process may not be that of the next.
TestNumber hash_seed = 0;
struct SeededHash {
  std::size_t operator()(TestNumber number) const { return util::hash(number) ^ hash_seed; }
};

TEST_F(RefusalTest, AnotherHashFunction) {
  using Set = std::unordered_set<TestNumber, SeededHash, std::equal_to<>, Allocator<TestNumber>>;
  const Pool pool = open();
  TipsOf<Set>(pool, "c").write([](Set& set) { set.insert(1); });
  hash_seed = 5;
  EXPECT_EQ(error_of([&] { TipsOf<Set>(pool, "c"); }), Errc::wrong_kind);
  hash_seed = 0;
  EXPECT_EQ(TipsOf<Set>(pool, "c").size(), 1U);
}

TEST_F(RefusalTest, AnotherTypeOrVersion) {
  const Pool pool = open();
  TipsOf<Base>(pool, "c").write([](Base& base) { base.push_back(1); });
  EXPECT_EQ(error_of([&] { TipsOf<Vector<std::int64_t>>(pool, "c"); }), Errc::wrong_kind);
  EXPECT_EQ(error_of([&] { TipsOf<Base>(pool, "c", 2); }), Errc::wrong_kind);
  EXPECT_EQ(TipsOf<Base>(pool, "c").size(), 1U);
}

/// An address of the program that comes later than the trial.
struct LeadsOutLater : Base {
  const int* part = nullptr;
};

TEST_F(RefusalTest, AnObjectOfTheProgramThatIsStoredLater) {
  const Pool pool = open();
  TipsOf<LeadsOutLater> opened(pool, "c");
  EXPECT_EQ(error_of([&] {
              opened.write([](LeadsOutLater& c) {
                c.part = &of_the_program;
                c.push_back(1);
              });
            }),
            Errc::unsupported);
  EXPECT_EQ(opened.size(), 0U);
}

/// tsl::robin_map leads to an object of the program when it was moved from: it gets memory.
TEST_F(RefusalTest, NoRobinMapThatWasMovedFrom) {
  const Pool pool = open();
  TipsOf<RobinMap::Container> opened(pool, "c");
  opened.write([](auto& map) {
    map[1] = 2;
    const auto away = std::move(map);
  });
  EXPECT_EQ(opened.size(), 0U);
  EXPECT_EQ(opened.read([](const auto& map) { return map.count(1); }), 0U);
}

}  // namespace
}  // namespace perdix::detail::index::tips_of
