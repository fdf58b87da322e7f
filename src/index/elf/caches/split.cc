#include "index/elf/caches/split.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "index/elf/box.h"

namespace perdix::detail::index::elf {
namespace {

constexpr std::uint64_t kShares = 32;  // of the budget, of which some are for copies

/// Lines of PM that a search in a list reads, about: its head, and where they are others, those of
/// a value and of a pointer.
double lines_of(const Chosen& list) {
  return 1 + 2 * std::min(1.0, static_cast<double>(list.entries) / kWordsOfLine);
}

class Split {
 public:
  Split(std::vector<Chosen> lists, std::uint64_t budget)
      : lists_(std::move(lists)), budget_(budget), parents_(lists_.size(), kNoParent) {
    find_parents();
  }

  std::vector<Chosen> take() {
    std::size_t best = 0;
    double most = -1;
    std::size_t copies = 0;
    std::uint64_t bytes = 0;
    for (std::uint64_t share = 0; share <= kShares; ++share) {
      const std::uint64_t room = budget_ / kShares * share + budget_ % kShares * share / kShares;
      while (copies < lists_.size() && lists_[copies].bytes() <= room - bytes)
        bytes += lists_[copies++].bytes();
      const double saved = fill(copies, nullptr);
      if (saved > most) {
        most = saved;
        best = copies;
      }
    }
    std::vector<Chosen> chosen;
    fill(best, &chosen);
    return chosen;
  }

 private:
  static constexpr std::size_t kNoParent = ~std::size_t{0};

  /// The list that leads to each one: in preorder the last one of the dimension before. Those of
  /// the second dimension hang from the first list.
  void find_parents() {
    std::vector<std::size_t> preorder(lists_.size());
    std::iota(preorder.begin(), preorder.end(), std::size_t{0});
    std::sort(preorder.begin(), preorder.end(), [&](std::size_t a, std::size_t b) {
      return lists_[a].position < lists_[b].position;
    });
    std::array<std::size_t, kMaxDimensions> last;
    last.fill(kNoParent);
    for (const std::size_t i : preorder) {
      last[lists_[i].dimension] = i;
      parents_[i] = last[lists_[i].dimension - 1];
    }
  }

  /// Copies the first ones, and outlines others as long as there is room. Returns how many lines
  /// as many queries save as there are rows.
  double fill(std::size_t copies, std::vector<Chosen>* chosen) const {
    double saved = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      Chosen list = lists_[i];
      list.outlined = i >= copies;
      const bool reachable = parents_[i] == kNoParent || parents_[i] < copies;
      if (list.outlined && (list.outline_words == 0 || !reachable)) continue;
      if (list.bytes() > budget_ - bytes) continue;
      bytes += list.bytes();
      const double lines = lines_of(list) - (list.outlined ? 1 : 0);
      saved += static_cast<double>(list.rows) * lines;
      if (chosen != nullptr) chosen->push_back(list);
    }
    return saved;
  }

  const std::vector<Chosen> lists_;
  const std::uint64_t budget_;
  std::vector<std::size_t> parents_;
};

}  // namespace

std::vector<Chosen> split(std::vector<Chosen> lists, std::uint64_t budget) {
  return Split(std::move(lists), budget).take();
}

}  // namespace perdix::detail::index::elf
