// The demo's input: a list of words, one per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <perdix/pool.h>
#include <perdix/sptree.h>

namespace perdix::demo {

struct Word {
  std::string text;
  std::uint64_t line = 0;  ///< from 1
};

inline constexpr const char* kDefaultWords = "/usr/share/dict/american-english-insane";
inline constexpr const char* kIndexName = "words";

using WordIndex = SpTree<std::string, std::uint64_t>;

/// The words of a file in its order, without empty lines and without repetitions (the first line
/// counts). Throws perdix::Error if the file can't be read or holds no word.
std::vector<Word> read_words(const std::filesystem::path& file);

}  // namespace perdix::demo
