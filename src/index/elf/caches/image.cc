#include "index/elf/caches/image.h"

#include <algorithm>
#include <cstring>

namespace perdix::detail::index::elf {

Image::Image(const Lists& lists, std::span<const Chosen> chosen) {
  std::uint64_t words = 0;
  for (const Chosen& list : chosen) {
    places_.push_back({list.position, words, list.outlined});
    words += list.words();
  }
  words_.resize(words);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    copy(lists, chosen[i], words_.data() + places_[i].word);
  first_words_.resize(lists.first().copy_bytes() / sizeof(std::uint64_t));
  first_ = lists.first().copy(first_words_.data(), [&](Ref ref) { return replace(ref); });
  places_ = std::vector<Place>();  // {} would keep the memory, which no budget counts
}

/// The copy or outline of a list, if there is one.
Ref Image::replace(Ref ref) const {
  if (ref.kind() != Ref::Kind::list) return ref;
  const auto at = std::lower_bound(
      places_.begin(), places_.end(), ref.value(),
      [](const Place& place, Position position) { return place.position < position; });
  if (at == places_.end() || at->position != ref.value()) return ref;
  return {at->outlined ? Ref::Kind::outlined : Ref::Kind::cached, at->word};
}

void Image::copy(const Lists& lists, const Chosen& chosen, std::uint32_t* to) const {
  const List list = lists.list(chosen.position);
  if (list.count != chosen.entries) lists.throw_no_node(chosen.position);
  if (chosen.outlined) {
    if (!Outline::write(list, chosen.outline_words, to)) lists.throw_no_node(chosen.position);
    return;
  }
  const bool last = chosen.dimension + 1 == lists.dimensions();
  to[0] = static_cast<std::uint32_t>(chosen.position);
  to[1] = static_cast<std::uint32_t>(chosen.position >> 32);
  to[2] = static_cast<std::uint32_t>(chosen.rows);
  to[3] = static_cast<std::uint32_t>(chosen.rows >> 32);
  to[4] = list.count;
  lists.note_read(list.values, list.count);
  std::memcpy(to + kHead, list.values, list.count * sizeof *to);
  for (std::uint32_t i = 0; i < list.count; ++i) {
    const std::uint64_t word = replace(list.child(i, last)).word();
    std::memcpy(to + kHead + list.count + 2 * std::size_t{i}, &word, sizeof word);
  }
}

}  // namespace perdix::detail::index::elf
