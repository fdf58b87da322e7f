#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <perdix/perdix.h>

#include "storm/client.h"
#include "storm/disturb.h"

namespace perdix::test::storm {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kCopies = 6;
constexpr std::uint64_t kMaxDamaged = 48 << 20;  // bytes of a file whose copies are damaged

constexpr std::string_view kCopy = ".damaged";

std::string head_of(const std::string& path) { return path + ".head"; }
std::string original_of(const std::string& copy) {
  return copy.substr(0, copy.size() - kCopy.size());
}

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Words of the file that are not zero, or the file is shorter.
void damage(const std::string& path, Rng& rng) {
  const std::uint64_t size = fs::file_size(path);
  if (rng.once_in(6)) return fs::resize_file(path, rng.below(size));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const unsigned words = static_cast<unsigned>(rng.once_in(2) ? 1 : rng.between(2, 64));
  const bool at_start = rng.once_in(4);
  for (unsigned done = 0, tries = 0; done < words && tries < 20'000; ++tries) {
    const auto at = static_cast<std::streamoff>(rng.below((at_start ? 64 << 10 : size) / 8) * 8);
    std::uint64_t word = 0;
    file.seekg(at);
    file.read(reinterpret_cast<char*>(&word), sizeof word);
    if (word == 0) continue;
    constexpr std::array<std::uint64_t, 4> kWords = {0, ~std::uint64_t{0}, 0x1000, 0xff};
    switch (rng.below(3)) {
      case 0: word ^= std::uint64_t{1} << rng.below(64); break;
      case 1: word = rng(); break;
      default: word = kWords[rng.below(kWords.size())];
    }
    file.seekp(at);
    file.write(reinterpret_cast<const char*>(&word), sizeof word);
    ++done;
  }
}

constexpr std::size_t kHead = 64 << 10;  // superblocks and directory
constexpr std::size_t kBlock = 4096;     // a superblock has less

/// As a restore that was not completed leaves it, or a page that was not written: all of the head,
/// or some blocks of it, are of an earlier time. False if none was kept.
bool age(const std::string& path, Rng& rng) {
  const std::string head = contents_of(head_of(original_of(path)));
  if (head.empty()) return false;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const bool all = rng.once_in(3);
  for (std::size_t at = 0; at < head.size(); at += kBlock) {
    if (!all && !rng.once_in(2)) continue;
    file.seekp(static_cast<std::streamoff>(at));
    file.write(head.data() + at, kBlock);
  }
  return true;
}

void use(const IndexPlan& plan, Pool& pool, Rng& rng) {
  AnyIndex index = plan.type->open(pool, plan.name);
  for (unsigned i = 0; i < 200; ++i) {
    const auto number = static_cast<std::uint32_t>(rng.below(plan.count));
    const Datum key = plan.keys(number);
    attempt("a call on a damaged index", [&] { index.get(key); });
    attempt("a call on a damaged index", [&] { index.put(key, plan.values({number, 1})); });
    if (i % 4 == 0) attempt("a call on a damaged index", [&] { index.erase(key); });
    if (i % 16 != 0) continue;
    attempt("a call on a damaged index", [&] {
      if (index.ordered()) return (void)index.scan(key, 50);
      unsigned left = 50;
      index.for_each([&](DatumView, DatumView) { return --left > 0; });
    });
  }
  attempt("a call on a damaged index", [&] { index.check(); });
}

/// All of it, and every Error is right.
void use_damaged(const std::string& path, const Episode& episode, Board& board, Rng& rng) {
  Seat& seat = board.seats[0];
  const Call marked(seat, "use a damaged pool");
  const std::uint64_t size = fs::file_size(path);
  const Outcome verified =
      attempt("Pool::verify", [&] { Pool::verify(path, options_for_all_engines()); });
  require(!verified.threw || fs::file_size(path) == size,
          "Pool::verify() refuses a damaged pool, but has changed the size of its file");
  std::optional<Pool> pool;
  const auto open = [&] {
    return attempt("Pool::open",
                   [&] { pool.emplace(Pool::open(path, options_for_all_engines())); });
  };
  const Outcome opened = open();
  require(!opened.threw || fs::file_size(path) == size,
          "Pool::open() refuses a damaged pool, but has changed the size of its file");
  if (opened.threw) return;
  for (const IndexPlan& plan : episode.indexes)
    attempt("a call on a damaged index", [&] { use(plan, *pool, rng); });
  attempt("Pool::check", [&] { pool->check(); });
  for (const IndexInfo& info : pool->indexes()) {
    const Outcome dropped = attempt("drop", [&] { pool->drop(info.name); });
    pool.reset();
    const Outcome again = open();
    require(
        !again.threw,
        fmt::format("a pool opens, drop() of its damaged index {} ({}), and it opens no more: {}",
                    dropped.threw ? "throws" : "succeeds", info.engine, again.text));
    if (rng.once_in(2)) break;
  }
}

}  // namespace

void keep_head(const std::string& path) {
  std::string head(kHead, '\0');
  std::ifstream(path, std::ios::binary).read(head.data(), kHead);
  std::ofstream(head_of(path), std::ios::binary).write(head.data(), kHead);
}

void open_damaged(const std::string& path, const Episode& episode, Board& board, Rng& rng) {
  if (fs::file_size(path) > kMaxDamaged) return;
  const std::string copy = path + std::string(kCopy);
  for (unsigned i = 0; i < kCopies; ++i) {
    fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
    if (!rng.once_in(4) || !age(copy, rng)) damage(copy, rng);
    fs::copy_file(copy, copy + ".before", fs::copy_options::overwrite_existing);
    ++board.counters.damaged;
    use_damaged(copy, episode, board, rng);
  }
  fs::remove(copy);
  fs::remove(copy + ".before");
}

}  // namespace perdix::test::storm
