// A memory policy for plug-ins of Tips that finds changes that were not announced. It knows nothing
// of any index: what a put or an erase changes is what differs from a copy that was made before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/tips_plugin.h>

namespace perdix::test {

/// Memory from the heap. One index at a time in each thread.
class Watch {
 public:
  static Watch& current() {
    static thread_local Watch watch;  // plug-ins know no context
    return watch;
  }

  /// An operation begins: all blocks are as they are now, and so is `object` without its locks.
  void begin(std::vector<std::byte> object, const void* object_at) {
    announced_.clear(), freed_.clear(), fresh_.clear(), faults_.clear();
    object_ = std::move(object), object_at_ = static_cast<const std::byte*>(object_at);
    for (auto& [at, block] : blocks_) std::memcpy(block.before.data(), at, block.before.size());
  }

  /// It has ended. Returns what was wrong with it; empty: nothing.
  std::vector<std::string> end(const std::vector<std::byte>& object) {
    compare("the object", object_at_, object_, object.data());
    for (const auto& [at, block] : blocks_)
      if (!fresh_.contains(at)) compare("a block", at, block.before, at);
    for (std::byte* block : freed_) blocks_.erase(block), std::free(block);
    return std::exchange(faults_, {});
  }

  std::byte* allocate(std::size_t bytes) {
    if (left_ == 0) throw std::bad_alloc();
    --left_;
    auto* const block = static_cast<std::byte*>(std::malloc(bytes));
    std::memset(block, 0x5a, bytes);
    blocks_[block].before.resize(bytes);
    fresh_.insert(block);
    return block;
  }
  void free(std::byte* block) {
    if (!blocks_.contains(block) || !freed_.insert(block).second)
      faults_.emplace_back("what is freed is no block, or was freed before");
  }
  void add(const std::byte* p, std::size_t bytes) {
    const std::byte* const before = before_of(p);
    for (std::size_t i = 0; before != nullptr && i < bytes; ++i) {
      if (before[i] == p[i] || is_announced(p + i)) continue;
      faults_.emplace_back("a change is announced after it was made");
      break;
    }
    announced_.push_back({p, bytes});
  }

  static constexpr std::size_t kEnough = ~std::size_t{0};
  /// So many more blocks can be allocated.
  void set_left(std::size_t blocks) { left_ = blocks; }
  std::size_t blocks() const { return blocks_.size(); }
  /// Frees everything.
  void clear() {
    for (const auto& [at, block] : blocks_) std::free(at);
    *this = Watch();
  }

 private:
  struct Block {
    std::vector<std::byte> before;
  };

  bool is_announced(const std::byte* byte) const {
    return std::ranges::any_of(announced_, [&](std::span<const std::byte> range) {
      return byte >= range.data() && byte < range.data() + range.size();
    });
  }

  /// What was at `p` when the operation began; null: it has allocated that.
  const std::byte* before_of(const std::byte* p) const {
    if (p >= object_at_ && p < object_at_ + object_.size())
      return object_.data() + (p - object_at_);
    auto next = blocks_.upper_bound(const_cast<std::byte*>(p));
    if (next == blocks_.begin() || fresh_.contains((--next)->first)) return nullptr;
    return next->second.before.data() + (p - next->first);
  }

  void compare(const char* what, const std::byte* at, const std::vector<std::byte>& before,
               const std::byte* now) {
    if (std::memcmp(before.data(), now, before.size()) == 0) return;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] == now[i] || is_announced(at + i)) continue;
      faults_.push_back(fmt::format("byte {} of {} of {} bytes is changed and not announced", i,
                                    what, before.size()));
      return;
    }
  }

  std::map<std::byte*, Block> blocks_;
  std::vector<std::span<const std::byte>> announced_;
  std::set<std::byte*> freed_, fresh_;
  std::vector<std::byte> object_;
  const std::byte* object_at_ = nullptr;
  std::vector<std::string> faults_;
  std::size_t left_ = kEnough;
};

/// The memory policy.
struct Watched {
  static void* allocate(std::size_t bytes) { return Watch::current().allocate(bytes); }
  static void free(void* block) { Watch::current().free(static_cast<std::byte*>(block)); }
  static void add(const void* p, std::size_t bytes) {
    Watch::current().add(static_cast<const std::byte*>(p), bytes);
  }
};

/// An index whose every write is watched.
template <template <class, class> class IndexOf, class Keys>
class WatchedIndex {
 public:
  using Index = IndexOf<Watched, Keys>;
  using Word = tips::Word;

  ~WatchedIndex() { Watch::current().clear(); }

  bool put(Word key, Word value, Word& old) {
    return watched([&] { return index_->put(key, value, old); });
  }
  bool erase(Word key, Word& old_key, Word& old_value) {
    return watched([&] { return index_->erase(key, old_key, old_value); });
  }
  const Index& index() const { return *index_; }
  /// What was wrong with the writes so far.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  template <class Write>
  bool watched(const Write& write) {
    Watch& watch = Watch::current();
    watch.begin(without_locks(), index_.get());
    const auto end = [&] {
      for (std::string& fault : watch.end(without_locks())) faults_.push_back(std::move(fault));
    };
    try {
      const bool result = write();
      end();
      return result;
    } catch (...) {
      end();
      throw;
    }
  }

  /// The object's bytes, with new locks.
  std::vector<std::byte> without_locks() const {
    std::vector<std::byte> bytes(sizeof(Index));
    alignas(Index) static thread_local std::byte copy[sizeof(Index)];
    std::memcpy(copy, static_cast<const void*>(index_.get()), sizeof(Index));
    reinterpret_cast<Index*>(copy)->renew_locks();
    std::memcpy(bytes.data(), copy, sizeof(Index));
    return bytes;
  }

  const std::unique_ptr<Index> index_ = std::make_unique<Index>();
  std::vector<std::string> faults_;
};

}  // namespace perdix::test
