#include "index/elimda/cache_reservation.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "index/elimda/cache_schemata.h"

namespace perdix::detail::index::elimda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "perdix-";  // of a group, before the process's number

std::optional<CacheSchemata> read_schemata(const fs::path& group) {
  std::ifstream in(group / "schemata");
  return CacheSchemata::parse({std::istreambuf_iterator<char>(in), {}});
}

/// One write(2), as resctrl demands.
bool write_text(const fs::path& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return written;
}

bool write_schemata(const fs::path& group, const CacheSchemata& schemata) {
  return write_text(group / "schemata", schemata.text());
}

/// The default group must have no way before another has it alone, and have it again afterwards.
bool give_back(const fs::path& root, const CacheSchemata& ways) {
  const auto all = read_schemata(root);
  return all && write_schemata(root, all->with(ways));
}

bool remove_group(const fs::path& group) {
  // A directory of resctrl goes with its files, and leaves its tasks to the default group.
  return ::rmdir(group.c_str()) == 0;
}

/// Groups of processes that are no more.
void remove_left_groups(const fs::path& root) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (name.rfind(kPrefix, 0) != 0) continue;
    pid_t pid = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
    if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    const auto ways = read_schemata(entry.path());
    if (remove_group(entry.path()) && ways) give_back(root, *ways);
  }
}

/// Threads that begin later are in the group of the thread that begins them. One may end before it
/// is added.
bool add_threads(const fs::path& group) {
  std::error_code error;
  for (const fs::directory_entry& thread : fs::directory_iterator("/proc/self/task", error)) {
    const bool added = write_text(group / "tasks", thread.path().filename().string() + "\n");
    if (!added && fs::exists(thread.path(), error)) return false;
  }
  return !error;
}

bool take(const fs::path& root, const fs::path& group, const CacheSchemata& all,
          const CacheSchemata& ways) {
  return write_schemata(root, all.without(ways)) && write_schemata(group, ways) &&
         write_text(group / "mode", "exclusive\n") && add_threads(group);
}

}  // namespace

std::unique_ptr<CacheReservation> CacheReservation::make(unsigned ways, const fs::path& root) {
  if (ways == 0 || !read_schemata(root)) return nullptr;
  remove_left_groups(root);
  const auto all = read_schemata(root);
  const auto wanted = all ? all->highest(ways) : std::nullopt;
  if (!wanted) return nullptr;
  const fs::path group = root / fmt::format("{}{}", kPrefix, ::getpid());
  if (::mkdir(group.c_str(), 0755) != 0) return nullptr;
  // From here on the destructor undoes whatever was done.
  std::unique_ptr<CacheReservation> made(new CacheReservation(root, group, wanted->text()));
  return take(root, group, *all, *wanted) ? std::move(made) : nullptr;
}

CacheReservation::~CacheReservation() {
  remove_group(group_);
  give_back(root_, *CacheSchemata::parse(ways_));
}

}  // namespace perdix::detail::index::elimda
