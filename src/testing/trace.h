// What happened on a medium: every store with its bytes, every flush and fence with its call site,
// and the marks of the session that caused them, in one total order.
//
// Any moment of a run can be rebuilt from its trace, so nothing needs to be held still while
// crashes at that moment are explored. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pm/probe.h"

namespace perdix::testing {

struct Event {
  enum class Kind : std::uint8_t {
    store,  ///< up to eight bytes within an aligned word
    flush,  ///< `value` bytes from `offset` on
    fence,
    commit,     ///< a store that is durable when made, as one with those that follow
    committed,  ///< the end of such stores
    begin,      ///< step `id` begins
    end,        ///< step `id` has returned
    observe,    ///< the whole contents were read: what was undecided is decided
  };

  static constexpr std::uint8_t kAllThreads = 0xfe;

  Kind kind;
  std::uint8_t thread;   ///< kAllThreads of a flush that any thread's next fence makes durable
  std::uint8_t size;     ///< of a store
  std::uint32_t id;      ///< site of a flush, fence or commit, step of a mark
  std::uint64_t offset;  ///< in the medium
  std::uint64_t value;   ///< of a store: its bytes, the lowest first
};
static_assert(sizeof(Event) == 24);

using Trace = std::vector<Event>;

/// One way to break durability: what a flush or fence call site does not do in a whole run.
struct Suppression {
  std::uint32_t site;
  Event::Kind kind;  ///< flush or fence
};

/// The call sites seen so far, numbered in the order in which they were seen first.
class Sites {
 public:
  struct Use {
    std::string name;  ///< "src/pool/superblock.cc:155:7"
    std::string function;
    std::uint64_t flushes = 0;
    std::uint64_t fences = 0;
  };

  std::uint32_t number(const detail::pm::Site& site);
  std::uint32_t number(const std::string& name);
  void count(std::uint32_t site, Event::Kind kind) {
    ++(kind == Event::Kind::flush ? uses_[site].flushes : uses_[site].fences);
  }
  const std::vector<Use>& uses() const noexcept { return uses_; }

  /// "src/pool/superblock.cc:155:7" for a site anywhere on this machine.
  static std::string name(const detail::pm::Site& site);

 private:
  struct Key {
    const char* file;
    std::uint32_t line;
    std::uint32_t column;
    std::uint32_t number;
  };
  std::vector<Key> recent_;  // by pointer, in front of the comparison of names
  std::vector<Use> uses_;
};

}  // namespace perdix::testing
