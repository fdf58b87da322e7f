// Which containers TipsOf makes durable: their allocator, what their elements may be, and what the
// library asks of a container's type.
//
// Programs use TipsAllocator and TipsString, and may say more of their own types by kTipsStorable,
// kTipsPlain and TipsSample. <perdix/tips_of.h> includes this.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace perdix {

namespace detail::index::tips_of {

/// Memory of the container that this thread writes to. Throws invalid_argument outside of a write.
void* allocate(std::size_t bytes);
void deallocate(void* block, std::size_t bytes) noexcept;
/// Clears what may be addresses of the process where an object of the container was.
void forget(void* object, std::size_t bytes) noexcept;

/// Words of a container that are addresses of this process, unless something explains them: a
/// number may be any, and bytes outside of objects mean nothing.
class Suspects {
 public:
  struct Word {
    std::uint64_t* at;
    const char* type = nullptr;  ///< of the innermost object that has it; null: none is known
    bool explained = false;
  };

  explicit Suspects(std::vector<Word> words);

  /// Numbers lie here, which explain each word that has a part of them.
  void number(const void* begin, std::size_t bytes);
  /// No object lies here: clears the words that lie within.
  void dead(const void* begin, std::size_t bytes);
  /// An object of this type lies here.
  void object(const void* begin, std::size_t bytes, const char* type);

  const std::vector<Word>& words() const { return words_; }

 private:
  template <class Act>
  void for_each_in(const void* begin, std::size_t bytes, Act act);

  std::vector<Word> words_;  // ascending
};

/// A container's type, as the library sees it.
struct ContainerType {
  const char* name;           ///< as the compiler has it
  std::uint64_t fingerprint;  ///< of name, sizes, standard library and the caller's version
  std::size_t bytes;

  void (*construct)(void* container);
  void (*destroy)(void* container);
  /// Where a container without elements leads to an object of the program, as tsl::robin_map does:
  /// has it take memory from its allocator, if it can.
  void (*settle)(void* container);
  /// Adds this number of elements.
  void (*fill)(void* container, unsigned count);
  /// Moves the container away and back, erases an element and adds one.
  void (*exercise)(void* container);
  void (*clear)(void* container);
  /// Its elements, as an iteration shows them; false if size() tells another number.
  bool (*count)(const void* container, std::uint64_t& count);
  /// Returns whether it and the containers in its elements find each key that an iteration shows.
  bool (*finds)(const void* container);
  /// The hash of a key by its hash function and those of the containers in its elements; 0 if there
  /// are none.
  std::uint64_t (*sample)(const void* container);
  /// Tells what its objects explain, at any depth.
  void (*explain)(const void* container, Suspects& suspects);
};

/// The types of what a value is put together of, which may be looked at one by one.
template <class... Ts>
struct Types {};
template <class T>
struct PartsOf {
  using type = Types<>;
};
template <class T>
requires requires { typename T::allocator_type; }
struct PartsOf<T> {
  using type = Types<typename T::value_type>;
};
template <class First, class Second>
struct PartsOf<std::pair<First, Second>> {
  using type = Types<std::remove_cv_t<First>, Second>;
};
template <class... Ts>
struct PartsOf<std::tuple<Ts...>> {
  using type = Types<Ts...>;
};
template <class... Ts>
struct PartsOf<std::variant<Ts...>> {
  using type = Types<Ts...>;
};
template <class T>
struct PartsOf<std::optional<T>> {
  using type = Types<T>;
};
template <class T, std::size_t kSize>
struct PartsOf<std::array<T, kSize>> {
  using type = Types<T>;
};

template <class T>
inline constexpr bool kIsContainer = requires {
  typename T::allocator_type;
};

/// A constant expression can copy the bytes of a struct, unless a pointer is among them.
template <class T>
concept HasNoPointer = std::is_trivially_copyable_v<T> && requires {
  typename std::bool_constant<(
      static_cast<void>(std::bit_cast<std::array<std::byte, sizeof(T)>>(T{})), true)>;
};

template <class... Ts>
constexpr bool all_plain(Types<Ts...>);

}  // namespace detail::index::tips_of

/// True if all bytes of a T are numbers, so that they may also look like an address. perdix knows
/// it of arithmetic types and enumerations, of structs of these that a constant expression can
/// make, and of pairs, tuples, arrays, optionals and variants of such types. A program may set it
/// to true for its types. A write() is refused if it leaves an address of the process anywhere
/// else.
template <class T>
inline constexpr bool kTipsPlain = [] {
  using U = std::remove_cv_t<T>;
  using Parts = typename detail::index::tips_of::PartsOf<U>::type;
  if constexpr (std::is_arithmetic_v<U> || std::is_enum_v<U>) {
    return true;
  } else if constexpr (detail::index::tips_of::kIsContainer<U>) {
    return false;
  } else if constexpr (!std::is_same_v<Parts, detail::index::tips_of::Types<>>) {
    return detail::index::tips_of::all_plain(Parts());
  } else {
    return detail::index::tips_of::HasNoPointer<U>;
  }
}();

