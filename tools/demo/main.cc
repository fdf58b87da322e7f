// perdix-demo: loads a real word list, kills a process that loads it, reopens, checks, asks,
// compares.
#include <signal.h>

#include <chrono>
#include <iostream>
#include <random>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <perdix/perdix.h>

#include "common/place.h"
#include "demo/comparison.h"
#include "demo/crash.h"
#include "demo/options.h"
#include "demo/words.h"
#include "terminal/format.h"
#include "terminal/progress.h"

namespace perdix::demo {
namespace {

using terminal::format_bytes;
using terminal::format_count;
using terminal::format_nanoseconds;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Each line is flushed, also in a log.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  std::cout << fmt::format(format, std::forward<Args>(args)...) << std::endl;
}

class Demo {
 public:
  explicit Demo(const Options& options)
      : options_(options),
        words_(read_words(options.words)),
        parent_(options.directory.empty() ? bench::default_parent(kSpace) : options.directory),
        scratch_(parent_),
        seed_(options.seed.value_or(std::random_device()())),
        style_(terminal::progress_style(terminal::ProgressStyle::none)) {}

  bool run() {
    say("perdix demo: {} words of {}; pools in {} ({}); seed {}", format_count(words_.size()),
        options_.words.string(), parent_.string(), bench::file_system_of(parent_), seed_);
    load();
    const Crash crash = crash_a_loader();
    if (!reopen(crash)) return false;
    return !options_.comparison || compare_with_others();
  }

 private:
  static constexpr std::uint64_t kSpace = std::uint64_t{1} << 30;

  void put_all(WordIndex& index, std::uint64_t from, const char* label) {
    terminal::ProgressBar bar(style_, label, "words", words_.size());
    for (std::uint64_t i = from; i < words_.size(); ++i) {
      index.put(words_[i].text, words_[i].line);
      bar.update(i + 1);
    }
  }

  void load() {
    say("\n1. Load the words into a pool: word -> line number, each durable before the next");
    const Pool pool = Pool::create(scratch_.path() / "loaded.pool");
    WordIndex index(pool, kIndexName);
    const Clock::time_point begin = Clock::now();
    put_all(index, 0, "   loading");
    const double seconds = seconds_since(begin);
    const IndexStats stats = index.stats();
    say("   {} words in {:.2f} s: {} per second; {} in the pool, {} of DRAM",
        format_count(index.size()), seconds,
        format_count(static_cast<std::uint64_t>(static_cast<double>(words_.size()) / seconds)),
        format_bytes(static_cast<double>(stats.pm_bytes)),
        format_bytes(static_cast<double>(stats.dram_bytes)));
  }

  Crash crash_a_loader() {
    say("\n2. Load them again in another process, and kill it with SIGKILL at a random moment");
    const Crash crash = load_and_kill(options_.words, crashed_pool(), words_.size(), seed_, style_);
    say("   process {} killed after {:.2f} s; it had acknowledged {} words", crash.pid,
        crash.seconds, format_count(crash.acknowledged));
    return crash;
  }

  bool reopen(const Crash& crash) {
    say("\n3. Open the pool that it left");
    const Word& last = words_[crash.acknowledged - 1];
    const Clock::time_point begin = Clock::now();
    const Pool pool = Pool::open(crashed_pool());
    WordIndex index(pool, kIndexName);
    const auto answer = index.get(last.text);
    const double seconds = seconds_since(begin);
    say("   first answer after {}: the last acknowledged word, \"{}\", is {}",
        format_nanoseconds(seconds * 1e9), last.text,
        answer ? "line " + format_count(*answer) : "NOT THERE");
    if (!report(inspect(index, words_, crash.acknowledged), crash)) return false;
    put_all(index, crash.acknowledged, "   loading the rest");
    say("   and the rest loaded into it: {} words", format_count(index.size()));
    ask(index);
    return index.size() == words_.size();
  }

  static bool report(const Survivors& survivors, const Crash& crash) {
    for (const std::string& problem : survivors.problems) say("   PROBLEM: {}", problem);
    if (!survivors.ok()) return false;
    say("   all {} acknowledged words are there with their line numbers; {}",
        format_count(crash.acknowledged),
        survivors.in_flight == 0 ? "the word in flight never happened"
                                 : "the word in flight is there, whole");
    say("   every invariant of the index holds");
    return true;
  }

  void ask(const WordIndex& index) const {
    say("\n4. Ask");
    const std::string word =
        index.contains("partridge") ? "partridge" : words_[words_.size() / 2].text;
    const Clock::time_point begin = Clock::now();
    const auto line = index.get(word);
    const double seconds = seconds_since(begin);
    say("   \"{}\" is line {} (looked up in {})", word, format_count(line.value_or(0)),
        format_nanoseconds(seconds * 1e9));
    show_prefix(index, word == "partridge" ? "perdi" : word.substr(0, 3));
  }

  static void show_prefix(const WordIndex& index, const std::string& prefix) {
    constexpr std::size_t kShown = 8;
    std::vector<std::string> shown;
    std::uint64_t count = 0;
    index.scan(prefix, [&](std::string_view word, std::uint64_t) {
      if (!word.starts_with(prefix)) return false;
      if (++count <= kShown) shown.emplace_back(word);
      return true;
    });
    say("   {} words begin with \"{}\": {}{}", format_count(count), prefix, fmt::join(shown, ", "),
        count > kShown ? ", ..." : "");
  }

  bool compare_with_others() const {
    say("\n5. Compare, in one run: {} records of 8-byte keys and values, then {} operations per "
        "workload",
        format_count(options_.records), format_count(options_.records / 5));
    return compare(scratch_.path(), options_.records, seed_, style_);
  }

  std::filesystem::path crashed_pool() const { return scratch_.path() / "crashed.pool"; }

  const Options& options_;
  std::vector<Word> words_;
  std::filesystem::path parent_;
  bench::ScratchDirectory scratch_;
  std::uint64_t seed_;
  terminal::ProgressStyle style_;
};

int run(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == kLoaderCommand) {
    load_and_acknowledge(argv[2], argv[3]);
    return 0;
  }
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::cout << help_text();
    return 0;
  }
  const Clock::time_point begin = Clock::now();
  const bool ok = Demo(options).run();
  say("\n{} ({:.0f} s)", ok ? "Nothing was lost." : "FAILED: see the problems above.",
      seconds_since(begin));
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace perdix::demo

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return perdix::demo::run(argc, argv);
  } catch (const std::exception& e) {
    perdix::terminal::tell(fmt::format("perdix-demo: {}\n", e.what()));
    return 2;
  }
}
