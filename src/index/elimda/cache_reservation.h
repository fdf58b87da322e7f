// A part of the last-level cache that only this process uses, by Intel CAT (ElimDa paper, 3.7).
// Other processes then cannot evict a collecting log before it is full. Linux offers CAT as a file
// system, resctrl: a group of tasks has a directory, whose `schemata` says which ways of each cache
// its tasks may fill.
//
// While the reservation lasts, only this group has its ways, since they are taken away from the
// default group, and all threads of the process are in it. A process that was killed leaves its
// group behind; the next reservation of any process removes it and gives its ways back.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace perdix::detail::index::elimda {

class CacheReservation {
 public:
  /// Where Linux mounts it by convention.
  static constexpr const char* kRoot = "/sys/fs/resctrl";

  /// Reserves that many ways of each last-level cache. Null, and nothing has changed, if that is
  /// not possible: no CAT, no right to use it, fewer ways, ways that other groups have, or a
  /// reservation that this process has already. Cost: a few writes to files, and one for each
  /// thread.
  static std::unique_ptr<CacheReservation> make(unsigned ways,
                                                const std::filesystem::path& root = kRoot);

  CacheReservation(const CacheReservation&) = delete;
  CacheReservation& operator=(const CacheReservation&) = delete;

  /// Gives the ways back.
  ~CacheReservation();

 private:
  CacheReservation(std::filesystem::path root, std::filesystem::path group, std::string ways)
      : root_(std::move(root)), group_(std::move(group)), ways_(std::move(ways)) {}

  std::filesystem::path root_;
  std::filesystem::path group_;
  std::string ways_;  // as schemata has them
};

}  // namespace perdix::detail::index::elimda