template <class... Ts>
constexpr bool detail::index::tips_of::all_plain(Types<Ts...>) {
  return (kTipsPlain<Ts> && ...);
}

/// Gives a container the memory of the TipsOf that holds it. It has no state: inside of write() it
/// takes that container's memory, elsewhere it has none and throws invalid_argument. So what was
/// made with it inside of a write() must not outlive that, unless it lies in the container.
template <class T>
class TipsAllocator {
 public:
  /// The type of the objects that it allocates.
  using value_type = T;
  /// Each allocator may free what another one has allocated.
  using is_always_equal = std::true_type;
  /// Containers move their memory with their contents.
  using propagate_on_container_move_assignment = std::true_type;

  TipsAllocator() = default;
  /// For containers that allocate something else than their elements.
  template <class Other>
  TipsAllocator(const TipsAllocator<Other>&) noexcept {}  // NOLINT(google-explicit-constructor)

  /// Memory of the container for `count` objects. Throws invalid_argument outside of a write().
  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= 16, "TipsAllocator aligns to 16 bytes at most");
    if (count > ~std::size_t{0} / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::index::tips_of::allocate(count * sizeof(T)));
  }
  /// Gives memory back to the container.
  void deallocate(T* block, std::size_t count) noexcept {
    detail::index::tips_of::deallocate(block, count * sizeof(T));
  }
  /// Ends an object that is no number, and leaves no address of the process in its place.
  template <class U>
  requires(!kTipsPlain<U>) void destroy(U* object) noexcept {
    std::destroy_at(object);
    detail::index::tips_of::forget(object, sizeof(U));
  }

  template <class Other>
  friend bool operator==(const TipsAllocator&, const TipsAllocator<Other>&) noexcept {
    return true;
  }
};

/// A string in the memory of a container. A plain std::string keeps its bytes elsewhere.
using TipsString = std::basic_string<char, std::char_traits<char>, TipsAllocator<char>>;

/// True if objects of a type may lie in a pool: they keep no address but those that their
/// TipsAllocator gave them. Pairs, tuples, arrays, optionals, variants and containers of such types
/// may, if their comparisons and hashes have no state or may, too; so may what is trivially
/// copyable, except pointers and views. Pointers within a struct can't be seen here. A program may
/// set it to true for its types.
template <class T>
inline constexpr bool kTipsStorable = [] {
  using U = std::remove_cv_t<T>;
  if constexpr (requires { typename U::allocator_type; }) {
    bool storable = std::is_same_v<typename U::allocator_type,
                                   TipsAllocator<typename U::allocator_type::value_type>> &&
                    kTipsStorable<typename U::value_type>;
    const auto add = [&]<class Function>(std::type_identity<Function>) {
      storable = storable && (std::is_empty_v<Function> || kTipsStorable<Function>);
    };
    if constexpr (requires { typename U::key_compare; })
      add(std::type_identity<typename U::key_compare>());
    if constexpr (requires { typename U::hasher; }) add(std::type_identity<typename U::hasher>());
    if constexpr (requires { typename U::key_equal; })
      add(std::type_identity<typename U::key_equal>());
    return storable;
  } else {
    return std::is_trivially_copyable_v<U> && !std::is_pointer_v<U> &&
           !std::is_member_pointer_v<U> && !std::is_null_pointer_v<U> && !std::is_reference_v<T> &&
           !std::is_polymorphic_v<U>;
  }
}();
template <class First, class Second>
inline constexpr bool kTipsStorable<std::pair<First, Second>> =
    kTipsStorable<First>&& kTipsStorable<Second>;
template <class... Ts>
inline constexpr bool kTipsStorable<std::tuple<Ts...>> = (kTipsStorable<Ts> && ...);
template <class... Ts>
inline constexpr bool kTipsStorable<std::variant<Ts...>> = (kTipsStorable<Ts> && ...);
template <class T>
inline constexpr bool kTipsStorable<std::optional<T>> = kTipsStorable<T>;
template <class T, std::size_t kSize>
inline constexpr bool kTipsStorable<std::array<T, kSize>> = kTipsStorable<T>;
template <class Char, class Traits>
inline constexpr bool kTipsStorable<std::basic_string_view<Char, Traits>> = false;
template <class T, std::size_t kExtent>
inline constexpr bool kTipsStorable<std::span<T, kExtent>> = false;
template <class T>
inline constexpr bool kTipsStorable<std::reference_wrapper<T>> = false;

