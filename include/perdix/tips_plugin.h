// The interface of an index that is plugged into Tips. docs/tips.md has an example; indexes in C
// have <perdix/tips_c.h>.
//
// A plug-in maps words to words. The word of an integer key is the key, the word of a string key is
// the address of its Bytes, and the same for values; Tips allocates these. Lookups call the plug-in
// from any thread. Replay calls it from several threads concurrently, though never for the same
// key. Its lock, if it needs one, lies in its object.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <perdix/types.h>

namespace perdix::tips {

/// A key or a value, as a plug-in sees it.
using Word = std::uint64_t;

/// The bytes of a string, wherever they lie.
struct Bytes {
  /// How many there are.
  std::uint64_t size;
  // then the bytes

  /// The bytes.
  std::string_view view() const { return {reinterpret_cast<const char*>(this + 1), size}; }
};

/// Allocates memory of the pool for the operation that this thread replays; aligned to 16 bytes.
/// Throws Errc::out_of_space and std::bad_alloc: the operation then leaves the index unchanged, or
/// does without the memory. Throws invalid_argument outside of put() and erase().
void* allocate(std::size_t bytes);

/// Gives back what allocate() has returned, also to an earlier operation. Each call of the plug-in
/// that is running may still read it.
void free(void* block);

/// Says that the operation is going to change [p, p + bytes): to be called before the change,
/// unless this operation has allocated the memory.
///
/// An operation has room for kUndoLines lines of 64 bytes, and for kMemoryCalls calls of allocate()
/// and free(). Within these limits undo_log_add() and free() do not throw. Beyond them they throw
/// out_of_space if a full pool has no more room: the operation must end by that exception, and the
/// index serves no more calls until it is opened again, which takes the operation back.
void undo_log_add(const void* p, std::size_t bytes);

/// Lines of 64 bytes that an operation may announce by undo_log_add().
inline constexpr unsigned kUndoLines = 320;
/// Calls of allocate() and free() that an operation may make.
inline constexpr unsigned kMemoryCalls = 32;

/// The memory policy of an index in a pool.
struct Durable {
  /// tips::allocate().
  static void* allocate(std::size_t bytes) { return tips::allocate(bytes); }
  /// tips::free().
  static void free(void* block) { tips::free(block); }
  /// undo_log_add().
  static void add(const void* p, std::size_t bytes) { undo_log_add(p, bytes); }
};

/// The memory policy of the same index in DRAM.
struct Volatile {
  /// Memory of the heap.
  static void* allocate(std::size_t bytes) {
    if (void* const block = std::malloc(bytes)) return block;
    throw std::bad_alloc();
  }
  /// Gives it back.
  static void free(void* block) { std::free(block); }
  /// Nothing: what is volatile needs no undo log.
  static void add(const void*, std::size_t) {}
};

/// How words of integer keys compare.
struct IntegerKeys {
  /// Returns whether one key is before another.
  static bool less(Word a, Word b) { return a < b; }
  /// Returns whether two keys are the same.
  static bool equal(Word a, Word b) { return a == b; }
  /// The hash of a key.
  static std::uint64_t hash(Word key);

  /// As StringKeys has them, of a number's bytes from the most significant one on.
  static constexpr std::size_t kNoMismatch = ~std::size_t{0};
  /// The symbol of a key at a place; 0 behind the end.
  static unsigned symbol(Word key, std::size_t at) {
    return at < sizeof key ? (key >> (56 - 8 * at) & 0xff) + 1 : 0;
  }
  /// The first place at which two keys differ; kNoMismatch: they are equal.
  static std::size_t mismatch(Word a, Word b) {
    return a == b ? kNoMismatch : static_cast<std::size_t>(std::countl_zero(a ^ b)) / 8;
  }

