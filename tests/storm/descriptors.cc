#include "storm/descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <perdix/papers/fastfair.h>

#include "storm/disturb.h"
#include "storm/faults.h"
#include "support/values.h"

namespace perdix::test::storm {
namespace descriptors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kContent = "what the program has written\n";

struct Lost {
  std::string path;         ///< of the pool
  int number = -1;          ///< that its descriptor had
  bool taken = false;       ///< the other file has it now
  std::uint64_t since = 0;  ///< calls that began before are old
};

// Global, since what is interposed has no object.
std::shared_mutex mutex;
std::atomic<std::uint64_t> losses{0};
std::vector<Lost>& lost() {
  static auto& all = *new std::vector<Lost>();
  return all;
}

thread_local constinit std::uint64_t call_began = 0;  // after so many losses

std::string other_of(const std::string& path) { return path + ".other"; }

bool leads_to(int descriptor, const std::string& path) {
  struct stat file {
  }, wanted{};
  return ::fstat(descriptor, &file) == 0 && ::stat(path.c_str(), &wanted) == 0 &&
         file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino;
}

/// The descriptor that the library has of a pool's file. The storm's own ones of that file, those
/// of its devices, can't be written. It stays the pool's until the caller does something: no other
/// thread closes pools.
int descriptor_of(const std::string& path) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    const std::string name = entry.path().filename();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (leads_to(number, path) && (::fcntl(number, F_GETFL) & O_ACCMODE) == O_RDWR) return number;
  }
  throw Finding("an open pool has no descriptor of its file");
}

int open_other(const std::string& path) {
  const int other = ::open(other_of(path).c_str(), O_RDWR | O_CLOEXEC);
  require(other >= 0, "the storm can't open a file of its own");
  return other;
}

/// Opens the other file until it gets the number, as it does if all below are taken. Another thread
/// may have been faster; then the number is that thread's.
bool open_as(int number, const std::string& path) {
  std::vector<int> opened;
  do {
    opened.push_back(open_other(path));
  } while (opened.back() < number);
  const bool taken = opened.back() == number;
  if (taken) opened.pop_back();
  for (const int other : opened) ::close(other);
  return taken;
}

bool replace(int number, const std::string& path) {
  const int other = open_other(path);
  require(::dup3(other, number, O_CLOEXEC) == number, "the storm can't replace a descriptor");
  ::close(other);
  return true;
}

std::vector<Lost>::iterator find(const std::string& path) {
  return std::find_if(lost().begin(), lost().end(), [&](const Lost& l) { return l.path == path; });
}

}  // namespace

void begin_call() { call_began = losses.load(std::memory_order_acquire); }

void lose(const std::string& path, Rng& rng) {
  std::ofstream(other_of(path)) << kContent;
  const int number = descriptor_of(path);
  const std::lock_guard lock(mutex);
  bool taken = false;
  switch (rng.below(3)) {
    case 0: ::close(number); break;
    case 1: taken = replace(number, path); break;
    default: ::close(number); taken = open_as(number, path);
  }
  lost().push_back({path, number, taken, ++losses});
  begin_call();
}

void expect_untouched(const std::string& path) {
  std::ifstream other(other_of(path), std::ios::binary);
  if (!other) return;
  require(std::string(std::istreambuf_iterator<char>(other), {}) == kContent,
          "another file took the number of a pool's descriptor, and was written");
}

void give_back(const std::string& path) {
  expect_untouched(path);
  const std::lock_guard lock(mutex);
  if (const auto it = find(path); it != lost().end()) {
    const Lost pool = *it;
    lost().erase(it);
    const bool ours = pool.taken && leads_to(pool.number, other_of(path));
    require(ours == pool.taken,
            "another file took the number of a pool's descriptor, and the "
            "library has closed it");
    if (ours) ::close(pool.number);
  }
  fs::remove(other_of(path));
}

OldCalls::OldCalls() : lock_(mutex) {}

bool OldCalls::have_lost(int descriptor) const {
  return std::any_of(lost().begin(), lost().end(), [&](const Lost& pool) {
    return pool.number == descriptor && call_began < pool.since;
  });
}

}  // namespace descriptors

namespace {

constexpr std::size_t kFillingValue = 256 << 10;
constexpr std::uint64_t kMaxPuts = 1024;

void expect_succeeds(const char* what, const std::function<void()>& call) {
  const Outcome outcome = attempt(what, call);
  require(!outcome.threw, fmt::format("{} of a pool whose descriptor is lost threw {} ({})", what,
                                      to_string(outcome.code), outcome.text));
}

/// What reads a pool needs no descriptor.
void expect_readable(Scene& scene, unsigned number) {
  const Call marked(scene.board.seats[0], "a look at a pool whose descriptor is lost");
  const Pool& pool = *scene.pools[number];
  expect_succeeds("info()", [&] { pool.info(); });
  expect_succeeds("indexes()", [&] { pool.indexes(); });
  for (const auto& index : scene.indexes) {
    if (index->plan.pool != number) continue;
    expect_succeeds("stats()", [&] { index->index.stats(); });
    expect_succeeds("get()", [&] { index->index.get(index->key(0)); });
  }
}

/// Writes big values until the pool must grow, and so finds that it can't. Nothing if it has more
/// space than that takes, or may not grow.
void write_until_it_is_noticed(Scene& scene, unsigned number) {
  Seat& seat = scene.board.seats[0];
  std::optional<FastFair<std::uint64_t, std::string>> other;
  std::uint64_t stored = 0;
  Outcome outcome;
  {
    const Call marked(seat, "open an index in a pool whose descriptor is lost");
    outcome = attempt("an index's constructor",
                      [&] { other.emplace(*scene.pools[number], other_name("of-lost")); });
  }
  for (; !outcome.threw && stored < kMaxPuts; ++stored) {
    const Call marked(seat, "put into a pool whose descriptor is lost");
    outcome = attempt("put", [&] { other->put(stored, test::bytes_of(stored, kFillingValue)); });
    if (outcome.threw) break;
  }
  if (!outcome.threw) return;
  const bool full = outcome.code == Errc::out_of_space && scene.episode.pools[number].tight;
  require(full || outcome.code == Errc::io_error,
          "a change of a pool whose descriptor is lost threw " + outcome.text);
  if (full || !other) return;
  const Call marked(seat, "calls of a pool that is only read");
  const Outcome next = attempt("put", [&] { other->put(0, "small"); });
  require(next.threw && next.code == Errc::io_error,
          "a pool has noticed that its descriptor is lost, and takes changes on");
  for (std::uint64_t i = 0; i < stored; ++i)
    require(other->get(i) == test::bytes_of(i, kFillingValue),
            "a pool that is only read has lost a key");
}

}  // namespace

void lose_descriptor(Scene& scene) {
  const auto number = static_cast<unsigned>(scene.rng.below(scene.pools.size()));
  const std::string& path = scene.paths[number];
  if (!scene.board.descriptor_lost[number].exchange(true)) {  // before a call may fail by it
    descriptors::lose(path, scene.rng);
    ++scene.board.counters.descriptors_lost;
  }
  if (!scene.board.faults_on) {
    expect_readable(scene, number);
    if (scene.rng.once_in(3)) write_until_it_is_noticed(scene, number);
  }
  descriptors::expect_untouched(path);
}

}  // namespace perdix::test::storm
