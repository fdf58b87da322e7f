// An attempt at a write: its premises, and how it ends.
#pragma once

#include <optional>
#include <string_view>

#include "index/tips/entry.h"
#include "index/tips/inspection.h"

namespace perdix::detail::index::tips {

enum class Attempt {
  done,
  refused,
  no_room,     ///< in the log, until it is replayed
  no_reserve,  ///< it has to go into the index immediately
  no_space,
};

/// The value that a key has, or none.
using Found = std::optional<std::string_view>;

/// Decides on a write when it sees the value that the key has.
using Decide = bool (*)(void* context, Found found);

/// Decides on a write; without a function it allows each.
class Condition {
 public:
  Condition(Decide decide, void* context) : decide_(decide), context_(context) {}

  /// Whether a write is allowed, given the value that the key has now. `old` is the key's entry in
  /// the cache, or null: then the index is asked. An erase of nothing is refused. The caller holds
  /// the lock of the key's bucket.
  bool allows(const Entry& entry, const Entry* old, const Inspection& index) const {
    return decide_ == nullptr || decides(entry, old, index);
  }

 private:
  bool decides(const Entry& entry, const Entry* old, const Inspection& index) const {
    const bool erases = entry.operation() == Operation::erase;
    const auto says = [&](Found found) { return (found || !erases) && decide_(context_, found); };
    if (old != nullptr)
      return says(old->operation() == Operation::erase ? Found() : Found(old->value()));
    bool allowed = false;
    const bool there =
        index.find(entry.key(), [&](std::string_view value) { allowed = says(value); });
    return there ? allowed : says(std::nullopt);
  }

  const Decide decide_;
  void* const context_;
};

}  // namespace perdix::detail::index::tips
