// What Tips asks of a plugged-in index, and what it gives it: memory of the pool and undo records.
//
// A plug-in maps words to words. A word of an integer key is the key, a word of a string key is the
// address of a Bytes, and the same for values; the framework allocates these. The plug-in's own
// lock or none protects it: replay and lookups call it from several threads at once.
//
// `Durable` and `Volatile` are the memory policies of one source: see indexes/.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace perdix::detail::index::tips {

using Word = std::uint64_t;

/// The bytes of a string, wherever they lie.
struct Bytes {
  std::uint64_t size;
  // then the bytes

  std::string_view view() const { return {reinterpret_cast<const char*>(this + 1), size}; }
};

/// Memory of the pool for the operation that this thread replays. It throws Errc::out_of_space.
void* allocate(std::size_t bytes);
/// Gives back what allocate() gave, or an earlier operation got. Readers may still use it.
void free(void* block);
/// [p, p + bytes) is going to change.
void undo_log_add(const void* p, std::size_t bytes);

/// The memory policy of an index in a pool.
struct Durable {
  static void* allocate(std::size_t bytes) { return tips::allocate(bytes); }
  static void free(void* block) { tips::free(block); }
  static void add(const void* p, std::size_t bytes) { undo_log_add(p, bytes); }
};

/// The memory policy of the same index in DRAM.
struct Volatile {
  static void* allocate(std::size_t bytes) {
    if (void* const block = std::malloc(bytes)) return block;
    throw std::bad_alloc();
  }
  static void free(void* block) { std::free(block); }
  static void add(const void*, std::size_t) {}
};

/// Keys that are numbers, and keys that are strings: how words of keys compare.
struct IntegerKeys {
  static bool less(Word a, Word b) { return a < b; }
  static bool equal(Word a, Word b) { return a == b; }
  static std::uint64_t hash(Word key);

  /// As StringKeys has them, of a number's bytes from the most significant one on.
  static constexpr std::size_t kNoMismatch = ~std::size_t{0};
  static unsigned symbol(Word key, std::size_t at) {
    return at < sizeof key ? (key >> (56 - 8 * at) & 0xff) + 1 : 0;
  }
  static std::size_t mismatch(Word a, Word b) {
    return a == b ? kNoMismatch : static_cast<std::size_t>(std::countl_zero(a ^ b)) / 8;
  }
};

struct StringKeys {
  static std::string_view view(Word key) { return reinterpret_cast<const Bytes*>(key)->view(); }
  static bool less(Word a, Word b) { return view(a) < view(b); }
  static bool equal(Word a, Word b) { return view(a) == view(b); }
  static std::uint64_t hash(Word key);

  /// A key as symbols that are in its order: a byte + 1 each, and 0 behind the end.
  static unsigned symbol(Word key, std::size_t at) {
    const std::string_view bytes = view(key);
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) + 1U : 0;
  }
  /// The first symbol in which two keys differ.
  static constexpr std::size_t kNoMismatch = ~std::size_t{0};
  static std::size_t mismatch(Word a, Word b) {
    const std::string_view x = view(a), y = view(b);
    const std::size_t shorter = std::min(x.size(), y.size());
    const auto end = x.begin() + static_cast<std::ptrdiff_t>(shorter);
    const auto at =
        static_cast<std::size_t>(std::mismatch(x.begin(), end, y.begin()).first - x.begin());
    return at == shorter && x.size() == y.size() ? kNoMismatch : at;
  }
};

/// What lookups ask of an index that was inspected, before they read a node: nothing.
struct Trusting {
  static constexpr bool kDoubts = false;
  static constexpr bool readable(const void*, std::size_t) { return true; }
  static constexpr bool holds(const void*, std::size_t) { return true; }
  static constexpr bool key(Word) { return true; }
  static constexpr bool damaged() { return false; }
};

/// The same of an index that was not, and may be damaged.
class Doubting {
 public:
  static constexpr bool kDoubts = true;
  virtual ~Doubting() = default;
  /// Whether a node may be read. Each node once: a way that leads back ends.
  virtual bool readable(const void* node, std::size_t bytes) const = 0;
  /// The same of what a way may meet again, as an array, and of the word of a key.
  virtual bool holds(const void* block, std::size_t bytes) const = 0;
  virtual bool key(Word key) const = 0;

  /// The lookup can't go on. Returns false, which it returns.
  bool damaged() const { return !(damaged_ = true); }
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
  virtual bool pair(Word key, Word value) = 0;
  /// Whether the first bytes of a node may be read, which tell its size.
  virtual bool readable(const void*, std::size_t) { return true; }
};

/// Blocks for nodes that a put may allocate, of up to five sizes; no count: none. The framework
/// keeps so much space for each put that waits. A plug-in that may take more now and then does
/// without where it can; else its put throws and leaves the index as it was.
struct TakenNodes {
  std::size_t bytes;
  unsigned count;
};
using PutTakes = std::array<TakenNodes, 5>;

/// Shows pairs until it returns false.
using ShowPair = bool (*)(void* context, Word key, Word value);

/// A plug-in, as data. `index` is the object that create() made.
struct Plugin {
  std::string_view name;  ///< "btree"; the engine is "tips:btree"
  bool ordered;
  std::size_t object_bytes;

  PutTakes put_takes;

  void (*create)(void* index);       ///< in memory that nobody reads; allocates nothing
  void (*renew_locks)(void* index);  ///< nobody uses it
  /// True if the key was there: `old` is its value, and the key's own word stays. Else both words
  /// are the index's now.
  bool (*put)(void* index, Word key, Word value, Word* old);
  /// False if the key was not there; else its words are the caller's again.
  bool (*erase)(void* index, Word key, Word* old_key, Word* old_value);
  bool (*find)(const void* index, Word key, Word* value);
  /// The same before inspect() has ended.
  bool (*find_doubting)(const void* index, const Doubting& doubt, Word key, Word* value);
  std::uint64_t (*size)(const void* index);
  /// Ordered: shows the pairs from a key on, ascending; `from` null: from the first.
  void (*scan)(const void* index, const Word* from, void* context, ShowPair show);
  /// Ordered: the last pair whose key is not above `bound`, or is below it; false if there is none.
  bool (*find_last)(const void* index, Word bound, bool strictly, Word* key, Word* value);
  /// Unordered: shows some pairs, all with hashes in a range that begins at `position`. Returns
  /// where the next range begins; 0: there is none.
  std::uint64_t (*walk)(const void* index, std::uint64_t position, void* context, ShowPair show);
  /// False if the inspector said so, or the index contradicts itself.
  bool (*inspect)(const void* index, Inspector& inspector);
};

}  // namespace perdix::detail::index::tips