/// Makes elements for the trial that each new container goes through: make(i) should differ for
/// different small i, and own memory if the type ever does. A program may specialise it for its
/// types; others are default-constructed.
template <class T>
struct TipsSample {
  /// An element that differs for different small `i`.
  static T make(unsigned i) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return static_cast<T>(i);
    } else if constexpr (requires(T t) {
                           t.insert(t.end(), std::declval<typename T::value_type>());
                         }) {
      T container{};
      constexpr unsigned kLong = 40;  // more than lies within a string's object
      for (unsigned n = 0; n < kLong; ++n)
        container.insert(container.end(), TipsSample<typename T::value_type>::make(i + n));
      return container;
    } else {
      return T{};
    }
  }
};
template <class First, class Second>
struct TipsSample<std::pair<First, Second>> {
  static std::pair<First, Second> make(unsigned i) {
    return {TipsSample<std::remove_cv_t<First>>::make(i),
            TipsSample<std::remove_cv_t<Second>>::make(i)};
  }
};
template <class... Ts>
struct TipsSample<std::tuple<Ts...>> {
  static std::tuple<Ts...> make(unsigned i) { return {TipsSample<Ts>::make(i)...}; }
};
template <class T>
struct TipsSample<std::optional<T>> {
  static std::optional<T> make(unsigned i) {
    return i % 2 == 0 ? std::nullopt : std::optional<T>(TipsSample<T>::make(i));
  }
};
template <class T, std::size_t kSize>
requires std::is_move_assignable_v<T>
struct TipsSample<std::array<T, kSize>> {
  static std::array<T, kSize> make(unsigned i) {
    std::array<T, kSize> made{};
    for (T& part : made) part = TipsSample<T>::make(i++);
    return made;
  }
};
template <class... Ts>
struct TipsSample<std::variant<Ts...>> {
  static std::variant<Ts...> make(unsigned i) { return make(i, std::index_sequence_for<Ts...>()); }

 private:
  using Variant = std::variant<Ts...>;
  template <std::size_t... kAt>
  static Variant make(unsigned i, std::index_sequence<kAt...>) {
    Variant (*const makers[])(unsigned) = {[](unsigned n) {
      return Variant(std::in_place_index<kAt>,
                     TipsSample<std::variant_alternative_t<kAt, Variant>>::make(n));
    }...};
    return makers[i % sizeof...(Ts)](i);
  }
};

/// The requirements on a container's type that can be checked without running it.
template <class C>
concept TipsContainer = requires(C& c, const C& constant, typename C::value_type value) {
  typename C::allocator_type;
  C();
  c.insert(c.end(), std::move(value));
  c.erase(c.begin());
  c.clear();
  { constant.size() } -> std::convertible_to<std::uint64_t>;
  constant.begin() != constant.end();
}
&&std::move_constructible<C>;