  /// As StringKeys has them; a number needs no room.
  static constexpr std::size_t kSeparatorHead = 0;
  /// None.
  static std::size_t separator_bytes(Word, Word) { return 0; }
  /// The larger key is its own separator.
  static Word separator(Word, Word high, void*) { return high; }
  /// A number is one anywhere.
  static bool is_separator_at(Word, const void*) { return true; }
  /// None.
  static std::size_t separator_bytes(Word) { return 0; }
};

/// How words of string keys compare.
struct StringKeys {
  /// The bytes of a key.
  static std::string_view view(Word key) { return reinterpret_cast<const Bytes*>(key)->view(); }
  /// Returns whether one key is before another.
  static bool less(Word a, Word b) { return view(a) < view(b); }
  /// Returns whether two keys are the same.
  static bool equal(Word a, Word b) { return view(a) == view(b); }
  /// The hash of a key.
  static std::uint64_t hash(Word key);

  /// A key as symbols that are in its order: a byte + 1 each, and 0 behind the end.
  static unsigned symbol(Word key, std::size_t at) {
    const std::string_view bytes = view(key);
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) + 1U : 0;
  }
  /// The result of mismatch() for keys that are equal.
  static constexpr std::size_t kNoMismatch = ~std::size_t{0};
  /// Returns the place of the first symbol in which two keys differ; kNoMismatch: they are equal.
  static std::size_t mismatch(Word a, Word b) {
    const std::string_view x = view(a), y = view(b);
    const std::size_t shorter = std::min(x.size(), y.size());
    const auto end = x.begin() + static_cast<std::ptrdiff_t>(shorter);
    const auto at =
        static_cast<std::size_t>(std::mismatch(x.begin(), end, y.begin()).first - x.begin());
    return at == shorter && x.size() == y.size() ? kNoMismatch : at;
  }

  // A separator is a key that the index makes, which parts two others and outlives them: it is
  // above `low` and not above `high`. It has a byte more than what these two begin with.

  /// The bytes with which the room of a separator begins.
  static constexpr std::size_t kSeparatorHead = sizeof(Bytes);
  /// The room that a separator of these two needs.
  static std::size_t separator_bytes(Word low, Word high) {
    return sizeof(Bytes) + mismatch(low, high) + 1;
  }
  /// Makes it in that room, and returns its word.
  static Word separator(Word low, Word high, void* room) {
    const std::string_view bytes = view(high).substr(0, mismatch(low, high) + 1);
    std::memcpy(new (room) Bytes{bytes.size()} + 1, bytes.data(), bytes.size());
    return reinterpret_cast<Word>(room);
  }
  /// Returns whether there is a separator in a room of which the head may be read.
  static bool is_separator_at(Word key, const void* room) {
    constexpr std::size_t kMaxBytes = 1U << 16;
    return key == reinterpret_cast<Word>(room) && view(key).size() <= kMaxBytes;
  }
  /// The room that this separator has.
  static std::size_t separator_bytes(Word key) { return sizeof(Bytes) + view(key).size(); }
};

/// Lets lookups read an index that was inspected: they ask nothing before they read a node.
struct Trusting {
  /// Lookups ask nothing.
  static constexpr bool kDoubts = false;
  /// Always true.
  static constexpr bool readable(const void*, std::size_t) { return true; }
  /// Always true.
  static constexpr bool holds(const void*, std::size_t) { return true; }
  /// Always true.
  static constexpr bool key(Word) { return true; }
  /// Never called.
  static constexpr bool damaged() { return false; }
};

/// Tells lookups what they may read of an index that was not inspected, and may be damaged.
class Doubting {
 public:
  /// Lookups ask before they read.
  static constexpr bool kDoubts = true;
  virtual ~Doubting() = default;
  /// Returns whether a node may be read. Each node once: a way that leads back ends.
  virtual bool readable(const void* node, std::size_t bytes) const = 0;
  /// True if a block may be read that a way may meet again, as an array, or the word of a key.
  virtual bool holds(const void* block, std::size_t bytes) const = 0;
  /// Returns whether the word of a key may be followed.
  virtual bool key(Word key) const = 0;

  /// The lookup can't go on. Returns false, which it returns.
  bool damaged() const { return !(damaged_ = true); }
  /// Returns whether a lookup said damaged().
  bool is_damaged() const { return damaged_; }

 private:
  mutable bool damaged_ = false;
};

