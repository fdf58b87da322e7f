// What calls take as keys and values, and what they refuse: mostly when this is compiled.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/papers/elimda.h>
#include <perdix/papers/fastfair.h>
#include <perdix/papers/nbtree.h>
#include <perdix/papers/skiplist.h>
#include <perdix/perdix.h>

namespace perdix {
namespace {

using Number = std::uint64_t;
using String = std::string;

template <class V>
struct Keep {
  Change<V> operator()(std::optional<View<V>>) const { return Change<V>::keep(); }
};

/// How many of the calls of PointIndex compile with a key of type T.
template <class I, class V, class T>
constexpr int kPointCalls = requires(I& i, T key, View<V> value) {
  i.put(key, value);
}
+ requires(I& i, T key, View<V> value) {
  i.insert(key, value);
}
+ requires(I& i, T key, View<V> value) {
  i.update(key, value);
}
+ requires(I& i, T key) {
  i.erase(key);
}
+ requires(I& i, T key) {
  i.get(key);
}
+ requires(I& i, T key, V value) {
  i.get(key, value);
}
+ requires(I& i, T key) {
  i.contains(key);
}
+ requires(I& i, T key) {
  i.update_with(key, Keep<V>());
}
+ requires(I& i, T key) {
  i.compare_exchange(key, {}, {});
};
constexpr int kAllPointCalls = 9;

/// Of those that only ordered indexes and their cursors have.
template <class I, class T>
constexpr int kOrderedCalls = requires(I& i, T key) {
  i.scan(key, std::size_t{1});
}
+ requires(I& i, T key) {
  i.lower_bound(key);
}
+ requires(I& i, T key) {
  i.floor(key);
}
+ requires(I& i, T key) {
  i.after(key);
}
+ requires(I& i, T key) {
  i.before(key);
}
+ requires(I& i, T key) {
  i.range(key);
}
+ requires(I& i, T key) {
  i.range(key, key);
}
+ requires(I& i, T key) {
  i.erase_range(key);
}
+ requires(I& i, T key) {
  i.erase_range(key, key);
}
+ requires(I& i, T key) {
  i.cursor().seek(key);
}
+ requires(I& i, T key) {
  i.cursor().seek_floor(key);
}
+ requires(I& i, T key) {
  i.cursor().seek_below(key);
};
constexpr int kAllOrderedCalls = 12;

/// Of those that take a value of type T.
template <class I, class K, class T>
constexpr int kValueCalls = requires(I& i, View<K> key, T value) {
  i.put(key, value);
}
+ requires(I& i, View<K> key, T value) {
  i.insert(key, value);
}
+ requires(I& i, View<K> key, T value) {
  i.update(key, value);
}
+ requires(I& i, View<K> key, T value) {
  i.compare_exchange(key, value, {});
}
+ requires(I& i, View<K> key, T value) {
  i.compare_exchange(key, {}, value);
};
constexpr int kAllValueCalls = 5;

enum Colour { red, green };
enum class Fruit { apple };
struct Id {
  Number number;
  operator Number() const { return number; }
};
struct Name {
  std::string text;
  operator std::string_view() const { return text; }
};

template <class... T>
struct Types {};
using Integers = Types<int, const int&, long, short, signed char, unsigned char, unsigned, Number,
                       unsigned long long, std::size_t, char32_t, Colour, Id, std::atomic<Number>&,
                       std::integral_constant<int, 7>>;
using NoIntegers = Types<double, float, long double, bool, char, std::nullptr_t, const char*, int*,
                         Fruit, std::byte, String, std::string_view>;
using Strings = Types<const char*, char*, const char (&)[4], char (&)[4], String, const String&,
                      String&, std::string_view, Name>;
using NoStrings = Types<int, long, unsigned, Number, bool, char, double, std::nullptr_t,
                        const unsigned char*, int*, Colour, Fruit, std::vector<char>>;

/// Whether all calls of an index compile with keys of these types; or else none with any of them.
template <class I, class V, class... T>
constexpr bool keys_compile(Types<T...>, bool all) {
  bool as_wanted = (... && (kPointCalls<I, V, T> == (all ? kAllPointCalls : 0)));
  if constexpr (requires(I & i) { i.cursor(); })
    as_wanted = as_wanted && (... && (kOrderedCalls<I, T> == (all ? kAllOrderedCalls : 0)));
  return as_wanted;
}

/// Whether all calls of an index compile with values of these types; or else none with any of them.
template <class I, class K, class... T>
constexpr bool values_compile(Types<T...>, bool all) {
  return (... && (kValueCalls<I, K, T> == (all ? kAllValueCalls : 0)));
}

template <template <class, class> class I, class T, class List>
constexpr bool both_compile(List types, bool all) {
  return keys_compile<I<T, Number>, Number>(types, all) &&
         keys_compile<I<T, String>, String>(types, all) &&
         values_compile<I<Number, T>, Number>(types, all) &&
         values_compile<I<String, T>, String>(types, all);
}

template <template <class, class> class I>
constexpr bool takes_what_fits() {
  return both_compile<I, Number>(Integers(), true) &&
         both_compile<I, Number>(NoIntegers(), false) && both_compile<I, String>(Strings(), true) &&
         both_compile<I, String>(NoStrings(), false);
}

template <class K, class V>
using TipsTable = Tips<tips::Hash, K, V>;
template <class K, class V>
using TipsTree = Tips<tips::BTree, K, V>;

static_assert(takes_what_fits<SpTree>());
static_assert(takes_what_fits<NbTree>());
static_assert(takes_what_fits<FastFair>());
static_assert(takes_what_fits<SkipList>());
static_assert(takes_what_fits<ElimDa>());
static_assert(takes_what_fits<Cceh>());
static_assert(takes_what_fits<TipsTable>());
static_assert(takes_what_fits<TipsTree>());
static_assert(keys_compile<Index, String>(Strings(), true));
static_assert(keys_compile<Index, String>(NoStrings(), false));
static_assert(values_compile<Index, String>(Strings(), true));
static_assert(values_compile<Index, String>(NoStrings(), false));

/// Literals that are null pointers, too, so that no type stands for them.
template <class I>
concept TakesNullKeys = requires(I& i) {
  i.get(0);
}
|| requires(I& i) { i.get(NULL); }
|| requires(I& i) { i.put(0, "value"); }
|| requires(I& i) { i.update_with(0, Keep<String>()); }
|| requires(I& i) { i.scan(0, 1); }
|| requires(I& i) { i.prefix(0); }
|| requires(I& i) { i.prefix(nullptr); }
|| requires(I& i) { i.cursor().seek(0); };
template <class I>
concept TakesNullValues = requires(I& i) {
  i.put("key", 0);
}
|| requires(I& i) { i.put("key", NULL); }
|| requires(I& i) { i.put("key", nullptr); }
|| requires(I& i) { i.compare_exchange("key", 0, std::nullopt); }
|| requires(I& i) { i.compare_exchange("key", std::nullopt, nullptr); };
template <class I>
concept InsertsNullAhead = requires(I& i) {
  i.insert_ahead(0, "value");
}
|| requires(I& i) { i.insert_ahead("key", 0); };
static_assert(!TakesNullKeys<SpTree<String, String>> && !TakesNullValues<SpTree<String, String>>);
static_assert(!TakesNullKeys<Cceh<String, String>> && !TakesNullValues<Cceh<String, String>>);
template <class I, class T>
concept HasPrefix = requires(I& i, T bytes) {
  i.prefix(bytes);
};
static_assert(HasPrefix<SpTree<String, String>, String&> && HasPrefix<Index, const char*>);
static_assert(HasPrefix<SpTree<String, String>, const char*> && HasPrefix<Index, String&>);
static_assert(!HasPrefix<SpTree<String, String>, int> && !HasPrefix<Index, int>);
static_assert(!HasPrefix<SpTree<Number, String>, String&>);
static_assert(!TakesNullKeys<Index> && !TakesNullValues<Index>);
static_assert(!InsertsNullAhead<ElimDa<String, String>> && !InsertsNullAhead<Index>);
static_assert(requires(ElimDa<String, Number> & i) { i.insert_ahead("key", 0); });

template <class V, class T>
concept Stores = requires(T value) {
  Change<V>::store(value);
};
static_assert(Stores<Number, int> && Stores<Number, Colour> && Stores<String, const char*>);
static_assert(Stores<String, String> && Stores<String, const char (&)[3]>);
static_assert(!Stores<Number, double> && !Stores<Number, bool> && !Stores<Number, std::nullptr_t>);
static_assert(!Stores<String, int> && !Stores<String, std::nullptr_t>);
static_assert(![]<class V>(std::optional<V>) {
  return requires { Change<V>::store(0); }
  || requires { Change<V>::store(NULL); };
}(std::optional<String>()));

// They cost what numbers and views do.
static_assert(std::is_trivially_copyable_v<Argument<Number>> && sizeof(Argument<Number>) == 8);
static_assert(std::is_trivially_copyable_v<Argument<String>>);
static_assert(sizeof(Argument<String>) == sizeof(std::string_view));

Number number(Argument<Number> argument) { return argument; }
std::string_view bytes(Argument<String> argument) { return argument; }

struct Record {
  Number narrow : 20;
  static const int kUndefined = 5;  // has no address
};
struct [[gnu::packed]] Packed {
  char first;
  Number number;
  const char* text;
};

TEST(Argument, IsWhatWasPassed) {
  const Record record{77};
  Record changeable{78};
  const Packed packed{'x', 79, "text"};
  EXPECT_EQ(number(record.narrow), 77U);
  EXPECT_EQ(number(changeable.narrow), 78U);
  EXPECT_EQ(number(packed.number), 79U);
  EXPECT_EQ(number(Record::kUndefined), 5U);
  EXPECT_EQ(number(green), 1U);
  EXPECT_EQ(number(Id{80}), 80U);
  EXPECT_EQ(number(std::numeric_limits<Number>::max()), ~Number{0});
  EXPECT_EQ(number(std::numeric_limits<std::int64_t>::max()), ~Number{0} >> 1);
  EXPECT_EQ(number({}), 0U);
  EXPECT_EQ(bytes(packed.text), "text");
  EXPECT_EQ(bytes("text"), "text");
  EXPECT_EQ(bytes({}), "");
  EXPECT_EQ(bytes({"text", 2}), "te");
  EXPECT_EQ(bytes({nullptr, 0}), "");
  const std::string text("a\0b", 3);
  EXPECT_EQ(bytes(text), text);
  EXPECT_EQ(bytes({text.begin(), text.end()}), text);
  EXPECT_EQ(bytes(text).data(), text.data());
}

template <class T>
void expect_refused(T negative) {
  try {
    number(negative);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_EQ(std::string_view(error.what()).find('-'), 0U) << error.what();
  }
}

enum Signed : int { below = -1, above = 1 };

TEST(Argument, RefusesNegativeNumbers) {
  expect_refused(-1);
  expect_refused(std::numeric_limits<std::int64_t>::min());
  expect_refused(static_cast<signed char>(-128));
  expect_refused(below);
  EXPECT_THROW(Change<Number>::store(-1), Error);
  EXPECT_EQ(number(above), 1U);
}

TEST(Argument, IsOptionalInComparisons) {
  const auto passed = [](std::optional<Argument<Number>> argument) { return argument.has_value(); };
  EXPECT_TRUE(passed(1));
  EXPECT_TRUE(passed(std::optional<Number>(1)));
  EXPECT_FALSE(passed(std::optional<Number>()));
  EXPECT_FALSE(passed(std::nullopt));
  EXPECT_FALSE(passed({}));
  const auto text = [](std::optional<Argument<String>> argument) { return argument.has_value(); };
  EXPECT_TRUE(text("text"));
  EXPECT_TRUE(text(std::optional<std::string>("text")));
  EXPECT_FALSE(text(std::optional<std::string_view>()));
}

}  // namespace
}  // namespace perdix
