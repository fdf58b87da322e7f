// What a container must not keep when a write ends: addresses of this process.
//
// A word that may be one is let through if it belongs to a number, which may be any, or if no
// object lies there any more. Words of the second kind are cleared, since the check looks at words
// that have changed: an object that is made there later would not change a word that it finds as it
// stores it.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "index/tips_of/demangle.h"
#include "index/tips_of/program_memory.h"
#include "index/tips_of/tips_of.h"

namespace perdix::detail::index::tips_of {

Suspects::Suspects(std::vector<Word> words) : words_(std::move(words)) {
  std::sort(words_.begin(), words_.end(), [](const Word& a, const Word& b) { return a.at < b.at; });
}

/// Calls act(word, whether all of it lies within) for each word that has a byte of [begin, +
/// bytes).
template <class Act>
void Suspects::for_each_in(const void* begin, std::size_t bytes, Act act) {
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  const auto place = [](const Word& word) { return reinterpret_cast<std::uintptr_t>(word.at); };
  auto at = std::partition_point(words_.begin(), words_.end(), [&](const Word& word) {
    return place(word) + sizeof *word.at <= from;
  });
  for (; at != words_.end() && place(*at) < from + bytes; ++at)
    act(*at, place(*at) >= from && place(*at) + sizeof *at->at <= from + bytes);
}

void Suspects::number(const void* begin, std::size_t bytes) {
  for_each_in(begin, bytes, [](Word& word, bool) { word.explained = true; });
}

void Suspects::dead(const void* begin, std::size_t bytes) {
  for_each_in(begin, bytes, [](Word& word, bool within) {
    if (!within || word.explained) return;
    *word.at = 0;
    word.explained = true;
  });
}

void Suspects::object(const void* begin, std::size_t bytes, const char* type) {
  for_each_in(begin, bytes, [=](Word& word, bool) { word.type = type; });
}

std::optional<std::string> Table::foreign_address(const AddressFilter& filter) const {
  std::vector<Suspects::Word> words;
  pages_->for_each_changed_word([&](std::uint64_t* word) {
    if (filter.may_be_address(*word) && is_mapped(*word)) words.push_back({word});
  });
  if (words.empty()) return std::nullopt;
  Suspects suspects(std::move(words));
  blocks_->explain(suspects);
  type_.explain(container(), suspects);
  const ProcessMemory process(pool_region());
  for (const Suspects::Word& word : suspects.words()) {
    const auto where = word.explained ? std::nullopt : process.at(*word.at);
    if (!where) continue;
    return fmt::format(
        "the address {:#x}, which is not in the pool but in {}, in {}", *word.at, *where,
        word.type == nullptr ? "memory of the container"
                             : fmt::format("an object of the type {}", demangled(word.type)));
  }
  return std::nullopt;
}

/// Has the container's object take memory, if that ends an address of the process in it.
void Table::settle() {
  const auto* const begin = static_cast<const std::byte*>(container());
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= type_.bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, begin + at, sizeof word);
    // Also below kNumbersEnd: it does no harm if the word is a number.
    const bool may_be = word < AddressFilter::kNumbersEnd || filter_->may_be_address(word);
    if (may_be && !pool_region().contains(word) && is_mapped(word))
      return type_.settle(container());
  }
}

/// Called by the destructor of an object: of the container that is being written to, or of another
/// one, whose pages are read-only.
void Table::forget(void* object, std::uint64_t bytes) noexcept {
  if (!pages_->contains(object, bytes)) return;
  auto* const begin = static_cast<std::byte*>(object);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, begin + at, sizeof word);
    if (filter_->may_be_address(word)) std::memset(begin + at, 0, sizeof word);
  }
}

}  // namespace perdix::detail::index::tips_of
