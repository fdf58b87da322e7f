// The sample hash index without its types and its lock: bytes to bytes. Not thread-safe, but for
// const functions beside each other.
//
// Every commit changes one word, a slot or the root, by an alloc::Session. So a crash leaves the
// index as it was before a call or after it, and blocks are allocated and freed with the commit or
// not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <perdix/types.h>

#include "index/common/codec.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"
#include "samples/hash/layout.h"

namespace perdix::samples::hash {

class Slots {
 public:
  using Show = std::function<void(std::string_view key, std::string_view value)>;

  /// Opens the array below a root, which is 0 while there are no pairs.
  Slots(detail::pool::PoolCore& pool, std::uint64_t& root);

  /// Frees everything from the pairs on. Restartable: each commit leaves less.
  static void destroy(detail::pool::PoolCore& pool, std::uint64_t& root);

  /// Whether the key is there. Its value is then shown by a view that the next change ends.
  bool find(std::string_view key, std::string_view& value) const;
  void set(std::string_view key, std::string_view value);
  bool erase(std::string_view key);

  std::uint64_t pairs() const { return pairs_; }
  void for_each(const Show& show) const;
  void for_each_block(const detail::pool::BlockVisitor& visit) const;
  std::uint64_t pm_bytes() const;
  CheckReport check() const;

 private:
  using Words = detail::index::Codec<std::string>;

  std::span<std::uint64_t> slots() const;
  std::uint64_t* slot_of(std::string_view key) const;
  void replace_array(std::uint64_t size);

  detail::pool::PoolCore& pool_;
  std::uint64_t& root_;
  Words words_;
  std::uint64_t pairs_ = 0;
  std::uint64_t used_ = 0;  // upper bound of the slots that are not kNever
};

}  // namespace perdix::samples::hash
