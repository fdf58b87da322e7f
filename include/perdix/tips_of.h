// TipsOf: makes a container durable that knows nothing of persistent memory.
//
//   using Map = std::map<int, int, std::less<>, perdix::TipsAllocator<std::pair<const int, int>>>;
//
//   perdix::TipsOf<Map> map(pool, "numbers");
//   map.write([](Map& m) { m[1] = 10, m[2] = 20; });     // durable when it returns, or not at all
//   const int two = map.read([](const Map& m) { return m.at(2); });
//
// docs/tips-of.md says what a container must fulfil, which ones are tested, and what calls cost.
#pragma once

#include <array>
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

#include <perdix/pool.h>
#include <perdix/types.h>

namespace perdix {

/// Facts about an open container.
struct TipsOfStats {
  std::uint64_t pages = 0;       ///< of 4 KiB, that the container's memory comes from
  std::uint64_t live_bytes = 0;  ///< of blocks that the container has
  std::uint64_t free_bytes = 0;  ///< of those that it has given back, for its own later use
  std::uint64_t commits = 0;     ///< calls of write() that have changed something, since opening
  std::uint64_t copied = 0;      ///< pages that were copied before they changed, since opening
};

namespace detail::index::tips_of {

class Table;

/// Memory of the container that this thread writes to. Throws invalid_argument outside of a write.
void* allocate(std::size_t bytes);
void deallocate(void* block, std::size_t bytes) noexcept;

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
  /// What its hash function makes of a key; 0 if it has none.
  std::uint64_t (*sample)(const void* container);
};

/// Changes to the container, from its construction to commit(): all or none.
class WriteScope {
 public:
  explicit WriteScope(Table& table);
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;
  ~WriteScope();  ///< takes them back, unless they were committed

  void commit();

 private:
  Table& table_;
  bool ended_ = false;
};

/// Keeps writes away.
class ReadScope {
 public:
  explicit ReadScope(const Table& table);
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  ~ReadScope();

  /// What was read may be shown. Throws as any call of a pool that can't be used any more.
  void end() const;

 private:
  const Table& table_;
};

struct Close {
  void operator()(Table* table) const noexcept;
};
using OpenTable = std::unique_ptr<Table, Close>;

OpenTable open(const Pool& pool, std::string_view name, const ContainerType& type);
void* container_of(const Table& table) noexcept;
CheckReport check(const Table& table);
TipsOfStats stats(const Table& table);

}  // namespace detail::index::tips_of

/// Gives a container the memory of the TipsOf that holds it. It has no state: inside of write() it
/// takes that container's memory, elsewhere it has none and throws invalid_argument. So what was
/// made with it inside of a write() must not outlive that, unless it lies in the container.
template <class T>
class TipsAllocator {
 public:
  /// What it allocates.
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

  template <class Other>
  friend bool operator==(const TipsAllocator&, const TipsAllocator<Other>&) noexcept {
    return true;
  }
};

/// A string in the memory of a container. A plain std::string keeps its bytes elsewhere.
using TipsString = std::basic_string<char, std::char_traits<char>, TipsAllocator<char>>;

