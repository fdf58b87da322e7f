// An index that can be plugged into Tips, without Tips: the same source with memory from the heap,
// behind the same lock, as a system.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>

#include <perdix/tips_plugin.h>
#include <perdix/types.h>

#include "systems/no_mutex.h"
#include "systems/systems.h"
#include "ycsb/memory.h"
#include "ycsb/worker.h"

namespace perdix::bench {

using tips::Word;

/// A string, or an integer, as the word that a plug-in keeps.
inline Word new_word(std::uint64_t number) { return number; }
inline Word new_word(std::string_view bytes) {
  void* const block = tips::Volatile::allocate(sizeof(tips::Bytes) + bytes.size());
  new (block) tips::Bytes{bytes.size()};
  if (!bytes.empty()) std::memcpy(static_cast<tips::Bytes*>(block) + 1, bytes.data(), bytes.size());
  return reinterpret_cast<Word>(block);
}

template <class T>
View<T> view_of(Word word) {
  if constexpr (std::is_same_v<T, std::string>)
    return reinterpret_cast<const tips::Bytes*>(word)->view();
  else
    return word;
}

template <class T>
void free_word(Word word) {
  if constexpr (std::is_same_v<T, std::string>) tips::Volatile::free(reinterpret_cast<void*>(word));
}

/// A key for the time of a call.
template <class K>
class KeyWord {
 public:
  explicit KeyWord(View<K> key) : word_(new_word(key)) {}
  ~KeyWord() { free_word<K>(word_); }
  KeyWord(const KeyWord&) = delete;
  KeyWord& operator=(const KeyWord&) = delete;
  Word word() const { return word_; }

 private:
  Word word_;
};

/// Replacing or removing a string frees it, so readers of strings must hold a lock, too.
template <template <class, class> class Plugin, Storable K, Storable V>
class OnHeap {
 public:
  using Keys =
      std::conditional_t<std::is_same_v<K, std::string>, tips::StringKeys, tips::IntegerKeys>;
  using Index = Plugin<tips::Volatile, Keys>;
  static constexpr bool kFrees = std::is_same_v<K, std::string> || std::is_same_v<V, std::string>;
  using Mutex = std::conditional_t<kFrees, std::shared_mutex, NoMutex>;

  explicit OnHeap(const Setup&)
      : heap_before_(heap_bytes_in_use()), index_(std::make_unique<Index>()) {}

  class Client {
   public:
    explicit Client(OnHeap& map) : index_(*map.index_), mutex_(map.mutex_) {}

    bool get(View<K> key, Sink& sink) {
      const KeyWord<K> wanted(key);
      const std::shared_lock lock(mutex_);
      Word value = 0;
      if (!index_.find(wanted.word(), value)) return false;
      sink.take(view_of<V>(value));
      return true;
    }
    bool insert(View<K> key, View<V> value) { return !put(key, value); }
    bool update(View<K> key, View<V> value) { return put(key, value); }
    bool erase(View<K> key) {
      const KeyWord<K> wanted(key);
      const std::unique_lock lock(mutex_);
      Word old_key = 0, old_value = 0;
      if (!index_.erase(wanted.word(), old_key, old_value)) return false;
      free_word<K>(old_key);
      free_word<V>(old_value);
      return true;
    }
    std::size_t scan(View<K> from, std::size_t limit,
                     Sink& sink) requires tips::OrderedIndexClass<Index> {
      struct Shown {
        Sink& sink;
        std::size_t limit;
        std::size_t count = 0;
        static bool show(void* context, Word key, Word value) {
          auto& shown = *static_cast<Shown*>(context);
          shown.sink.take(view_of<K>(key));
          shown.sink.take(view_of<V>(value));
          return ++shown.count < shown.limit;
        }
      } shown{sink, limit};
      const KeyWord<K> wanted(from);
      const std::shared_lock lock(mutex_);
      const Word word = wanted.word();
      index_.scan(&word, &shown, Shown::show);
      return shown.count;
    }

   private:
    /// Whether the key was there.
    bool put(View<K> key, View<V> value) {
      const Word word = new_word(key), new_value = new_word(value);
      const std::unique_lock lock(mutex_);
      Word old = 0;
      if (!index_.put(word, new_value, old)) return false;
      free_word<K>(word);
      free_word<V>(old);
      return true;
    }

    Index& index_;
    Mutex& mutex_;
  };

  Client client() { return Client(*this); }

  OwnFootprint footprint() const { return {heap_bytes_in_use() - heap_before_, std::nullopt}; }

 private:
  std::uint64_t heap_before_;
  std::unique_ptr<Index> index_;  // its nodes stay: the process ends soon
  Mutex mutex_;
};

template <template <class, class> class Plugin>
struct Heap {
  template <class K, class V>
  using Map = OnHeap<Plugin, K, V>;
};

inline std::string heap_settings(const Setup&) { return "in DRAM, behind the lock of the index"; }

/// Indexes whose readers take no lock get one thread, because writers free memory immediately.
template <template <class, class> class Plugin>
System system_on_heap(const std::string& name, const std::string& what,
                      unsigned max_threads = kAnyThreads) {
  using Form = Heap<Plugin>;
  return {"volatile:" + name,
          what + ", volatile",
          false,
          open_store<Form::template Map>,
          heap_settings,
          calls_of<Form::template Map>(),
          max_threads};
}

}  // namespace perdix::bench