/// Is shown the nodes and the pairs of an index. A node is read only after node() has said that it
/// may be, so a damaged index ends the visit instead of the process.
class Inspector {
 public:
  virtual ~Inspector() = default;
  /// False: there is no such node, or it was shown before.
  virtual bool node(const void* node, std::size_t bytes) = 0;
  /// Is shown a pair. False: the visit ends.
  virtual bool pair(Word key, Word value) = 0;
  /// Returns whether the first bytes of a node may be read, which tell its size.
  virtual bool readable(const void*, std::size_t) { return true; }
};

/// Blocks for nodes that a put may allocate, of up to five sizes; no count: none. Tips keeps so
/// much space for each put that waits. A plug-in that may take more now and then does without where
/// it can; else its put throws and leaves the index as it was.
struct TakenNodes {
  /// Bytes of each block.
  std::size_t bytes;
  /// How many; 0: none.
  unsigned count;
  bool with_key = false;  ///< each has room for a separator too (StringKeys)
};
/// The blocks that a put may allocate.
using PutTakes = std::array<TakenNodes, 5>;

/// Shows pairs until it returns false.
using ShowPair = bool (*)(void* context, Word key, Word value);

/// An index that can be plugged in: its facts, and the calls of it that Tips makes. PluginOf makes
/// one of a class. `index` is the object that create() has made.
class Plugin {
 public:
  virtual constexpr ~Plugin() = default;

  std::string_view name;     ///< behind "tips:" in the engine's name: "btree", "user:skiplist"
  Kind keys;                 ///< that it is for
  bool ordered;              ///< it has scan() and find_last(), else walk()
  bool doubts;               ///< it has find_doubting()
  std::size_t object_bytes;  ///< of the object; an index keeps to it
  /// The blocks that a put may allocate.
  PutTakes put_takes;

  /// The name of its engine, IndexInfo::engine.
  std::string engine() const { return "tips:" + std::string(name); }

  /// Makes the object, in memory that no other thread reads. Allocates nothing.
  virtual void create(void* index) const = 0;
  /// Makes the locks of the object anew, which no thread uses.
  virtual void renew_locks(void* index) const = 0;
  /// True if the key was there: `old` is its value, and the key's own word stays. Else both words
  /// are the index's now.
  virtual bool put(void* index, Word key, Word value, Word* old) const = 0;
  /// False if the key was not there; else its words are the caller's again.
  virtual bool erase(void* index, Word key, Word* old_key, Word* old_value) const = 0;
  /// True if the key is there: `value` is its value.
  virtual bool find(const void* index, Word key, Word* value) const = 0;
  /// Like find(), before inspect() has ended. Called only if `doubts`; else opening inspects.
  virtual bool find_doubting(const void* index, const Doubting& doubt, Word key,
                             Word* value) const = 0;
  /// The number of keys.
  virtual std::uint64_t size(const void* index) const = 0;
  /// Ordered: shows the pairs from a key on, ascending; `from` null: from the first.
  virtual void scan(const void* index, const Word* from, void* context, ShowPair show) const = 0;
  /// Ordered: the last pair whose key is not above `bound`, or is below it; false if there is none.
  virtual bool find_last(const void* index, Word bound, bool strictly, Word* key,
                         Word* value) const = 0;
  /// Unordered: shows the pairs of some places that begin at `position`, 0 at first. Returns where
  /// the next places begin; 0: there are none. A key's place never changes, as that by its hash.
  virtual std::uint64_t walk(const void* index, std::uint64_t position, void* context,
                             ShowPair show) const = 0;
  /// Shows all nodes, each before it is read, and all pairs. False if the inspector says so, or the
  /// index contradicts itself.
  virtual bool inspect(const void* index, Inspector& inspector) const = 0;

 protected:
  /// For PluginOf.
  constexpr Plugin(std::string_view its_name, Kind its_keys, bool is_ordered, bool does_doubt,
                   std::size_t bytes, const PutTakes& takes)
      : name(its_name),
        keys(its_keys),
        ordered(is_ordered),
        doubts(does_doubt),
        object_bytes(bytes),
        put_takes(takes) {}
  /// For PluginOf.
  Plugin(const Plugin&) = default;
  /// For PluginOf.
  Plugin& operator=(const Plugin&) = default;
};