/// Whether objects of a type may lie in a pool: they keep no address but those that their
/// TipsAllocator gave them. Pairs, tuples, arrays, optionals, variants and containers of such types
/// may; so may what is trivially copyable, except pointers and views. Pointers within a struct
/// can't be seen here. A program may set it to true for its types.
template <class T>
inline constexpr bool kTipsStorable = [] {
  using U = std::remove_cv_t<T>;
  if constexpr (requires { typename U::allocator_type; }) {
    return std::is_same_v<typename U::allocator_type,
                          TipsAllocator<typename U::allocator_type::value_type>> &&
           kTipsStorable<typename U::value_type>;
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

/// What can be said of a container's type without running it.
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

template <class C>
std::uint64_t sample(const void* container) {
  const C& c = *static_cast<const C*>(container);
  if constexpr (requires {
                  c.hash_function();
                  typename C::key_type;
                }) {
    return static_cast<std::uint64_t>(
        c.hash_function()(TipsSample<std::remove_cv_t<typename C::key_type>>::make(7)));
  } else {
    return 0;
  }
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
  return {typeid(C).name(),
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
          sample<C>};
}

}  // namespace detail::index::tips_of

/// A container in a pool, made durable as it is: see the example at the top.
///
/// Its object and all that it allocates lie in pages of the pool, at the same addresses each time.
/// These pages are read-only. In write() the first store to each is noticed by its fault, and what
/// the page held is made durable before; when the callable has returned, what it has changed is
/// made durable, and the old pages are given up. So a crash leaves all of a write() or nothing, and
/// so does an exception: the container is then what it was before the call. The pool keeps its
/// address from then on: see PoolOptions::address.
///
/// write() calls wait for each other and for read() calls, which run side by side. A callable must
/// store to the container on its own thread and only inside of write(): other stores end the
/// program, as stores to memory that is read-only. It calls neither write() nor read() of this
/// object; a write() inside of any write() throws invalid_argument. References, iterators and
/// objects with memory of the container are good until the call ends.
///
/// TipsOf needs the process's SIGSEGV; handlers of the program's stay in use for what is not for
/// it. The thread of a write() must not block that signal.
///
/// Cost of a write(): for each page that it changes a fault, a copy of 4 KiB and a fence, then its
/// flush, two fences, and a system call for each run of pages. Many changes in one write()
/// cost less than many writes. Each page of the container takes the space of two.
template <TipsContainer C>
class TipsOf {
  static_assert(kTipsStorable<C>,
                "TipsOf needs a container with a TipsAllocator, of elements that keep no other "
                "memory: TipsString in place of std::string, no pointers (docs/tips-of.md)");
  static_assert(alignof(C) <= 64);

 public:
  /// Opens the container of that name, or creates it empty. Throws wrong_kind if there is one of
  /// another type, or of another `version`, which tells apart what a type's name and size do not;
  /// unsupported if a trial shows that such a container can't be made durable, with the reason;
  /// wrong_engine, in_use, out_of_space, corrupt. Cost: reads 16 bytes for each page; a creation
  /// also makes the trial, with a hundred elements.
  ///
  /// The container is opened as it lies there: no code can tell whether its nodes are damaged.
  TipsOf(const Pool& pool, std::string_view name, std::uint64_t version = 0)
      : table_(detail::index::tips_of::open(pool, name,
                                            detail::index::tips_of::type_of<C>(version))) {}

  /// Calls f(container) and returns a copy of what it returns, once its changes are durable. If it
  /// throws, nothing has changed. Throws out_of_space or no_memory likewise.
  template <std::invocable<C&> F>
  auto write(F&& f) {
    using Result = std::decay_t<std::invoke_result_t<F, C&>>;
    detail::index::tips_of::WriteScope scope(*table_);
    if constexpr (std::is_void_v<Result>) {
      std::invoke(std::forward<F>(f), container());
      scope.commit();
    } else {
      require_result<Result>();
      Result result = std::invoke(std::forward<F>(f), container());
      scope.commit();
      return result;
    }
  }

  /// Calls f(container) and returns a copy of what it returns.
  template <std::invocable<const C&> F>
  auto read(F&& f) const {
    using Result = std::decay_t<std::invoke_result_t<F, const C&>>;
    const detail::index::tips_of::ReadScope scope(*table_);
    if constexpr (std::is_void_v<Result>) {
      std::invoke(std::forward<F>(f), std::as_const(container()));
      scope.end();
    } else {
      require_result<Result>();
      Result result = std::invoke(std::forward<F>(f), std::as_const(container()));
      scope.end();
      return result;
    }
  }

  /// Elements of the container.
  std::uint64_t size() const {
    return read([](const C& c) { return static_cast<std::uint64_t>(c.size()); });
  }

  /// Sizes and counts.
  TipsOfStats stats() const { return detail::index::tips_of::stats(*table_); }

  /// Verifies what perdix keeps, and that an iteration shows size() elements.
  CheckReport check() const { return detail::index::tips_of::check(*table_); }

 private:
  template <class Result>
  static constexpr void require_result() {
    static_assert(
        !requires { typename Result::allocator_type; } || !kTipsStorable<Result>,
        "what has memory of the container can't leave it: return a copy in DRAM");
  }

  C& container() const {
    return *std::launder(static_cast<C*>(detail::index::tips_of::container_of(*table_)));
  }

  detail::index::tips_of::OpenTable table_;
};

}  // namespace perdix
