// Addresses of the process that a write must not leave, and numbers that only look like them.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "index/tips_of/program_memory.h"
#include "index/tips_of/test_containers.h"
#include "index/tips_of/tips_of.h"

namespace perdix::detail::index::tips_of {
namespace {

template <class T>
using Row = std::vector<T, Allocator<T>>;
template <class T>
using ByNumber = std::map<TestNumber, T, std::less<>, Allocator<std::pair<const TestNumber, T>>>;

// Both lead to a static object while they are empty.
using Flat = UnorderedFlatMap::Container;
using Robin = RobinMap::Container;

// --- Which types are numbers ---------------------------------------------------------------------

enum class Color { red };
struct Point {
  double x;
  std::int16_t tag[3];
};
struct Named {
  TestNumber number;
  const char* name;
};
struct Opaque {
  Opaque() {}  // NOLINT(modernize-use-equals-default): not constexpr
  TestNumber number;
};
static_assert(kTipsPlain<int> && kTipsPlain<double> && kTipsPlain<Color> && kTipsPlain<Point>);
static_assert(kTipsPlain<const std::pair<const int, std::optional<Point>>>);
static_assert(kTipsPlain<std::tuple<std::array<int, 3>, std::variant<int, Point>>>);
static_assert(!kTipsPlain<Named> && !kTipsPlain<int*> && !kTipsPlain<TipsString>);
static_assert(!kTipsPlain<std::pair<int, Named>> && !kTipsPlain<std::optional<Row<int>>>);
static_assert(!kTipsPlain<Opaque>, "nothing is known of it");

// --- Elements that are refused -------------------------------------------------------------------

int a_static_object = 0;

class AddressTest : public TipsOfTest {
 protected:
  /// What a write says that must be refused, and that it has changed nothing.
  template <class C, class Change>
  std::string refused_write(Change change) {
    const Pool pool = open();
    TipsOf<C> opened(pool, "c");
    std::string message = "nothing";
    try {
      opened.write(change);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported) << error.what();
      message = error.what();
    }
    EXPECT_EQ(opened.size(), 0U);
    EXPECT_TRUE(opened.check().ok());
    return message;
  }

