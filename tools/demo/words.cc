#include "demo/words.h"

#include <fstream>
#include <unordered_set>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::demo {

std::vector<Word> read_words(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) {
    throw Error(Errc::not_found, fmt::format("there is no word list at {}; 'sudo apt-get install "
                                             "wamerican-insane' brings one, or name "
                                             "another file with --words",
                                             file.string()));
  }
  std::vector<Word> words;
  std::unordered_set<std::string> seen;
  std::string text;
  for (std::uint64_t line = 1; std::getline(in, text); ++line) {
    if (!text.empty() && seen.insert(text).second) words.push_back({text, line});
  }
  if (words.empty()) {
    throw Error(Errc::invalid_argument,
                fmt::format("{} holds no words; name another file with --words", file.string()));
  }
  return words;
}

}  // namespace perdix::demo
