#include "index/elf/caches/chooser.h"

#include <algorithm>
#include <optional>

#include "index/elf/caches/row_count.h"
#include "index/elf/caches/split.h"

namespace perdix::detail::index::elf {
namespace {

/// Bytes that a list takes while it is chosen and copied, about: twice in vectors, its parent and
/// its place.
constexpr std::uint64_t kBytesToChoose = 3 * sizeof(Chosen);

/// The most probable lists of those that are offered, as many as the budget has room for. Forgets
/// the others now and then, so that choosing takes no more memory than the budget.
class MostProbable {
 public:
  explicit MostProbable(std::uint64_t budget)
      : budget_(budget), limit_(std::max(kFew, budget / kBytesToChoose)) {}

  void offer(const Chosen& list) {
    if (min_bytes(list) > budget_ || (full_ && list.rows < min_rows_)) return;
    lists_.push_back(list);
    bytes_ += min_bytes(list);
    if (lists_.size() >= limit_) {
      forget(limit_ / 2);
    } else if (bytes_ / 2 > budget_ && lists_.size() > kFew) {
      forget(limit_);
    }
  }

  /// Those that are to be copied, and to be outlined.
  std::vector<Chosen> take() {
    forget(limit_);
    return split(std::move(lists_), budget_);
  }

 private:
  static constexpr std::uint64_t kFew = 1024;

  static std::uint64_t min_bytes(const Chosen& list) {
    return list.outline_words > 0 ? outline_bytes(list) : list.bytes();
  }

  void forget(std::uint64_t limit) {
    std::sort(lists_.begin(), lists_.end(), more_probable);
    bytes_ = 0;
    std::size_t count = 0;
    while (count < std::min<std::uint64_t>(lists_.size(), limit) &&
           min_bytes(lists_[count]) <= budget_ - bytes_)
      bytes_ += min_bytes(lists_[count++]);
    if (count == lists_.size()) return;
    full_ = true;
    min_rows_ = lists_[count].rows;
    lists_.resize(count);
  }

  const std::uint64_t budget_;
  const std::uint64_t limit_;  // of lists_
  std::uint64_t bytes_ = 0;
  bool full_ = false;
  std::uint64_t min_rows_ = 0;  // no list with fewer has room
  std::vector<Chosen> lists_;
};

/// The lists of the first dimensions, in preorder, without counting rows.
class Levels {
 public:
  Levels(const Lists& lists, const CacheRequest& request, const std::stop_token& stop)
      : lists_(lists),
        levels_(std::min(request.levels, lists.dimensions())),
        budget_(request.level_bytes),
        stop_(stop) {}

  /// None if the budget has no room for all of them.
  std::optional<std::vector<Chosen>> take() {
    const FirstEntries& first = lists_.first();
    for (std::uint32_t i = 0; i < first.count(); ++i) visit(first.entry(i).ref, 1);
    if (bytes_ > budget_) return std::nullopt;
    return std::move(chosen_);
  }

 private:
  void visit(Ref ref, unsigned dimension) {
    if (dimension >= levels_ || ref.kind() != Ref::Kind::list || stop_.stop_requested()) return;
    if (bytes_ > budget_) return;
    const List list = lists_.list(ref.value());
    if (list.position < passed_) lists_.throw_no_node(list.position);
    passed_ = list.position + list.words();
    const Chosen& chosen = chosen_.emplace_back(Chosen{list.position, dimension, list.count, 0, 0});
    bytes_ += chosen.bytes();
    for (std::uint32_t i = 0; i < list.count; ++i)
      visit(list.child(i, dimension + 1 == lists_.dimensions()), dimension + 1);
  }

  const Lists& lists_;
  const unsigned levels_;
  const std::uint64_t budget_;
  const std::stop_token& stop_;
  Position passed_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<Chosen> chosen_;
};

/// The most probable lists of the first `levels` dimensions.
std::vector<Chosen> choose_probable(const Lists& lists, unsigned levels, std::uint64_t budget,
                                    const std::stop_token& stop) {
  MostProbable best(budget);
  const auto on_list = [&](Position position, unsigned dimension, std::uint32_t entries,
                           std::uint64_t rows) {
    if (dimension < levels) {
      const auto outline = static_cast<std::uint32_t>(Outline::words_for(lists.list(position)));
      best.offer({position, dimension, entries, rows, outline});
    }
    return !stop.stop_requested();
  };
  RowCount counting(lists, on_list);
  const FirstEntries& first = lists.first();
  for (std::uint32_t i = 0; i < first.count() && !counting.ended(); ++i) {
    const Ref ref = first.entry(i).ref;
    if (ref.kind() != Ref::Kind::none) counting.count(ref, 1);
  }
  return best.take();
}

/// Of one list, the copy first.
bool before(const Chosen& a, const Chosen& b) {
  return a.position != b.position ? a.position < b.position : a.outlined < b.outlined;
}

}  // namespace

std::vector<Chosen> choose(const Lists& lists, const CacheRequest& request,
                           const std::stop_token& stop) {
  std::vector<Chosen> chosen;
  if (request.levels > 1) {
    auto all = Levels(lists, request, stop).take();
    chosen =
        all ? *std::move(all) : choose_probable(lists, request.levels, request.level_bytes, stop);
  }
  if (request.probable_bytes > 0) {
    const std::vector<Chosen> more =
        choose_probable(lists, lists.dimensions(), request.probable_bytes, stop);
    chosen.insert(chosen.end(), more.begin(), more.end());
  }
  std::sort(chosen.begin(), chosen.end(), before);
  const auto same = [](const Chosen& a, const Chosen& b) { return a.position == b.position; };
  chosen.erase(std::unique(chosen.begin(), chosen.end(), same), chosen.end());
  return chosen;
}

}  // namespace perdix::detail::index::elf