  static void expect_in(std::string_view part, const std::string& message) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  template <class C, class Change>
  void expect_refused(std::string_view type, Change change) {
    const std::string message = refused_write<C>(change);
    expect_in("a write() was taken back, since the container 'c' would keep the address 0x",
              message);
    expect_in(", which is not in the pool but in ", message);
    expect_in(", in an object of the type " + std::string(type), message);
    expect_in(
        "Give a container that is empty memory before the write() ends, by reserve(1), and "
        "keep no pointers to what lies outside of the pool (docs/tips-of.md)",
        message);
    std::filesystem::remove(path_);
  }
};

template <class C>
class EmptyElement : public AddressTest {};
using EmptyTypes = ::testing::Types<Flat, Robin>;
TYPED_TEST_SUITE(EmptyElement, EmptyTypes);

template <class Empty>
constexpr std::string_view kNameOf =
    std::is_same_v<Empty, Flat> ? "boost::unordered::unordered_flat_map" : "tsl::robin_map";

TYPED_TEST(EmptyElement, IsRefusedAtEachDepth) {
  using E = TypeParam;
  using Choice = std::variant<TestNumber, E>;
  constexpr std::string_view kName = kNameOf<E>;
  this->template expect_refused<ByNumber<E>>(kName, [](auto& map) { map[1]; });
  this->template expect_refused<Row<E>>(kName, [](auto& row) { row.resize(3); });
  this->template expect_refused<ByNumber<Row<E>>>(kName, [](auto& map) { map[1].resize(1); });
  this->template expect_refused<ByNumber<std::optional<E>>>(kName,
                                                            [](auto& map) { map[1].emplace(); });
  this->template expect_refused<ByNumber<Choice>>(kName,
                                                  [](auto& map) { map[1].template emplace<E>(); });
  this->template expect_refused<ByNumber<std::pair<int, std::tuple<int, E>>>>(
      kName, [](auto& map) { map[1]; });
  this->template expect_refused<ByNumber<std::array<E, 2>>>(kName, [](auto& map) { map[1]; });
}

TYPED_TEST(EmptyElement, IsKeptWithMemoryOfItsOwn) {
  using C = ByNumber<TypeParam>;
  this->die_after([](const Pool& pool) {
    TipsOf<C>(pool, "c").write([](C& map) {
      map[1].reserve(1);
      map[2][5] = 6;
    });
  });
  const Pool pool = this->open();
  TipsOf<C> opened(pool, "c");
  EXPECT_TRUE(opened.check().ok());
  EXPECT_EQ(opened.read([](const C& map) { return map.at(1).size(); }), 0U);
  EXPECT_EQ(opened.read([](const C& map) { return map.at(2).at(5); }), 6U);
}

/// A write sees the words that it changes, so what is no object any more must not look like one.
TYPED_TEST(EmptyElement, IsRefusedWhereOneWasBefore) {
  using C = ByNumber<std::optional<TypeParam>>;
  const Pool pool = this->open();
  TipsOf<C> opened(pool, "c");
  opened.write([](C& map) {
    map[1].emplace();
    map[1].reset();
    map[2].emplace();
    map.erase(2);
  });
  EXPECT_EQ(error_of([&] { opened.write([](C& map) { map[1].emplace(); }); }), Errc::unsupported);
  EXPECT_EQ(error_of([&] { opened.write([](C& map) { map[2].emplace(); }); }), Errc::unsupported);
  EXPECT_FALSE(opened.read([](const C& map) { return map.at(1).has_value(); }));
}

TYPED_TEST(EmptyElement, MayBeThereUntilTheWriteEnds) {
  using C = Row<TypeParam>;
  const Pool pool = this->open();
  TipsOf<C> opened(pool, "c");
  opened.write([](C& row) {
    row.resize(40);
    row.clear();
  });
  opened.write([](C& row) {
    row.resize(3);
    for (auto& element : row) element[1] = 2;
    row.erase(row.begin());
  });
  EXPECT_EQ(opened.size(), 2U);
  EXPECT_EQ(error_of([&] { opened.write([](C& row) { row.resize(3); }); }), Errc::unsupported);
}

TEST_F(AddressTest, OfThePartsOfAProcess) {
  const auto keep = [](const void* address) {
    return [address](auto& map) { map[1].name = static_cast<const char*>(address); };
  };
  const auto on_the_heap = std::make_unique<int>(1);
  const std::vector<char> mapped(std::size_t{1} << 20);
  const int on_the_stack = 0;
  constexpr std::string_view kName = "perdix::detail::index::tips_of::(anonymous namespace)::Named";
  expect_refused<ByNumber<Named>>(kName, keep(&a_static_object));
  expect_refused<ByNumber<Named>>(kName, keep("a literal"));
  expect_refused<ByNumber<Named>>(kName, keep(on_the_heap.get()));
  expect_refused<ByNumber<Named>>(kName, keep(mapped.data()));
  expect_refused<ByNumber<Named>>(kName, keep(&on_the_stack));
  expect_refused<ByNumber<Named>>(kName, keep(reinterpret_cast<const void*>(&::malloc)));
}

/// A container that keeps all of itself in its memory, as one that hides its implementation does.
struct Hidden : Row<TestNumber> {
  void lead_out() { *Allocator<const int*>().allocate(1) = &a_static_object; }
};
TEST_F(AddressTest, InMemoryOfTheContainer) {
  expect_in(", in memory of the container;",
            refused_write<Hidden>([](Hidden& hidden) { hidden.lead_out(); }));
}

// --- Numbers that are kept -----------------------------------------------------------------------

TEST_F(AddressTest, NumbersThatLookLikeOnesAreKept) {
  using C = ByNumber<std::pair<std::optional<TestNumber>, Row<TestNumber>>>;
  const auto number = reinterpret_cast<TestNumber>(&a_static_object);
  const Pool pool = open();
  TipsOf<C> opened(pool, "c");
  opened.write([&](C& map) {
    map[number] = {number, Row<TestNumber>(100, number)};
    map[1].second.assign(3, number);
  });
  EXPECT_EQ(opened.read([&](const C& map) { return map.at(number).second[99]; }), number);
}

/// Of a type that perdix does not know, and the program does.
struct Known : Opaque {};

}  // namespace
}  // namespace perdix::detail::index::tips_of

template <>
inline constexpr bool perdix::kTipsPlain<perdix::detail::index::tips_of::Known> = true;