/// An index whose keys have an order.
template <class Index>
concept OrderedIndexClass = requires(const Index& index, const Word* from, ShowPair show) {
  index.scan(from, nullptr, show);
};

/// An index whose lookup can doubt each node: find(trust, key, value).
template <class Index>
concept DoubtingIndexClass = requires(const Index& index, const Doubting& doubt, Word& value) {
  index.find(doubt, Word{}, value);
};

/// An index that has locks.
template <class Index>
concept LockedIndexClass = requires(Index& index) {
  index.renew_locks();
};

/// The plug-in that a class is. The class has a default constructor, put_takes() as a static
/// function, and the calls of Plugin as members, with references in place of pointers to words.
/// find() with a Doubting and renew_locks() may be missing.
template <class Index>
class PluginOf : public Plugin {
 public:
  /// The plug-in of that name, for keys of that kind.
  constexpr PluginOf(std::string_view its_name, Kind its_keys)
      : Plugin(its_name, its_keys, kOrdered, DoubtingIndexClass<Index>, sizeof(Index),
               Index::put_takes()) {
    static_assert(alignof(Index) <= 64, "objects are aligned to 64 bytes");
    static_assert(!std::is_polymorphic_v<Index>, "objects keep no addresses of code");
  }
  constexpr ~PluginOf() override = default;

  void create(void* index) const override { new (index) Index(); }
  void renew_locks([[maybe_unused]] void* index) const override {
    if constexpr (LockedIndexClass<Index>) object(index).renew_locks();
  }
  bool put(void* index, Word key, Word value, Word* old) const override {
    return object(index).put(key, value, *old);
  }
  bool erase(void* index, Word key, Word* old_key, Word* old_value) const override {
    return object(index).erase(key, *old_key, *old_value);
  }
  bool find(const void* index, Word key, Word* value) const override {
    return object(index).find(key, *value);
  }
  bool find_doubting(const void* index, [[maybe_unused]] const Doubting& doubt, Word key,
                     Word* value) const override {
    if constexpr (DoubtingIndexClass<Index>) return object(index).find(doubt, key, *value);
    return object(index).find(key, *value);
  }
  std::uint64_t size(const void* index) const override { return object(index).size(); }
  void scan([[maybe_unused]] const void* index, [[maybe_unused]] const Word* from,
            [[maybe_unused]] void* context, [[maybe_unused]] ShowPair show) const override {
    if constexpr (kOrdered) object(index).scan(from, context, show);
  }
  bool find_last([[maybe_unused]] const void* index, [[maybe_unused]] Word bound,
                 [[maybe_unused]] bool strictly, [[maybe_unused]] Word* key,
                 [[maybe_unused]] Word* value) const override {
    if constexpr (kOrdered) return object(index).find_last(bound, strictly, *key, *value);
    return false;
  }
  std::uint64_t walk([[maybe_unused]] const void* index, [[maybe_unused]] std::uint64_t position,
                     [[maybe_unused]] void* context,
                     [[maybe_unused]] ShowPair show) const override {
    if constexpr (!kOrdered) return object(index).walk(position, context, show);
    return 0;
  }
  bool inspect(const void* index, Inspector& inspector) const override {
    return object(index).inspect(inspector);
  }

 private:
  static constexpr bool kOrdered = OrderedIndexClass<Index>;

  static Index& object(void* index) { return *static_cast<Index*>(index); }
  static const Index& object(const void* index) { return *static_cast<const Index*>(index); }
};

/// Adds plug-ins to those of all pools that the calls of <perdix/tips_c.h> open from now on, so
/// that a program in C can name indexes that are written in C++. They live as long as the program.
/// Leaves out those whose name and kind of keys were added before. Thread-safe. Returns what calls
/// in C return: 1, or the negative of a perdix_code: PERDIX_INVALID_ARGUMENT, and adds none, if one
/// is null or has a name that no plug-in can have.
int add_for_c(std::span<const Plugin* const> plugins) noexcept;

}  // namespace perdix::tips