namespace detail::index::tips_of {

template <class C>
bool counts(const void* container, std::uint64_t& count) {
  const C& c = *static_cast<const C*>(container);
  count = 0;
  for (auto at = c.begin(); at != c.end(); ++at) ++count;
  return count == static_cast<std::uint64_t>(c.size());
}

template <class C>
void exercise(void* container) {
  C& c = *static_cast<C*>(container);
  C away(std::move(c));
  std::destroy_at(&c);
  ::new (container) C(std::move(away));
  if (c.begin() != c.end()) c.erase(c.begin());
  c.insert(c.end(), TipsSample<typename C::value_type>::make(0));
}

template <class C>
void settle(void* container) {
  C& c = *static_cast<C*>(container);
  if constexpr (requires { c.reserve(1); }) c.reserve(static_cast<std::size_t>(c.size()) + 1);
}

/// Calls visit(part) for what a value is put together of.
template <class T, class Visit>
void for_each_part(const T& value, Visit visit) {
  if constexpr (requires { value.begin() != value.end(); }) {
    for (const auto& element : value) visit(element);
  }
}
template <class First, class Second, class Visit>
void for_each_part(const std::pair<First, Second>& pair, Visit visit) {
  visit(pair.first);
  visit(pair.second);
}
template <class... Ts, class Visit>
void for_each_part(const std::tuple<Ts...>& tuple, Visit visit) {
  std::apply([&](const Ts&... parts) { (visit(parts), ...); }, tuple);
}
template <class T, class Visit>
void for_each_part(const std::optional<T>& optional, Visit visit) {
  if (optional) visit(*optional);
}
template <class... Ts, class Visit>
void for_each_part(const std::variant<Ts...>& variant, Visit visit) {
  if (!variant.valueless_by_exception()) std::visit(visit, variant);
}

/// The most bytes that one part at a time has, where a value begins; 0 if all parts are there at
/// once.
template <class T>
inline constexpr std::size_t kChoiceBytes = 0;
template <class T>
inline constexpr std::size_t kChoiceBytes<std::optional<T>> = sizeof(T);
template <class... Ts>
inline constexpr std::size_t kChoiceBytes<std::variant<Ts...>> = std::max({sizeof(Ts)...});

template <class T>
void explain(const T& value, Suspects& suspects) {
  const auto* const begin = reinterpret_cast<const std::byte*>(std::addressof(value));
  if constexpr (kTipsPlain<T>) {
    suspects.number(begin, sizeof value);
  } else {
    suspects.object(begin, sizeof value, typeid(T).name());
    std::size_t used = 0;
    for_each_part(value, [&](const auto& part) {
      used = sizeof part;
      explain(part, suspects);
    });
    if constexpr (kChoiceBytes<T> != 0) {
      suspects.dead(begin + used, kChoiceBytes<T> - used);
      // Which part is there. Copies of the object copy the padding behind it, too.
      suspects.number(begin + kChoiceBytes<T>, sizeof value - kChoiceBytes<T>);
    }
  }
}

template <class T>
concept HasKeys = requires(const T& c, const typename T::key_type& key) {
  c.find(key) != c.end();
};

template <class C>
const auto& key_in(const typename C::value_type& element) {
  if constexpr (std::is_same_v<typename C::key_type, typename C::value_type>) {
    return element;
  } else {
    return element.first;
  }
}

template <class T>
bool finds(const T& value) {
  bool all = true;
  if constexpr (!kTipsPlain<T>) {
    for_each_part(value, [&](const auto& part) {
      if constexpr (HasKeys<T>) all = all && value.find(key_in<T>(part)) != value.end();
      all = all && finds(part);
    });
  }
  return all;
}

template <class C>
concept HasHash = requires(const C& c) {
  c.hash_function();
  typename C::key_type;
};

template <HasHash C>
std::uint64_t hash_by(const C& c) {
  return static_cast<std::uint64_t>(
      c.hash_function()(TipsSample<std::remove_cv_t<typename C::key_type>>::make(7)));
}

template <class T>
std::uint64_t hashes_of();

/// Of the parts of a value; 0 if none has a hash.
template <class... Ts>
std::uint64_t hashes_of(Types<Ts...>) {
  [[maybe_unused]] constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t all = 0;
  ((all = (all + hashes_of<Ts>()) * kOdd), ...);
  return all;
}

/// Of an object without elements. If two such objects differ, each has a seed of its own, which
/// lies in the pool with it.
template <class T>
std::uint64_t hashes_of() {
  std::uint64_t own = 0;
  if constexpr (HasHash<T> && std::default_initializable<T>) {
    own = hash_by(T());
    if (own != hash_by(T())) own = 0;
  }
  return own + hashes_of(typename PartsOf<T>::type());
}

template <class C>
std::uint64_t sample(const void* container) {
  std::uint64_t own = 0;
  if constexpr (HasHash<C>) own = hash_by(*static_cast<const C*>(container));
  return own + hashes_of(typename PartsOf<C>::type());
}

/// The sizes that a layout depends on, and which standard library has made it.
template <class C>
std::uint64_t fingerprint(std::uint64_t version);
std::uint64_t fingerprint(const char* name, std::span<const std::uint64_t> facts);

#if defined(_LIBCPP_VERSION)
inline constexpr std::uint64_t kStandardLibrary = 2;
#elif defined(__GLIBCXX__)
inline constexpr std::uint64_t kStandardLibrary = 1;
#else
inline constexpr std::uint64_t kStandardLibrary = 0;
#endif

template <class C>
std::uint64_t fingerprint(std::uint64_t version) {
  using Value = typename C::value_type;
  const std::uint64_t facts[] = {sizeof(C),     alignof(C),       sizeof(Value), alignof(Value),
                                 sizeof(void*), kStandardLibrary, version};
  return fingerprint(typeid(C).name(), facts);
}

template <class C>
ContainerType type_of(std::uint64_t version) {
  return {
      typeid(C).name(),
      fingerprint<C>(version),
      sizeof(C),
      [](void* at) { ::new (at) C(); },
      [](void* at) { std::destroy_at(static_cast<C*>(at)); },
      settle<C>,
      [](void* at, unsigned count) {
        C& c = *static_cast<C*>(at);
        for (unsigned i = 0; i < count; ++i)
          c.insert(c.end(), TipsSample<typename C::value_type>::make(i));
      },
      exercise<C>,
      [](void* at) { static_cast<C*>(at)->clear(); },
      counts<C>,
      [](const void* at) { return finds(*static_cast<const C*>(at)); },
      sample<C>,
      [](const void* at, Suspects& suspects) { explain(*static_cast<const C*>(at), suspects); }};
}

}  // namespace detail::index::tips_of

}  // namespace perdix