namespace perdix::detail::index::tips_of {
namespace {

TEST_F(AddressTest, NumbersOfATypeThatTheProgramKnows) {
  const auto number = reinterpret_cast<TestNumber>(&a_static_object);
  const auto store = [&](auto& map) { map[1].number = number; };
  expect_refused<ByNumber<Opaque>>("perdix::", store);
  const Pool pool = open();
  TipsOf<ByNumber<Known>> opened(pool, "c");
  opened.write(store);
  EXPECT_EQ(opened.read([](const auto& map) { return map.at(1).number; }), number);
}

TEST(AddressFilterTest, TellsNumbersFromAddresses) {
  std::vector<char> block(std::size_t{64} << 20);  // mapped, and later than the filter
  const Region pool{1, 2};
  const AddressFilter filter(pool);
  const std::vector<char> later(std::size_t{64} << 20);
  const auto number = [](const void* at) { return reinterpret_cast<std::uint64_t>(at); };
  for (const void* address :
       {static_cast<const void*>(&a_static_object), static_cast<const void*>(&pool),
        static_cast<const void*>(block.data()), static_cast<const void*>(later.data())}) {
    EXPECT_TRUE(filter.may_be_address(number(address))) << address;
    EXPECT_TRUE(is_mapped(number(address))) << address;
    const Region region{number(address), number(address) + 1};
    EXPECT_FALSE(AddressFilter(region).may_be_address(number(address))) << "the pool is left out";
  }
  for (const std::uint64_t small : {0UL, 1UL, 4'194'304UL, 5'000'000UL, ~0UL, 1'700'000'000'000UL})
    EXPECT_FALSE(filter.may_be_address(small)) << small;
  EXPECT_FALSE(is_mapped(0) || is_mapped(1000) || is_mapped(~0UL));
}

TEST(ProcessMemoryTest, WithoutProcIsAllMemory) {
  const auto address = reinterpret_cast<std::uint64_t>(&a_static_object);
  const Region pool{1, 2};
  EXPECT_EQ(ProcessMemory(pool, "/nowhere").at(address), "memory of the process");
  EXPECT_NE(ProcessMemory(pool).at(address), std::nullopt);
  EXPECT_EQ(ProcessMemory(pool).at(1), std::nullopt);
}

// --- Hashes --------------------------------------------------------------------------------------

/// Differs from process to process, as that of Abseil does.
TestNumber seed_of_process = 0;
struct ProcessHash {
  std::size_t operator()(TestNumber number) const { return util::hash(number) ^ seed_of_process; }
};
/// Has a seed that lies in the pool with its container.
struct OwnHash {
  std::size_t operator()(TestNumber number) const { return util::hash(number) ^ seed; }
  static inline TestNumber next = 0;
  TestNumber seed = ++next;
};
template <class Hash>
using Numbers = std::unordered_set<TestNumber, Hash, std::equal_to<>, Allocator<TestNumber>>;

class HashTest : public TipsOfTest {
 protected:
  void SetUp() override { seed_of_process = 0; }

  template <class C, class Change>
  void expect_refused_later(Change change) {
    std::filesystem::remove(path_);
    seed_of_process = 0;
    const Pool pool = open();
    TipsOf<C>(pool, "c").write(change);
    seed_of_process = 5;
    try {
      TipsOf<C>(pool, "c");
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::wrong_kind);
      EXPECT_NE(std::string_view(error.what())
                    .find("a hash function of the container 'c' or of one in its elements gives "
                          "other numbers than when it was created, so elements can't be found; it "
                          "must be the same in each process. Open the container by "
                          "TipsOf::export_only() to copy its elements to another one"),
                std::string_view::npos)
          << error.what();
    }
    auto exported = TipsOf<C>::export_only(pool, "c");
    EXPECT_EQ(exported.size(), 1U);
    const CheckReport report = exported.check();
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.problems.front(),
              "the container, or one in its elements, does not find a key that it shows");
    EXPECT_EQ(error_of([&] { exported.write(change); }), Errc::unsupported);
  }
};

TEST_F(HashTest, ThatDiffersByProcessIsFoundAtEachDepth) {
  using Set = Numbers<ProcessHash>;
  const auto fill = [](Set& set) {
    for (TestNumber i = 0; i < 1000; ++i) set.insert(i);
  };
  expect_refused_later<ByNumber<Set>>([&](auto& map) { fill(map[1]); });
  expect_refused_later<ByNumber<Row<Set>>>([&](auto& map) { fill(map[1].emplace_back()); });
  expect_refused_later<ByNumber<std::optional<Set>>>([&](auto& map) { fill(map[1].emplace()); });
  expect_refused_later<ByNumber<std::variant<int, Set>>>(
      [&](auto& map) { fill(map[1].template emplace<Set>()); });
  expect_refused_later<ByNumber<std::pair<int, std::array<Set, 2>>>>(
      [&](auto& map) { fill(map[1].second[1]); });
  expect_refused_later<Set>([](Set& set) { set.insert(1); });
}

TEST_F(HashTest, OfEachObjectsOwnIsNoHashOfAProcess) {
  using C = ByNumber<Numbers<OwnHash>>;
  const Pool pool = open();
  TipsOf<C>(pool, "c").write([](C& map) { map[1].insert(2); });
  TipsOf<C> opened(pool, "c");
  EXPECT_EQ(opened.read([](const C& map) { return map.at(1).count(2); }), 1U);
  EXPECT_TRUE(opened.check().ok());
}

TEST_F(HashTest, AnExportNeedsAContainer) {
  const Pool pool = open();
  EXPECT_EQ(error_of([&] { TipsOf<Robin>::export_only(pool, "c"); }), Errc::not_found);
  EXPECT_TRUE(pool.indexes().empty());
  TipsOf<Robin>(pool, "c").write([](Robin& map) { map[1] = 2; });
  EXPECT_EQ(error_of([&] { TipsOf<Flat>::export_only(pool, "c"); }), Errc::wrong_kind);
  EXPECT_EQ(TipsOf<Robin>::export_only(pool, "c").size(), 1U);
}

}  // namespace
}  // namespace perdix::detail::index::tips_of
