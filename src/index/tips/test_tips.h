// What the tests of Tips share: a pool whose processes die, and indexes of all types.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/tips_indexes.h>

#include "index/common/open_words.h"
#include "index/tips/map.h"
#include "index/tips/options.h"
#include "index/tips/plugin.h"
#include "util/hash.h"
#include "util/test_directory.h"

namespace perdix::detail::index::tips {

using U64 = std::uint64_t;

/// All of an index that has no writers.
struct Everything final : Inspector {
  std::map<Word, Word> pairs;
  std::vector<void*> nodes;
  bool node(const void* node, std::size_t) override {
    nodes.push_back(const_cast<void*>(node));
    return true;
  }
  bool pair(Word key, Word value) override { return pairs.emplace(key, value).second; }
};

/// A pool whose file outlives processes that open it.
class TipsTest : public ::testing::Test {
 protected:
  Pool open() const {
    PoolOptions options;
    options.plugins = perdix::tips::further_plugins();
    options.max_size = std::uint64_t{1} << 30;
    return Pool::open_or_create(path_, options);
  }

  static TipsOptions small_logs() {
    TipsOptions options;
    options.log_bytes = kMinLogBytes;
    return options;
  }

  /// Runs work(pool) in a process that is killed when it has returned.
  template <class Work>
  void die_after(Work work) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const Pool pool = open();
      work(pool);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child has failed";
  }

  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

inline constexpr U64 kMany = 12'000;  // enough that opening doesn't look at all of them

template <class T>
T datum(U64 number) {
  if constexpr (std::is_same_v<T, U64>)
    return number;
  else
    return "number " + std::to_string(number);
}

/// Keys in no order.
template <class T>
T key_of(U64 i) {
  return datum<T>(util::hash(i));
}

template <class P, class K, class V>
struct Typed {
  using Key = K;
  using Value = V;
  /// With a look at its blocks.
  class Index : public P::Order::template Base<K, V> {
   public:
    using Base = typename P::Order::template Base<K, V>;
    using Words = std::conditional_t<std::is_same_v<typename P::Order, perdix::tips::Ordered>,
                                     OrderedMap<K>, UnorderedMap<K>>;

    explicit Index(const Pool& pool, std::string_view name, const TipsOptions& options = {})
        : Index(open_words<Words, kOptions, K>(pool, name, P::kEngine, kKindOf<V>, options)) {}

    std::vector<pm::Offset> blocks() const {
      std::vector<pm::Offset> all;
      words_->for_each_block([&](pm::Offset block) { all.push_back(block); });
      return all;
    }
    /// Writes that wait for space.
    U64 pending() const { return this->stats().tips.waiting; }

   private:
    explicit Index(std::unique_ptr<WordIndex<K>> words) : Index(words.release()) {}
    explicit Index(WordIndex<K>* words)
        : Base(std::unique_ptr<WordIndex<K>>(words)), words_(static_cast<Words*>(words)) {}

    const Words* words_;  // which the base owns
  };
};

template <class P>
using Integers = Typed<P, U64, U64>;
template <class P>
using Strings = Typed<P, std::string, std::string>;
using OpenedIndexes = ::testing::Types<
    Integers<perdix::tips::Hash>, Strings<perdix::tips::Hash>, Integers<perdix::tips::Bst>,
    Strings<perdix::tips::Bst>, Integers<perdix::tips::BTree>, Strings<perdix::tips::BTree>,
    Integers<perdix::tips::Art>, Strings<perdix::tips::Art>, Integers<perdix::tips::Clht>,
    Strings<perdix::tips::Clht>, Integers<perdix::tips::LfHash>, Strings<perdix::tips::LfHash>,
    Integers<perdix::tips::LfBst>, Strings<perdix::tips::LfBst>>;

}  // namespace perdix::detail::index::tips
