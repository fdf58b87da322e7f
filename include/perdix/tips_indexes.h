// Further indexes for Tips. They are plug-ins, in a library of their own: find_package(perdix
// COMPONENTS tips-plugins) has the target perdix::tips-plugins. docs/tips.md tells more.
//
//   perdix::PoolOptions options;
//   options.plugins = perdix::tips::Art::plugins();
//   const auto pool = perdix::Pool::open_or_create("data.pool", options);
//   perdix::Tips<perdix::tips::Art, std::uint64_t, std::string> index(pool, "index");
#pragma once

#include <string_view>
#include <vector>

#include <perdix/tips.h>

namespace perdix::tips {

/// A binary search tree with a readers-writer lock.
struct Bst {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:bst";
  /// Says whether keys are in order.
  using Order = Ordered;
  /// Gives PoolOptions::plugins for both kinds of keys. They live as long as the program.
  static std::vector<const Plugin*> plugins();
};

/// An adaptive radix tree; its readers take no lock.
struct Art {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:art";
  /// Says whether keys are in order.
  using Order = Ordered;
  /// Gives PoolOptions::plugins for both kinds of keys. They live as long as the program.
  static std::vector<const Plugin*> plugins();
};

/// A hash table whose buckets are cache lines; its readers take no lock.
struct Clht {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:clht";
  /// Says whether keys are in order.
  using Order = Unordered;
  /// Gives PoolOptions::plugins for both kinds of keys. They live as long as the program.
  static std::vector<const Plugin*> plugins();
};

/// A lock-free hash table.
struct LfHash {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:lfhash";
  /// Says whether keys are in order.
  using Order = Unordered;
  /// Gives PoolOptions::plugins for both kinds of keys. They live as long as the program.
  static std::vector<const Plugin*> plugins();
};

/// A lock-free binary search tree. Nothing balances it: it is for keys that come in no order.
struct LfBst {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:lfbst";
  /// Says whether keys are in order.
  using Order = Ordered;
  /// Gives PoolOptions::plugins for both kinds of keys. They live as long as the program.
  static std::vector<const Plugin*> plugins();
};

/// The plug-ins of all these indexes, for programs that open pools of others.
std::vector<const Plugin*> further_plugins();

}  // namespace perdix::tips
