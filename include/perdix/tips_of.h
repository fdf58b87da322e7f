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

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include <perdix/pool.h>
#include <perdix/tips_of_type.h>
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

/// The purpose for which a container is opened.
enum class Purpose { use, export_only };

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

  /// Lets what was read be shown. Throws as any call of a pool that can't be used any more.
  void end() const;

 private:
  const Table& table_;
};

struct Close {
  void operator()(Table* table) const noexcept;
};
using OpenTable = std::unique_ptr<Table, Close>;

OpenTable open(const Pool& pool, std::string_view name, const ContainerType& type, Purpose purpose);
void* container_of(const Table& table) noexcept;
CheckReport check(const Table& table);
TipsOfStats stats(const Table& table);

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
/// cost less than many writes. Each page of the container takes the space of two. A write() that
/// stores numbers which are addresses of the process also iterates over the container.
template <TipsContainer C>
class TipsOf {
  static_assert(kTipsStorable<C>,
                "TipsOf needs a container with a TipsAllocator, of elements that keep no other "
                "memory: TipsString in place of std::string, no pointers, no comparison or hash "
                "that is a pointer to a function or a std::function (docs/tips-of.md)");
  static_assert(alignof(C) <= 64);

 public:
  /// Opens the container of that name, or creates it empty. Throws wrong_kind if there is one of
  /// another type, or of another `version`, which tells apart what a type's name and size do not;
  /// unsupported if a trial shows that such a container can't be made durable, with the reason;
  /// wrong_engine, in_use, out_of_space, corrupt. Throws wrong_kind, too, if a hash function of the
  /// container or of one in its elements gives other numbers than at creation: export_only() then
  /// opens it. Cost: reads 16 bytes for each page; a creation also makes the trial, with a hundred
  /// elements.
  ///
  /// The container is opened as it lies there: no code can tell whether its nodes are damaged.
  TipsOf(const Pool& pool, std::string_view name, std::uint64_t version = 0)
      : TipsOf(pool, name, version, detail::index::tips_of::Purpose::use) {}

  /// Opens a container that there is, so that its elements can be copied out, even if a hash
  /// function gives other numbers than at creation. Iterations show all elements; lookups by hash
  /// may miss some. write() throws unsupported. Throws not_found if there is no such container, and
  /// otherwise what the constructor throws.
  static TipsOf export_only(const Pool& pool, std::string_view name, std::uint64_t version = 0) {
    return TipsOf(pool, name, version, detail::index::tips_of::Purpose::export_only);
  }

  /// Calls f(container) and returns a copy of what it returns, once its changes are durable. If it
  /// throws, nothing has changed. Throws out_of_space or no_memory likewise. Throws unsupported,
  /// and nothing has changed, if the container would keep an address of the process: of the
  /// program, a library, the heap or a stack.
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

  /// Verifies what perdix keeps, that an iteration shows size() elements, and that the container
  /// finds each key that it shows; the last also for containers in its elements.
  CheckReport check() const { return detail::index::tips_of::check(*table_); }

 private:
  TipsOf(const Pool& pool, std::string_view name, std::uint64_t version,
         detail::index::tips_of::Purpose purpose)
      : table_(detail::index::tips_of::open(pool, name, detail::index::tips_of::type_of<C>(version),
                                            purpose)) {}

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
